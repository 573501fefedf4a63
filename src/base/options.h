// options: what can be set at run time. Declared once in options.def; read from the program's
// `tslab_conf` string, then TSLAB_CONF ("name:value,name:value"), then TSLAB_<NAME>, each
// overriding the one before; later by tslab_option_set. The environment is ignored in programs that
// run with raised privileges.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

enum tsl_on_error { TSL_ON_ERROR_ABORT, TSL_ON_ERROR_REPORT, TSL_ON_ERROR_IGNORE };
enum tsl_thp { TSL_THP_NEVER, TSL_THP_AUTO, TSL_THP_ALWAYS };

struct tsl_options {
#define OPTION(name, kind, initial, lowest, highest, help) uint64_t name;
#include "base/options.def"
#undef OPTION
};

TSL_HIDDEN extern struct tsl_options tsl_options;

#define tsl_option(name) tsl_load_relaxed(&tsl_options.name)

// Reads the settings. Called once, before the first allocation; allocates nothing. A name that does
// not exist or a value that does not fit gives one warning, and what was set before stays.
typedef const char *tsl_environment(const char *name);
TSL_HIDDEN void tsl_options_init(tsl_environment *environment);

// 0, ENOENT for an unknown name, EINVAL for a value that does not fit, ERANGE for a buffer that is
// too small. Any thread.
TSL_HIDDEN int tsl_option_get(const char *name, char *value, size_t size);
TSL_HIDDEN int tsl_option_set(const char *name, const char *value);
