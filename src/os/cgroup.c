#include "os/cgroup.h"

#include <stdbool.h>
#include <string.h>

#include "base/format.h"
#include "os/os.h"

enum { LINES_BYTES = 4096, CONTROL_BYTES = 32, NO_LIMIT_LOG2 = 62 };

static const struct version {
  const char *root, *file;
} versions[] = {
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
    {"/sys/fs/cgroup", "memory.max"},
};

// Whether `name` is one of the names between commas of [list, end).
static bool list_has(const char *list, const char *end, const char *name) {
  while (list < end) {
    size_t length = strcspn(list, ",:");
    if (length == strlen(name) && memcmp(list, name, length) == 0) return true;
    list += length + 1;
  }
  return false;
}

// "number:controllers:path"; version 2 has the number 0 and no controllers.
static const char *line_path(const char *line, unsigned version) {
  const char *controllers = strchr(line, ':');
  if (controllers == NULL) return NULL;
  const char *end = strchr(++controllers, ':');
  if (end == NULL) return NULL;
  bool is_second = end == controllers;
  if (version == 2 ? !is_second : !list_has(controllers, end, "memory")) return NULL;
  return end + 1;
}

const char *tsl_cgroup_path(const char *lines, unsigned version, size_t *length) {
  for (; *lines != '\0'; lines += *lines == '\n') {
    const char *path = line_path(lines, version);
    lines += strcspn(lines, "\n");
    if (path == NULL || path > lines) continue;
    *length = (size_t)(lines - path);
    return path;
  }
  return NULL;
}

bool tsl_cgroup_group(unsigned version, char group[static TSL_CGROUP_GROUP_BYTES]) {
  char lines[LINES_BYTES];
  size_t length = 0;
  tsl_os_read_file("/proc/self/cgroup", lines, sizeof lines - 1);
  const char *path = tsl_cgroup_path(lines, version, &length);
  if (path == NULL || length >= TSL_CGROUP_GROUP_BYTES) return false;
  memcpy(group, path, length);
  group[length] = '\0';
  return true;
}

uint64_t tsl_cgroup_parse(const char *text) {
  uint64_t bytes = 0;
  for (; *text >= '0' && *text <= '9'; text++) {
    bytes = bytes * 10 + (uint64_t)(*text - '0');
    if (bytes >> NO_LIMIT_LOG2 != 0) return 0;
  }
  return *text == '\0' || *text == '\n' ? bytes : 0;
}

static uint64_t least_of(uint64_t bytes, uint64_t other) {
  if (other == 0) return bytes;
  return bytes == 0 || other < bytes ? other : bytes;
}

static uint64_t group_limit(const struct version *version, const char *group) {
  char path[TSL_CGROUP_FILE_BYTES], value[CONTROL_BYTES];
  tsl_format(path, sizeof path, "%s%s/%s", version->root, group, version->file);
  tsl_os_read_file(path, value, sizeof value - 1);
  return tsl_cgroup_parse(value);
}

// The group and those above it.
static uint64_t version_limit(unsigned number) {
  char group[TSL_CGROUP_GROUP_BYTES];
  if (!tsl_cgroup_group(number, group)) return 0;
  uint64_t least = 0;
  for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
    *end = '\0';
    least = least_of(least, group_limit(&versions[number - 1], group));
  }
  return least;
}

uint64_t tsl_cgroup_limit_bytes(void) { return least_of(version_limit(1), version_limit(2)); }
