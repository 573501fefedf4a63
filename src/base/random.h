// random: numbers for statistics, not for secrets.
#pragma once

#include <stdint.h>

// The next number of a sequence whose state is never 0: xorshift64* (Vigna 2016).
static inline uint64_t tsl_random_next(uint64_t *state) {
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * UINT64_C(2685821657736338717);
}

// Of a random number, uniform in [0, 1).
static inline double tsl_random_uniform(uint64_t random) {
  return (double)(random >> 11) * 0x1p-53;
}

// 1 - exp(-x) for x >= 0, the chance that a distance is at most x means; relative error below 1e-7.
// The series for a small part of x; f(2x) = f(x) * (2 - f(x)) leads back.
static inline double tsl_chance_within(double x) {
  if (x > 40) return 1;
  unsigned doublings = 0;
  for (; x > 1.0 / 8; x /= 2) doublings++;
  double chance = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5))));
  for (; doublings != 0; doublings--) chance *= 2 - chance;
  return chance;
}

// The natural logarithm of a normal number above zero; relative error below 1e-7. With m the
// mantissa about 1, ln m is the series of 2 artanh((m - 1) / (m + 1)).
static inline double tsl_log(double x) {
  const double ln2 = 0.6931471805599453, root = 1.4142135623730951;
  union {
    double value;
    uint64_t bits;
  } mantissa = {.value = x};
  int exponent = (int)(mantissa.bits >> 52) - 1023;
  mantissa.bits = (mantissa.bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
  if (mantissa.value > root) {
    mantissa.value /= 2;
    exponent++;
  }
  double t = (mantissa.value - 1) / (mantissa.value + 1), square = t * t;
  double sum = 1 + square * (1.0 / 3 + square * (1.0 / 5 + square * (1.0 / 7 + square / 9)));
  return exponent * ln2 + 2 * t * sum;
}
