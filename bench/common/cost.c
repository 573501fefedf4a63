#include "cost.h"

#include "clock.h"

double cost_best_ns(cost_body body, void *context, uint64_t count, uint64_t rounds) {
  uint64_t best = UINT64_MAX;
  for (uint64_t round = 0; round < rounds; round++) {
    uint64_t start = clock_ns();
    body(context, count);
    uint64_t ns = clock_ns() - start;
    best = ns < best ? ns : best;
  }
  return (double)best / (double)count;
}
