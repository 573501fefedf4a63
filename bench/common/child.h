// Parts of a program that must not meet what earlier parts left behind: each runs in a child.
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stdint.h>

typedef void (*child_body)(void *context);

// Runs `body` in a child and returns the most bytes that it held resident, those it had from its
// parent included. Results travel by memory_share. Ends the program when the child fails.
uint64_t child_run(child_body body, void *context);

#endif
