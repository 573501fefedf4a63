#include "base/random.h"

#include <math.h>

#include "test.h"

static void logarithms_are_right(void) {
  for (double x = 0x1p-60; x < 0x1p60; x *= 1.0009765625) {
    double error = tsl_log(x) - log(x);
    CHECK(error < 1e-6 && error > -1e-6);
  }
  CHECK(tsl_log(1) == 0);
}

static void chances_are_right(void) {
  for (double x = 0x1p-40; x < 0x1p60; x *= 1.0009765625) {
    double error = tsl_chance_within(x) / -expm1(-x) - 1;
    CHECK(error < 1e-7 && error > -1e-7);
  }
  CHECK(tsl_chance_within(0) == 0);
}

static void uniform_numbers_are_uniform(void) {
  enum { PARTS = 64, DRAWS = 1 << 20 };
  unsigned counts[PARTS] = {0};
  uint64_t state = 42;
  for (unsigned i = 0; i < DRAWS; i++) {
    double uniform = tsl_random_uniform(tsl_random_next(&state));
    CHECK(uniform >= 0 && uniform < 1);
    counts[(unsigned)(uniform * PARTS)]++;
  }
  double chi_square = 0, expected = (double)DRAWS / PARTS;
  for (unsigned i = 0; i < PARTS; i++) {
    double difference = counts[i] - expected;
    chi_square += difference * difference / expected;
  }
  CHECK(chi_square < 118);  // 63 degrees of freedom: once in 30,000 sequences
}

// The first numbers of xorshift64* from state 1.
static void the_sequence_is_the_known_one(void) {
  uint64_t state = 1;
  CHECK_EQ(tsl_random_next(&state), UINT64_C(5180492295206395165));
  CHECK_EQ(tsl_random_next(&state), UINT64_C(12380297144915551517));
  CHECK_EQ(tsl_random_next(&state), UINT64_C(13389498078930870103));
}

int main(void) {
  RUN(logarithms_are_right);
  RUN(chances_are_right);
  RUN(uniform_numbers_are_uniform);
  RUN(the_sequence_is_the_known_one);
  return test_status();
}
