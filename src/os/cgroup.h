// cgroup: how much memory the control groups of the process let it have (versions 1 and 2).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// A group's path and its zero; the name of a file of a group and its zero.
enum { TSL_CGROUP_GROUP_BYTES = 512, TSL_CGROUP_FILE_BYTES = 1024 };

// The least limit of the process's own group and those above it, as far as the process sees them;
// 0 when there is none, or the files cannot be read. Looked for below /sys/fs/cgroup, of version 1
// below its folder `memory`; memory.high is not read. Opens files; no memory is allocated.
TSL_HIDDEN uint64_t tsl_cgroup_limit_bytes(void);

// The process's group in version 1 (of its controller of memory) or 2, as a path below the root of
// the groups; false where there is none. In a container the path may be that of the host, which
// does not exist there: the container's own group is then the root.
TSL_HIDDEN bool tsl_cgroup_group(unsigned version, char group[static TSL_CGROUP_GROUP_BYTES]);

// The path of the group in a line of /proc/PID/cgroup ("9:memory:/path", "0::/path") that concerns
// memory in version 1 or 2, and its length in `*length`; NULL when no line does.
TSL_HIDDEN const char *tsl_cgroup_path(const char *lines, unsigned version, size_t *length);

// The bytes that a limit's file tells; 0 for "max", for what is no number, and for the numbers
// of 2^62 and more by which version 1 says that there is none.
TSL_HIDDEN uint64_t tsl_cgroup_parse(const char *text);
