// Threads replace random blocks of 8 to 16,000 bytes; now and then a thread leaves a parcel of its
// blocks for the others and frees the one that it finds (in the manner of rptest).
#include "common/args.h"
#include "common/blocks.h"
#include "common/mailbox.h"
#include "common/random.h"
#include "common/rate.h"
#include "common/threads.h"

#define LIVE_BLOCKS 2000u
#define PARCEL_BLOCKS 64u
#define PARCEL_EVERY 256u

typedef struct parcel {
  void *blocks[PARCEL_BLOCKS];
} parcel;

typedef struct exchange {
  mailbox box;
  uint64_t replacements;
} exchange;

static size_t block_bytes(uint32_t *state) { return 8 + random_below(state, 15993); }

static parcel *parcel_make(block *blocks, uint32_t *state) {
  parcel *p = malloc(sizeof *p);
  memory_demand(p);
  for (unsigned i = 0; i < PARCEL_BLOCKS; i++) {
    block *given = &blocks[random_below(state, LIVE_BLOCKS)];
    p->blocks[i] = given->start;
    *given = block_make(block_bytes(state));
  }
  return p;
}

static void parcel_drop(parcel *p) {
  for (unsigned i = 0; p != NULL && i < PARCEL_BLOCKS; i++) {
    free(p->blocks[i]);
  }
  free(p);
}

static void exchange_thread(void *context, unsigned index) {
  exchange *e = context;
  uint32_t state = random_seed(42, index);
  block blocks[LIVE_BLOCKS] = {{NULL, 0}};
  for (uint64_t i = 0; i < e->replacements; i++) {
    if (i % PARCEL_EVERY == PARCEL_EVERY - 1) {
      parcel_drop(mailbox_swap(&e->box, parcel_make(blocks, &state)));
    }
    block_replace(&blocks[random_below(&state, LIVE_BLOCKS)], block_bytes(&state));
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_rptest [THREADS [OPS]]");
  unsigned threads = args_threads(&a, 0, 2);
  uint64_t operations = args_number(&a, 1, 60000000);
  args_end(&a, 2);
  exchange e = {.replacements = operations / threads / 2 + 1};

  uint64_t ns = threads_run(threads, exchange_thread, &e);
  rate_report(&(rate){"shape_rptest", "Mops/s", threads, 2 * e.replacements * threads, 1e6, ns});
}
