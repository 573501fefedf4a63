#include "memory/region.h"

#include "memory/growth.h"
#include "os_fake.h"
#include "test.h"

static void open_region(size_t bytes) {
  os_fake.limit_bytes = bytes;
  CHECK(tsl_region_init());
}

// R2
static void map_is_readable_and_zero(void) {
  open_region((size_t)1 << 28);
  CHECK(tsl_region_grow(2000));
  for (size_t unit = 0; unit < tsl_region.units; unit++) {
    if (*tsl_map_entry(unit) != 0) CHECK_EQ(*tsl_map_entry(unit), 0);
  }
}

static void lookup_of_any_address(void) {
  int local = 0;
  open_region((size_t)1 << 24);
  CHECK(tsl_region_grow(1));
  *tsl_map_entry(tsl_region.first_unit) = 77;
  *tsl_map_entry(tsl_region.units - 1) = 78;
  char *base = (char *)tsl_region.base, *end = base + tsl_region.span_bytes;
  char *first = (char *)tsl_unit_address(tsl_region.first_unit);
  CHECK_EQ(tsl_map_lookup(NULL), 0);
  CHECK_EQ(tsl_map_lookup((void *)UINTPTR_MAX), 0);
  CHECK_EQ(tsl_map_lookup(&local), 0);
  CHECK_EQ(tsl_map_lookup(base), 0);
  CHECK_EQ(tsl_map_lookup(base - 1), 0);
  CHECK_EQ(tsl_map_lookup(end), 0);
  CHECK_EQ(tsl_map_lookup(first - 1), 0);
  CHECK_EQ(tsl_map_lookup(first), 77);
  CHECK_EQ(tsl_map_lookup(first + TSL_UNIT_BYTES - 1), 77);
  CHECK_EQ(tsl_map_lookup(first + TSL_UNIT_BYTES), 0);
  CHECK_EQ(tsl_map_lookup((char *)tsl_unit_address(tsl_region.units) - 1), 78);
  CHECK_EQ(tsl_map_lookup((char *)tsl_unit_address(tsl_region.units)), 0);
  CHECK_EQ(tsl_map_lookup(end - 1), 0);
}

int main(void) {
  RUN(map_is_readable_and_zero);
  RUN(lookup_of_any_address);
  return test_status();
}
