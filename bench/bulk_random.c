// Many blocks of one size are allocated, freed in random order, and allocated again, several rounds
// over. The first round meets fresh memory and is not counted.
#include "common/args.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>

#define ROUNDS 5u

typedef struct bulk {
  uint32_t count;
  size_t bytes;
  char **blocks;
  uint32_t *order;
  uint64_t malloc_ns;  // of all rounds
  uint64_t free_ns;
} bulk;

static uint64_t bulk_fill_ns(const bulk *b) {
  uint64_t start = clock_ns();
  for (uint32_t i = 0; i < b->count; i++) {
    char *block = malloc(b->bytes);
    memory_demand(block);
    block[0] = 1;
    b->blocks[i] = block;
  }
  return clock_ns() - start;
}

static uint64_t bulk_clear_ns(const bulk *b) {
  uint64_t start = clock_ns();
  for (uint32_t i = 0; i < b->count; i++) {
    free(b->blocks[b->order[i]]);
  }
  return clock_ns() - start;
}

static bulk bulk_open(uint32_t count, size_t bytes) {
  bulk b = {.count = count, .bytes = bytes};
  b.blocks = memory_map(count * sizeof *b.blocks);
  b.order = memory_map(count * sizeof *b.order);
  for (uint32_t i = 0; i < count; i++) {
    b.order[i] = i;
  }
  uint32_t state = 1;
  random_shuffle(&state, b.order, count);
  return b;
}

static void bulk_run(bulk *b) {
  bulk_fill_ns(b);
  bulk_clear_ns(b);
  for (unsigned round = 0; round < ROUNDS; round++) {
    b->malloc_ns += bulk_fill_ns(b);
    b->free_ns += bulk_clear_ns(b);
  }
}

static void bulk_report(const bulk *b) {
  double malloc_ns = (double)b->malloc_ns / ROUNDS / b->count;
  double free_ns = (double)b->free_ns / ROUNDS / b->count;
  report_open("bulk_random");
  report_count("blocks", b->count);
  report_count("bytes", b->bytes);
  report_real("malloc_ns", malloc_ns);
  report_real("free_ns", free_ns);
  report_close("%u x %zu B in random order: malloc %.1f ns, free %.1f ns", b->count, b->bytes,
               malloc_ns, free_ns);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "bulk_random [BLOCKS [BYTES]]");
  uint32_t count = args_number32(&a, 0, 1000000);
  size_t bytes = args_number(&a, 1, 64);
  args_end(&a, 2);
  bulk b = bulk_open(count, bytes);
  bulk_run(&b);
  bulk_report(&b);
}
