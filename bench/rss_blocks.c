// Resident memory of many equal blocks over what the program asked for.
#include "common/args.h"
#include "common/memory.h"
#include "common/report.h"

#include <stdlib.h>

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "rss_blocks [BLOCKS [BYTES]]");
  uint64_t count = args_number(&a, 0, 2000000);
  size_t bytes = args_number(&a, 1, 128);
  args_end(&a, 2);

  uint64_t before = memory_resident_bytes();
  for (uint64_t i = 0; i < count; i++) {
    char *block = malloc(bytes);
    memory_demand(block);
    memory_touch(block, bytes);
  }
  uint64_t resident = memory_resident_bytes() - before;

  double overhead = ((double)resident / (double)(count * bytes) - 1) * 100;
  report_open("rss_blocks");
  report_count("blocks", count);
  report_count("bytes", bytes);
  report_count("resident_bytes", resident);
  report_real("overhead_pct", overhead);
  report_close("%llu x %zu B: %.2f %% resident over the payload", (unsigned long long)count, bytes,
               overhead);
}
