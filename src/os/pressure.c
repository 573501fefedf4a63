#include "os/pressure.h"

#include <string.h>

#include "base/format.h"
#include "os/cgroup.h"
#include "os/os.h"

enum { HIGH_PERCENT = 10, PRESSURE_BYTES = 256 };

unsigned tsl_pressure_parse(const char *text) {
  static const char start[] = "some avg10=";
  if (strncmp(text, start, sizeof start - 1) != 0) return 0;
  unsigned percent = 0;
  for (text += sizeof start - 1; *text >= '0' && *text <= '9' && percent < 100; text++)
    percent = percent * 10 + (unsigned)(*text - '0');
  return percent;
}

static bool is_high_in(const char *path) {
  char text[PRESSURE_BYTES];
  tsl_os_read_file(path, text, sizeof text - 1);
  return tsl_pressure_parse(text) >= HIGH_PERCENT;
}

static bool is_high_in_group(void) {
  char group[TSL_CGROUP_GROUP_BYTES], path[TSL_CGROUP_FILE_BYTES];
  if (!tsl_cgroup_group(2, group)) return false;
  tsl_format(path, sizeof path, "/sys/fs/cgroup%s/memory.pressure", group);
  return is_high_in(path) || is_high_in("/sys/fs/cgroup/memory.pressure");
}

bool tsl_pressure_is_high(void) {
  return is_high_in("/proc/pressure/memory") || is_high_in_group();
}
