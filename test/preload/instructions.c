// One pair of an allocation and its free, repeated, for a tool that counts instructions: the
// function `measured` holds nothing else but its loop. Or one account of so many epochs, or one
// walk around so much memory.
//
//   preload_instructions PAIR COUNT
#include <stddef.h>

#include "../check.h"
#include "tslab.h"

#pragma weak tslab_epoch_blocks_each
#pragma weak tslab_epoch_open
#pragma weak tslab_epoch_malloc
#pragma weak tslab_epoch_get_stats
#pragma weak tslab_epoch_close
#pragma weak tslab_epoch_release
#pragma weak tslab_stats_json

typedef void measured_loop(long count);

#define PAIR(name, make, end)                                         \
  __attribute__((noinline)) static void measured_##name(long count) { \
    for (long i = 0; i < count; i++) {                                \
      void *block = make;                                             \
      end;                                                            \
    }                                                                 \
  }

extern void *_Znwm(size_t size) __attribute__((weak));
extern void _ZdlPvm(void *block, size_t size) __attribute__((weak));
extern void *_ZnwmSt11align_val_t(size_t size, size_t alignment) __attribute__((weak));
extern void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t alignment)
    __attribute__((weak));

PAIR(malloc_16, malloc(16), free(block))
PAIR(malloc_64, malloc(64), free(block))
PAIR(malloc_1024, malloc(1024), free(block))
PAIR(calloc_64, calloc(1, 64), free(block))
PAIR(new_64, _Znwm(64), _ZdlPvm(block, 64))
PAIR(new_64_aligned, _ZnwmSt11align_val_t(64, 16), _ZdlPvmSt11align_val_t(block, 64, 16))
PAIR(aligned_alloc_64, aligned_alloc(16, 64), free(block))

static void open_epochs(long count) {
  for (long i = 0; i < count; i++)
    CHECK(tslab_epoch_malloc(tslab_epoch_open("measured", NULL), 100) != NULL);
}

static tslab_epoch walked;

enum { HALF = 1000 };  // of the blocks of `walked`: more than one cell

static void fill_half(void) {
  for (int i = 0; i < HALF; i++) CHECK(tslab_epoch_malloc(walked, 100) != NULL);
}

// Between the halves of an epoch lie so many other epochs, and so many units of other memory.
static void fill_around(long count) {
  walked = tslab_epoch_open("walked", NULL);
  fill_half();
  open_epochs(count);
  for (long i = 0; i < count; i++) CHECK(malloc(64 << 10) != NULL);
  fill_half();
}

static void close_around(long count) {
  fill_around(count);
  CHECK_EQ(tslab_epoch_close(walked).objects, 2 * HALF);
}

static int pass_block(void *block, size_t bytes, void *context) {
  (void)block, (void)bytes, (void)context;
  return 0;
}

static void pass_over(const char *text, size_t length, void *context) {
  (void)text, (void)length, (void)context;
}

static tslab_epoch_stats stats = {.size = sizeof stats};

// What is asked beside what was prepared.
#define ACCOUNT(name, ask)                                            \
  __attribute__((noinline)) static void measured_##name(long count) { \
    (void)count;                                                      \
    ask;                                                              \
  }

static void walk(void) {
  tslab_epoch_get_stats(walked, &stats);
  tslab_epoch_blocks_each(walked, pass_block, NULL);
}

ACCOUNT(walks_of_open, walk())
ACCOUNT(walks_of_closed, walk(); tslab_epoch_release(walked))
ACCOUNT(json_of_epochs, tslab_stats_json(pass_over, NULL))

static const struct pair {
  const char *name;
  measured_loop *run;
  measured_loop *prepare;
} pairs[] = {
    {"malloc_16", measured_malloc_16, NULL},
    {"malloc_64", measured_malloc_64, NULL},
    {"malloc_1024", measured_malloc_1024, NULL},
    {"calloc_64", measured_calloc_64, NULL},
    {"new_64", measured_new_64, NULL},
    {"new_64_aligned", measured_new_64_aligned, NULL},
    {"aligned_alloc_64", measured_aligned_alloc_64, NULL},
    {"walks_of_open", measured_walks_of_open, fill_around},
    {"walks_of_closed", measured_walks_of_closed, close_around},
    {"json_of_epochs", measured_json_of_epochs, open_epochs},
};

int main(int count, char **values) {
  CHECK_EQ(count, 3);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (strcmp(pairs[i].name, values[1]) != 0) continue;
    long times = strtol(values[2], NULL, 10);
    if (pairs[i].prepare != NULL) pairs[i].prepare(times);
    pairs[i].run(times);
    return 0;
  }
  CHECK_THAT(0, "no pair %s", values[1]);
}
