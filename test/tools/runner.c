// runner SITUATION: a program that allocates in a hurry, as a doctor may find it (patients.h):
//   bursts     64 MiB in blocks of 1 MiB, allocated and freed again and again
//   limited    the same, having set a soft limit of 32 MiB
//   piles      100,000 objects allocated, and then freed, again and again, in a program with epochs
//   parsers    short epochs that free most, allocate a few objects of several sizes, and end
//   crew       32 threads that each fill 4 MiB with small objects, free them, and rest a while
//   batches    64 MiB in an epoch that is released, again and again
#include <tslab.h>
#include <unistd.h>

#include "patients.h"

enum {
  BURST_BLOCKS = 64,
  BURST_BYTES = 1 << 20,
  PILE_BLOCKS = 100000,
  PILE_BYTES = 64,
  TOKENS = 600,
  TOKEN_BYTES = 48,
  NODES = 4,
  LEAST_NODE_BYTES = 256,
  NODE_SIZES = 4,
  CREW = 32,
  CREW_BLOCKS = 8192,
  CREW_BYTES = 512,
  CREW_REST_US = 100000,
  BATCH_BLOCKS = 64000,
  BATCH_BYTES = 1000
};

static void *bursts_run(void *unused) {
  static void *blocks[BURST_BLOCKS];
  for (;; usleep(1000)) {
    for (int i = 0; i < BURST_BLOCKS; i++) blocks[i] = filled(BURST_BYTES);
    for (int i = 0; i < BURST_BLOCKS; i++) free(blocks[i]);
  }
  return unused;
}

static void bursts_start(void) { thread_start(bursts_run, NULL); }

static void limited_start(void) {
  if (tslab_option_set("soft_limit", "32M") != 0) abort();
  bursts_start();
}

static void *piles_run(void *unused) {
  static void *blocks[PILE_BLOCKS];
  tslab_epoch_close(tslab_epoch_open("start", NULL));
  for (;;) {
    for (int i = 0; i < PILE_BLOCKS; i++) blocks[i] = malloc(PILE_BYTES);
    for (int i = 0; i < PILE_BLOCKS; i++) free(blocks[i]);
  }
  return unused;
}

static void piles_start(void) { thread_start(piles_run, NULL); }

static void text_parse(void) {
  for (int i = 0; i < TOKENS; i++) free(filled(TOKEN_BYTES));
  for (size_t size = 1; size <= NODE_SIZES; size++) {
    for (int i = 0; i < NODES; i++) filled(LEAST_NODE_BYTES * size);
  }
}

static void *parsers_run(void *unused) {
  for (;;) {
    tslab_epoch text = tslab_epoch_open("parse", NULL);
    tslab_scope here;
    if (tslab_scope_enter(&here, text) != 0) abort();
    text_parse();
    tslab_scope_leave(&here);
    tslab_epoch_release(text);
  }
  return unused;
}

static void parsers_start(void) { thread_start(parsers_run, NULL); }

static void *crew_run(void *unused) {
  void **blocks = filled(CREW_BLOCKS * sizeof *blocks);
  for (;; usleep(CREW_REST_US)) {
    for (int i = 0; i < CREW_BLOCKS; i++) blocks[i] = filled(CREW_BYTES);
    for (int i = 0; i < CREW_BLOCKS; i++) free(blocks[i]);
  }
  return unused;
}

static void crew_start(void) {
  for (int i = 0; i < CREW; i++) thread_start(crew_run, NULL);
}

static void *batches_run(void *unused) {
  for (;;) {
    tslab_epoch batch = tslab_epoch_open("batch", NULL);
    for (int i = 0; i < BATCH_BLOCKS; i++) {
      if (tslab_epoch_malloc(batch, BATCH_BYTES) == NULL) abort();
    }
    tslab_epoch_release(batch);
  }
  return unused;
}

static void batches_start(void) { thread_start(batches_run, NULL); }

static const struct situation situations[] = {{"bursts", bursts_start},
                                              {"limited", limited_start},
                                              {"piles", piles_start},
                                              {"parsers", parsers_start},
                                              {"crew", crew_start},
                                              {"batches", batches_start},
                                              {NULL, NULL}};

int main(int count, char **arguments) { return situation_main(count, arguments, situations); }
