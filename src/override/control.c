// control: glibc's ways to ask and steer its allocator. What has no meaning here is accepted and
// has no effect.
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "alloc/realloc.h"
#include "base/warn.h"
#include "memory/mirror.h"
#include "memory/unit_cache.h"
#include "memory/units.h"
#include "observe/census.h"
#include "override/override.h"

// glibc's struct mallinfo2 and, with int, struct mallinfo.
#define MALLINFO(number) \
  { number arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost; }
struct info2 MALLINFO(size_t);
struct info MALLINFO(int);

FACE int malloc_trim(size_t keep_bytes) { return tsl_trim(keep_bytes); }

// 1 is success; the parameters steer an allocator of another shape.
FACE int mallopt(int parameter TSL_UNUSED, int value TSL_UNUSED) { return 1; }

// In the words of glibc, to which large blocks are no part of the arena.
static struct info2 info_of(const struct tsl_census *census) {
  size_t used = census->live_bytes - census->large_bytes;
  size_t rest = census->cached_bytes + census->dirty_bytes;
  size_t free = census->hot_bytes + census->free_bytes + rest;
  return (struct info2){
      .arena = used + free,
      .ordblks = tsl_units_free() + tsl_unit_cache_units(),
      .hblks = tsl_load_relaxed(&tsl_counts.large_objects),
      .hblkhd = census->large_bytes,
      .uordblks = used,
      .fordblks = free,
      .keepcost = rest,
  };
}

FACE struct info2 mallinfo2(void) {
  struct tsl_census census;
  tsl_census_take(&census);
  return info_of(&census);
}

// The old interface cannot say more than INT_MAX.
static int clipped(size_t n) { return n > INT32_MAX ? INT32_MAX : (int)n; }

FACE struct info mallinfo(void) {
  struct info2 info = mallinfo2();
  return (struct info){
      .arena = clipped(info.arena),
      .ordblks = clipped(info.ordblks),
      .hblks = clipped(info.hblks),
      .hblkhd = clipped(info.hblkhd),
      .uordblks = clipped(info.uordblks),
      .fordblks = clipped(info.fordblks),
      .keepcost = clipped(info.keepcost),
  };
}

FACE void malloc_stats(void) {
  struct tsl_census census;
  tsl_census_take(&census);
  tsl_warn("%zu bytes resident, %zu in use by %zu blocks", census.resident_bytes, census.live_bytes,
           census.live_objects);
}

static void put_part(FILE *stream, const char *type, size_t bytes) {
  fprintf(stream, "<total type=\"%s\" size=\"%zu\"/>\n", type, bytes);
}

// The parts are those of tslab_stats, which add up to what is resident.
FACE int malloc_info(int options, FILE *stream) {
  struct tsl_census census;
  if (options != 0) return -1;
  tsl_census_take(&census);
  fprintf(stream, "<malloc version=\"1\">\n<system type=\"current\" size=\"%zu\"/>\n",
          census.resident_bytes);
  fprintf(stream, "<total type=\"live\" count=\"%zu\" size=\"%zu\"/>\n", census.live_objects,
          census.live_bytes);
  put_part(stream, "hot", census.hot_bytes);
  put_part(stream, "free", census.free_bytes);
  put_part(stream, "cached", census.cached_bytes);
  put_part(stream, "dirty", census.dirty_bytes);
  put_part(stream, "metadata", census.metadata_bytes);
  put_part(stream, "untouched", census.untouched_bytes);
  fputs("</malloc>\n", stream);
  return 0;
}
