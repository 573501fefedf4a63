// options: what can be set at run time. options.def declares each option once. Values come from the
// program's `tslab_conf` string, then from TSLAB_CONF ("name:value,name:value"), then from
// TSLAB_<NAME>, each overriding the one before; tslab_option_set changes them later. Programs that
// run with raised privileges ignore the environment.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

enum tsl_on_error { TSL_ON_ERROR_ABORT, TSL_ON_ERROR_REPORT, TSL_ON_ERROR_IGNORE };
enum tsl_places { TSL_PLACES_AUTO, TSL_PLACES_OWN };
enum tsl_helper { TSL_HELPER_NEVER, TSL_HELPER_AUTO, TSL_HELPER_ALWAYS };
enum tsl_libraries { TSL_LIBRARIES_APART, TSL_LIBRARIES_INSIDE };
enum tsl_release { TSL_RELEASE_REUSE, TSL_RELEASE_POISON };
enum tsl_thp { TSL_THP_NEVER, TSL_THP_AUTO, TSL_THP_ALWAYS };

// A soft limit that the process's cgroup sets.
#define TSL_SOFT_LIMIT_CGROUP UINT64_C(70368744177665)

struct tsl_options {
#define OPTION(name, kind, initial, lowest, highest, help) uint64_t name;
#include "base/options.def"
#undef OPTION
};

TSL_HIDDEN extern struct tsl_options tsl_options;

#define tsl_option(name) tsl_load_relaxed(&tsl_options.name)

// Reads the settings. Called once, before the first allocation; allocates nothing. A name that does
// not exist or a value that does not fit gives one warning, and what was set before stays; with
// option abort_conf the program stops then.
typedef const char *tsl_environment(const char *name);
TSL_HIDDEN void tsl_options_init(tsl_environment *environment);

// 0, ENOENT for an unknown name, EINVAL for a value that does not fit, ERANGE for a buffer that is
// too small. Any thread.
TSL_HIDDEN int tsl_option_get(const char *name, char *value, size_t size);
TSL_HIDDEN int tsl_option_set(const char *name, const char *value);
