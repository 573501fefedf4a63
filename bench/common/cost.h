// The cost of an operation that is repeated: the best of some rounds, since nothing but the machine
// makes one slower.
#ifndef BENCH_COST_H
#define BENCH_COST_H

#include <stdint.h>

typedef void (*cost_body)(void *context, uint64_t count);

// Nanoseconds of one of the `count` operations that `body` does a round.
double cost_best_ns(cost_body body, void *context, uint64_t count, uint64_t rounds);

#endif
