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
  bulk b = {count, bytes, memory_map(count * sizeof(char *)), memory_map(count * sizeof(uint32_t))};
  for (uint32_t i = 0; i < count; i++) {
    b.order[i] = i;
  }
  uint32_t state = 1;
  random_shuffle(&state, b.order, count);
  return b;
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "bulk_random [BLOCKS [BYTES]]");
  uint32_t count = args_number32(&a, 0, 1000000);
  size_t bytes = args_number(&a, 1, 64);
  args_end(&a, 2);
  bulk b = bulk_open(count, bytes);

  bulk_fill_ns(&b);
  bulk_clear_ns(&b);
  uint64_t malloc_total = 0;
  uint64_t free_total = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    malloc_total += bulk_fill_ns(&b);
    free_total += bulk_clear_ns(&b);
  }

  double malloc_ns = (double)malloc_total / ROUNDS / count;
  double free_ns = (double)free_total / ROUNDS / count;
  report_open("bulk_random");
  report_count("blocks", count);
  report_count("bytes", bytes);
  report_real("malloc_ns", malloc_ns);
  report_real("free_ns", free_ns);
  report_close("%u x %zu B in random order: malloc %.1f ns, free %.1f ns", count, bytes, malloc_ns,
               free_ns);
}
