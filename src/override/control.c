// control: glibc's ways to ask and steer its allocator. What has no meaning here is accepted and
// has no effect.
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "base/check.h"
#include "memory/segment.h"
#include "memory/unit_cache.h"
#include "override/override.h"

// glibc's struct mallinfo2 and, with int, struct mallinfo.
#define MALLINFO(number) \
  { number arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost; }
struct info2 MALLINFO(size_t);
struct info MALLINFO(int);

FACE int malloc_trim(size_t keep_bytes) { return tsl_trim(keep_bytes); }

// 1 is success; the parameters steer an allocator of another shape.
FACE int mallopt(int parameter TSL_UNUSED, int value TSL_UNUSED) { return 1; }

FACE struct info2 mallinfo2(void) {
  size_t free = tsl_units_free(), cached = tsl_unit_cache_units();
  size_t used = tsl_units_open() - free - cached;
  return (struct info2){
      .arena = (tsl_units_open() - free + tsl_units_dirty()) << TSL_UNIT_LOG2,
      .ordblks = free + cached,
      .uordblks = used << TSL_UNIT_LOG2,
      .fordblks = (tsl_units_dirty() + cached) << TSL_UNIT_LOG2,
      .keepcost = tsl_units_dirty() << TSL_UNIT_LOG2,
  };
}

// The old interface cannot say more than INT_MAX.
static int clipped(size_t n) { return n > INT32_MAX ? INT32_MAX : (int)n; }

FACE struct info mallinfo(void) {
  struct info2 info = mallinfo2();
  return (struct info){
      .arena = clipped(info.arena),
      .ordblks = clipped(info.ordblks),
      .uordblks = clipped(info.uordblks),
      .fordblks = clipped(info.fordblks),
      .keepcost = clipped(info.keepcost),
  };
}

FACE void malloc_stats(void) {
  struct info2 info = mallinfo2();
  tsl_warn("%zu bytes from the system, %zu in use, %zu free and not yet given back", info.arena,
           info.uordblks, info.fordblks);
}

FACE int malloc_info(int options, FILE *stream) {
  if (options != 0) return -1;
  struct info2 info = mallinfo2();
  fprintf(stream,
          "<malloc version=\"1\">\n<system type=\"current\" size=\"%zu\"/>\n"
          "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n</malloc>\n",
          info.arena, info.ordblks, info.fordblks);
  return 0;
}
