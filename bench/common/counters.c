#include "counters.h"

#include <stdlib.h>
#include <tslab.h>

#pragma weak tslab_option_set

#define LARGE_BYTES 1048576u

typedef struct counter_name {
  const char *table;
  const char *field;
} counter_name;

static const counter_name names[COUNTERS] = {
    [COUNTER_OPENED] = {"bins", "opened"},
    [COUNTER_SLABS] = {"bins", "slabs"},
    [COUNTER_REFILLS] = {"bins", "refills"},
    [COUNTER_CELLS] = {"bins", "cells_taken"},
    [COUNTER_ANEW] = {"bins", "cells_restarted"},
    [COUNTER_RETURNED] = {"bins", "returned"},
    [COUNTER_SENT] = {"bins", "sent"},
    [COUNTER_LARGE] = {"process", "large_allocations"},
    [COUNTER_SAMPLED] = {"process", "samples_taken"},
};

// A large block is told at once.
void counters_demand(void) {
  if (tslab_option_set != NULL) {
    tslab_option_set("stats_delay_ms", "0");
    free(malloc(LARGE_BYTES));
  }
}

counters counters_open(void) {
  counters c;
  tslab_reader_error error = tslab_reader_open(&c.reader, (long)getpid());
  for (unsigned i = 0; i < COUNTERS && error == TSLAB_READER_OK; i++) {
    error = tslab_reader_column_find(&c.reader, names[i].table, names[i].field, &c.columns[i]);
  }
  if (error != TSLAB_READER_OK) {
    tslab_reader_close(&c.reader);
  }
  return c;
}

uint64_t counters_sum(const counters *c, counter which) {
  uint64_t sum;
  bool is_told = counters_are_known(c) &&
                 tslab_reader_sum(&c->reader, &c->columns[which], &sum) == TSLAB_READER_OK;
  return is_told ? sum : 0;
}

uint64_t counters_slow_paths(const counters *c) {
  static const counter causes[] = {COUNTER_REFILLS, COUNTER_CELLS, COUNTER_ANEW,   COUNTER_RETURNED,
                                   COUNTER_SENT,    COUNTER_LARGE, COUNTER_SAMPLED};
  uint64_t sum = 0;
  for (unsigned i = 0; i < sizeof causes / sizeof causes[0]; i++) {
    sum += counters_sum(c, causes[i]);
  }
  return sum;
}
