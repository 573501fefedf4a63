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

// False where there is no such file.
static bool read_percent(const char *path, unsigned *percent) {
  char text[PRESSURE_BYTES];
  if (tsl_os_read_file(path, text, sizeof text - 1) == 0) return false;
  *percent = tsl_pressure_parse(text);
  return true;
}

// The path that a container was told may be the host's (cgroup.h): its own group is then the root.
static unsigned group_percent(void) {
  char group[TSL_CGROUP_GROUP_BYTES], path[TSL_CGROUP_FILE_BYTES];
  unsigned percent = 0;
  if (!tsl_cgroup_group(2, group)) return 0;
  tsl_format(path, sizeof path, "/sys/fs/cgroup%s/memory.pressure", group);
  if (!read_percent(path, &percent)) read_percent("/sys/fs/cgroup/memory.pressure", &percent);
  return percent;
}

bool tsl_pressure_is_high(void) {
  unsigned percent = 0;
  read_percent("/proc/pressure/memory", &percent);
  return percent >= HIGH_PERCENT || group_percent() >= HIGH_PERCENT;
}
