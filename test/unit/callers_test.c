#include "os/callers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test.h"

enum { MOST = 32, DEPTH = 5 };

static uintptr_t walked[MOST], unwound[MOST], recalled[MOST];
static unsigned walked_depth, unwound_depth, recalled_depth;

TSL_NOINLINE static void look(void) {
  walked_depth = tsl_callers_walk(__builtin_frame_address(0), walked, MOST);
  recalled_depth = tsl_callers_recall(__builtin_frame_address(0), recalled, MOST);
  unwound_depth = tsl_callers_unwind(1, unwound, MOST);
}

// Not a tail call: each has a frame.
TSL_NOINLINE static unsigned descend(unsigned depth) {
  if (depth == 0) {
    look();
    return 0;
  }
  return descend(depth - 1) + 1;
}

static void both_ways_see_the_same(void) {
  CHECK_EQ(descend(DEPTH), DEPTH);
  CHECK_GE(walked_depth, DEPTH + 2);
  if (!TSL_HAS_UNWINDER) return;
  CHECK_GE(unwound_depth, walked_depth);
  CHECK(memcmp(walked, unwound, (DEPTH + 2) * sizeof *walked) == 0);
  for (unsigned i = 1; i < DEPTH; i++) CHECK_EQ(walked[i], walked[1]);
}

// From the same place.
#define TWICE(call) \
  for (volatile unsigned i_ = 0; i_ < 2; i_++) call

// Only x86-64 has return addresses where they can be found again.
#if defined(__x86_64__)
enum { IS_RECALLED = 1 };
#else
enum { IS_RECALLED = 0 };
#endif

static void check_recalled(void) {
  CHECK_EQ(recalled_depth, IS_RECALLED ? unwound_depth : 0);
  CHECK(memcmp(recalled, unwound, recalled_depth * sizeof *unwound) == 0);
}

static void what_was_unwound_is_recalled(void) {
  CHECK_EQ(tsl_callers_recall(NULL, recalled, MOST), 0);
  if (!TSL_HAS_UNWINDER) return;
  descend(1);
  CHECK_EQ(recalled_depth, 0);
  TWICE(descend(DEPTH));
  check_recalled();
  TWICE(descend(2 * MOST));
  check_recalled();
}

// The frame is as large as it is asked for.
TSL_NOINLINE static unsigned descend_with(unsigned bytes) {
  volatile unsigned char *own = __builtin_alloca(bytes);
  own[0] = 1;
  look();
  return own[0];
}

static void frames_that_vary_are_not_recalled(void) {
  TWICE(descend_with(64));
  check_recalled();
  TWICE(descend_with(4096));
  CHECK_EQ(recalled_depth, 0);
  TWICE(descend_with(64));
  CHECK_EQ(recalled_depth, 0);
}

static void *descend_in_thread(void *unused) {
  descend(DEPTH);
  return unused;
}

static void threads_have_ends(void) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, descend_in_thread, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_GE(walked_depth, DEPTH + 2);
  CHECK(walked_depth < MOST);
}

static void depth_is_bounded(void) {
  descend(3 * MOST);
  CHECK_EQ(walked_depth, MOST);
  CHECK_EQ(unwound_depth, TSL_HAS_UNWINDER ? MOST : 0);
}

// What code without frame pointers leaves in the register.
static void garbage_is_not_followed(void) {
  uintptr_t calls[MOST], here[4] = {0, 0, 0, 0};
  const uintptr_t garbage[] = {0, 1, 8, UINTPTR_MAX - 7, (uintptr_t)here + 4};
  for (unsigned i = 0; i < sizeof garbage / sizeof *garbage; i++)
    CHECK_EQ(tsl_callers_walk((void *)garbage[i], calls, MOST), 0);
  here[0] = (uintptr_t)here;  // a frame that is its own caller
  here[1] = (uintptr_t)&garbage_is_not_followed;
  CHECK_EQ(tsl_callers_walk(here, calls, MOST), 1);
  here[0] = 12345;
  CHECK_EQ(tsl_callers_walk(here, calls, MOST), 1);
}

// The end of a stack that the program made itself is not known; between it and the thread's lies
// what cannot be read, such as the next one's guard.
static void other_stacks_are_not_walked(void) {
  enum { STACK_BYTES = 1 << 17, GUARD_BYTES = 1 << 16 };
  uintptr_t calls[MOST];
  char *stack = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(stack != MAP_FAILED);
  CHECK_EQ(mprotect(stack + STACK_BYTES, GUARD_BYTES, PROT_NONE), 0);
  uintptr_t *frame = (uintptr_t *)(void *)stack;
  frame[0] = (uintptr_t)(frame + 2);
  frame[1] = frame[3] = (uintptr_t)&other_stacks_are_not_walked;
  CHECK_EQ(tsl_callers_walk(frame, calls, MOST), 0);
}

int main(void) {
  RUN(both_ways_see_the_same);
  RUN(what_was_unwound_is_recalled);
  RUN(frames_that_vary_are_not_recalled);
  RUN(threads_have_ends);
  RUN(depth_is_bounded);
  RUN(garbage_is_not_followed);
  RUN(other_stacks_are_not_walked);
  return test_status();
}
