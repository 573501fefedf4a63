// What an idle process gives back: a burst of blocks of 16 to 1,039 bytes, all of them freed, or
// with --pinned all but 1 in 50, with --pinned-seldom all but 1 in 776, so that about one page in a
// hundred holds one; with --handed by another thread, which then ends. With --inside they lie in an
// epoch that stays open; with --dealt in a thousand such epochs, dealt out in turn. Then the
// program sleeps, and reads 1, 10 and 60 seconds after the last free how many bytes less are
// resident than at the top of the burst. Pages that the allocator only offered to the system count
// as resident; they are told beside.
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PINNED_1_IN 50u
#define SELDOM_PINNED_1_IN 776u
#define WAITS 3u
#define MOST_EPOCHS 1000u

typedef struct moment {
  uint64_t ms;  // after the last free
  uint64_t resident_bytes;
  uint64_t lazy_bytes;
} moment;

typedef struct idle {
  uint32_t pinned_1_in;  // 0: all blocks are freed
  bool is_handed;
  uint32_t epochs;  // that stay open, and share the blocks; 0: none
  uint32_t count;
  char **blocks;
  uint64_t top_bytes;   // resident when all blocks lived, those before the first one not included
  uint64_t live_bytes;  // as asked for, after the burst
  uint64_t before;
  moment moments[WAITS + 1];
} idle;

static size_t block_bytes(uint32_t *state) { return 16 + (random_next(state) & 1023); }

static char *block_make(uint32_t *state) {
  size_t bytes = block_bytes(state);
  char *block = malloc(bytes);
  memory_demand(block);
  memory_touch(block, bytes);
  return block;
}

static void burst_fill(idle *i) {
  uint32_t state = 42;
  for (uint32_t n = 0; n < i->count; n++) {
    i->blocks[n] = block_make(&state);
  }
}

// Only once, where there is one epoch.
static void burst_fill_inside(idle *i) {
  uint32_t state = 42;
  tslab_epoch epochs[MOST_EPOCHS];
  for (uint32_t n = 0; n < i->epochs; n++) {
    epochs[n] = epochs_open("burst", NULL);
  }
  for (uint32_t n = 0; n < i->count;) {
    tslab_scope scope;
    epochs_check(tslab_scope_enter(&scope, epochs[n % i->epochs]));
    do {
      i->blocks[n++] = block_make(&state);
    } while (i->epochs == 1 && n < i->count);
    epochs_check(tslab_scope_leave(&scope));
  }
}

static void burst_end(idle *i) {
  uint32_t sizes = 42;
  uint32_t state = 43;
  for (uint32_t n = 0; n < i->count; n++) {
    size_t bytes = block_bytes(&sizes);
    if (i->pinned_1_in != 0 && random_below(&state, i->pinned_1_in) == 0) {
      i->live_bytes += bytes;
    } else {
      free(i->blocks[n]);
    }
  }
}

static void *freer_run(void *i) {
  burst_end(i);
  return NULL;
}

static void burst_end_elsewhere(idle *i) {
  pthread_t freer;
  if (pthread_create(&freer, NULL, freer_run, i) != 0 || pthread_join(freer, NULL) != 0) {
    fputs("a thread cannot be created\n", stderr);
    exit(1);
  }
}

static uint64_t own_bytes(const idle *i) {
  uint64_t resident = memory_resident_bytes();
  return resident < i->before ? 0 : resident - i->before;
}

static void idle_run(idle *i) {
  i->before = memory_resident_bytes();
  i->epochs != 0 ? burst_fill_inside(i) : burst_fill(i);
  i->top_bytes = own_bytes(i);
  i->is_handed ? burst_end_elsewhere(i) : burst_end(i);
  uint64_t start = clock_ns();
  for (unsigned n = 0; n <= WAITS; n++) {
    clock_wait_until(start + i->moments[n].ms * 1000000u);
    i->moments[n].resident_bytes = own_bytes(i);
    i->moments[n].lazy_bytes = memory_lazy_bytes();
  }
}

static double returned_bytes(const idle *i, const moment *m) {
  return (double)i->top_bytes - (double)m->resident_bytes;
}

static double returned_pct(const idle *i, const moment *m) {
  return returned_bytes(i, m) / ((double)i->top_bytes - (double)i->live_bytes) * 100;
}

static void moment_report(const idle *i, const moment *m) {
  char key[64];
  snprintf(key, sizeof key, "returned_%llums_bytes", (unsigned long long)m->ms);
  report_real(key, returned_bytes(i, m));
  snprintf(key, sizeof key, "returned_%llums_pct", (unsigned long long)m->ms);
  report_real(key, returned_pct(i, m));
  snprintf(key, sizeof key, "lazy_%llums_bytes", (unsigned long long)m->ms);
  report_count(key, m->lazy_bytes);
}

static void idle_report(const idle *i) {
  report_open("idle_return");
  report_text("mode", i->pinned_1_in != 0 ? "pinned" : "all");
  report_count("blocks", i->count);
  report_count("top_bytes", i->top_bytes);
  report_count("live_bytes", i->live_bytes);
  for (unsigned n = 0; n <= WAITS; n++) {
    moment_report(i, &i->moments[n]);
  }
  report_close("burst of %.1f MiB, %.1f MiB live after it", (double)i->top_bytes / 1048576,
               (double)i->live_bytes / 1048576);
  for (unsigned n = 0; n <= WAITS; n++) {
    const moment *m = &i->moments[n];
    printf("%6llu ms after: %.1f %% of what is free returned, %.1f MiB resident\n",
           (unsigned long long)m->ms, returned_pct(i, m), (double)m->resident_bytes / 1048576);
  }
}

int main(int argc, char **argv) {
  static const uint64_t waits_ms[WAITS] = {1000, 10000, 60000};
  args a = args_open(argc, argv,
                     "idle_return [--pinned | --pinned-seldom] [--handed] [--inside | --dealt] "
                     "[BLOCKS [MS [MS [MS]]]]");
  idle i = {.is_handed = args_take_flag(&a, "--handed")};
  i.pinned_1_in = args_take_flag(&a, "--pinned")          ? PINNED_1_IN
                  : args_take_flag(&a, "--pinned-seldom") ? SELDOM_PINNED_1_IN
                                                          : 0;
  i.epochs = args_take_flag(&a, "--inside") ? 1 : args_take_flag(&a, "--dealt") ? MOST_EPOCHS : 0;
  if (i.epochs != 0) {
    epochs_demand();
  }
  i.count = args_number32(&a, 0, 400000);
  for (unsigned n = 1; n <= WAITS; n++) {
    i.moments[n].ms = args_number(&a, (int)n, waits_ms[n - 1]);
    if (i.moments[n].ms <= i.moments[n - 1].ms) {
      args_refuse(&a, "not later than the moment before", a.values[n]);
    }
  }
  args_end(&a, WAITS + 1);
  i.blocks = memory_map(i.count * sizeof *i.blocks);

  idle_run(&i);
  idle_report(&i);
}
