// Resident memory under steady churn: a tenth of 100,000 live blocks of 128 bytes is freed in each
// cycle, then as many are allocated. The tenth is drawn at random, which leaves blocks in every
// slab; with --oldest it is the oldest one, whose slabs drain.
// Every ten cycles the program reads what it holds resident beyond what it held before the first
// block, and how many slabs its allocator opened (allocated) and gave up again (recycled): empty
// where it does not tell them, as peers do not. slabs_overflowed is always empty: slabs of ours
// overflow no list. The file that tells them is there from the first blocks on, so that it does not
// pass for growth.
#include "common/allocator.h"
#include "common/args.h"
#include "common/counters.h"
#include "common/csv.h"
#include "common/memory.h"
#include "common/output.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>

#define BYTES 128u
#define CYCLES_A_SAMPLE 10u
#define SETTLED 10u  // samples until the churn has met every block more than once

typedef struct churn_point {
  uint64_t resident_bytes;
  uint64_t opened;
  uint64_t slabs;
} churn_point;

typedef struct churn {
  char **blocks;
  uint32_t *order;  // of blocks; a cycle replaces a tenth of it, from `first` on
  uint32_t first;
  uint32_t live;
  bool is_oldest;
  uint32_t state;
  uint64_t before;
  counters counters;
  churn_point *points;
  uint64_t sampled;
} churn;

static char *block_make(void) {
  char *block = malloc(BYTES);
  memory_demand(block);
  memory_touch(block, BYTES);
  return block;
}

static void churn_sample(churn *c) {
  c->points[c->sampled++] =
      (churn_point){memory_resident_bytes() - c->before, counters_sum(&c->counters, COUNTER_OPENED),
                    counters_sum(&c->counters, COUNTER_SLABS)};
}

static void churn_draw(churn *c, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t j = i + random_below(&c->state, c->live - i);
    uint32_t swapped = c->order[i];
    c->order[i] = c->order[j];
    c->order[j] = swapped;
  }
}

static char **churn_block(churn *c, uint32_t i) {
  return &c->blocks[c->order[(c->first + i) % c->live]];
}

static void churn_replace(churn *c, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    free(*churn_block(c, i));
  }
  for (uint32_t i = 0; i < count; i++) {
    *churn_block(c, i) = block_make();
  }
}

static void churn_cycle(churn *c) {
  uint32_t count = c->live / 10;
  if (c->is_oldest) {
    churn_replace(c, count);
    c->first = (c->first + count) % c->live;
    return;
  }
  churn_draw(c, count);
  churn_replace(c, count);
}

static void churn_run(churn *c, uint64_t cycles) {
  for (uint32_t i = 0; i < c->live; i++) {
    c->blocks[i] = block_make();
    c->order[i] = i;
  }
  c->counters = counters_open();
  churn_sample(c);
  for (uint64_t cycle = 1; cycle <= cycles; cycle++) {
    churn_cycle(c);
    if (cycle % CYCLES_A_SAMPLE == 0) {
      churn_sample(c);
    }
  }
}

static double mib(uint64_t bytes) { return (double)bytes / 1048576; }

static double growth_pct(uint64_t from, uint64_t to) {
  return ((double)to / (double)from - 1) * 100;
}

static void counts_write(FILE *file, const churn *c, const churn_point *point) {
  if (counters_are_known(&c->counters)) {
    fprintf(file, "%llu,%llu,\n", (unsigned long long)point->opened,
            (unsigned long long)(point->opened - point->slabs));
  } else {
    fputs(",,\n", file);
  }
}

static void churn_write(const churn *c, const char *path) {
  FILE *file =
      csv_open(path, "allocator,cycle,rss_mib,slabs_allocated,slabs_recycled,slabs_overflowed");
  for (uint64_t i = 0; i < c->sampled; i++) {
    fprintf(file, "%s,%llu,%.3f,", allocator_file(), (unsigned long long)(i * CYCLES_A_SAMPLE),
            mib(c->points[i].resident_bytes));
    counts_write(file, c, &c->points[i]);
  }
  output_close(file, path);
}

static void churn_report(const churn *c, uint64_t cycles) {
  uint64_t first = c->points[0].resident_bytes;
  uint64_t settled = c->points[SETTLED].resident_bytes;
  uint64_t last = c->points[c->sampled - 1].resident_bytes;
  uint64_t peak = 0;
  for (uint64_t i = 0; i < c->sampled; i++) {
    uint64_t now = c->points[i].resident_bytes;
    peak = now > peak ? now : peak;
  }
  report_open("churn_test");
  report_count("live", c->live);
  report_count("cycles", cycles);
  report_count("first_bytes", first);
  report_count("last_bytes", last);
  report_count("peak_bytes", peak);
  report_real("growth_pct", growth_pct(first, last));
  report_real("settled_growth_pct", growth_pct(settled, last));
  report_close(
      "resident after %llu cycles: %.2f MiB, %+.2f %% over the first fill, %+.2f %% since cycle %u",
      (unsigned long long)cycles, mib(last), growth_pct(first, last), growth_pct(settled, last),
      SETTLED * CYCLES_A_SAMPLE);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "churn_test [--oldest] [--csv FILE] [--live N] [--cycles N]");
  const char *csv_path = output_take(&a, "--csv");
  churn c = {.is_oldest = args_take_flag(&a, "--oldest"), .state = 42};
  c.live = args_take_number32(&a, "--live", 100000);
  uint64_t cycles = args_take_number(&a, "--cycles", 1000);
  args_end(&a, 0);
  if (c.live < 10 || cycles < SETTLED * CYCLES_A_SAMPLE) {
    args_refuse(&a, "too few", c.live < 10 ? "--live" : "--cycles");
  }
  c.blocks = memory_map(c.live * sizeof *c.blocks);
  c.order = memory_map(c.live * sizeof *c.order);
  c.points = memory_map((cycles / CYCLES_A_SAMPLE + 1) * sizeof *c.points);
  counters_demand();
  c.before = memory_resident_bytes();

  churn_run(&c, cycles);

  if (csv_path != NULL) {
    churn_write(&c, csv_path);
  }
  churn_report(&c, cycles);
}
