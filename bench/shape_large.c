// Blocks of 5 to 25 MiB, 20 live, each filled once (in the manner of malloc-large).
#include "common/args.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/rate.h"

#include <stdlib.h>
#include <string.h>

#define LIVE 20u
#define MIB (1u << 20)

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_large [BLOCKS]");
  uint64_t count = args_number(&a, 0, 400);
  args_end(&a, 1);

  char *blocks[LIVE] = {NULL};
  uint32_t state = 42;
  uint64_t start = clock_ns();
  for (uint64_t i = 0; i < count; i++) {
    char **slot = &blocks[random_below(&state, LIVE)];
    free(*slot);
    size_t bytes = 5 * MIB + random_below(&state, 20 * MIB);
    *slot = malloc(bytes);
    memory_demand(*slot);
    memset(*slot, 1, bytes);
  }
  rate_report(&(rate){"shape_large", "blocks/s", 1, count, 1, clock_ns() - start});
}
