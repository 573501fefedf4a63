// Counts what a function executes, instruction by instruction: exact, and the same for every
// allocator (one peer reserves more address space than valgrind has).
#ifndef BENCH_STEPPER_H
#define BENCH_STEPPER_H

#include <stdbool.h>
#include <stdint.h>

typedef void (*stepper_body)(void *context);

// The code between `start` and `stop` calls two functions in turn.
typedef struct stepper {
  const char *start;
  const char *stop;
  stepper_body body;
  void *context;
} stepper;

typedef struct stepper_counts {
  uint64_t inside;     // instructions between start and stop
  uint64_t calls;      // calls that left it
  uint64_t callee[2];  // instructions outside, in calls with even and odd numbers from zero
} stepper_counts;

// Called by `body` right before the code that counts: what comes earlier runs at full speed.
void stepper_begin(void);

// Runs `body` in a child and steps through the code that counts. False where single steps are
// refused or unknown.
bool stepper_run(const stepper *s, stepper_counts *counts);

#endif
