#include "allocator.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

typedef const char *(*text_getter)(void);
typedef int (*number_getter)(void);
typedef int (*control)(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);
typedef const char *(*parts_getter)(int *major, int *minor, const char **patch);

const char *allocator_file(void) {
  Dl_info where;
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &where) == 0 || where.dli_fname == NULL) {
    return "unknown";
  }
  const char *slash = strrchr(where.dli_fname, '/');
  return slash == NULL ? where.dli_fname : slash + 1;
}

// POSIX lets dlsym's result be a function, ISO C has no cast for it.
static void function_find(const char *name, void *function) {
  void *found = dlsym(RTLD_DEFAULT, name);
  memcpy(function, &found, sizeof found);
}

static int version_of_mimalloc(char *text, size_t capacity) {
  number_getter get;
  function_find("mi_version", &get);
  if (get == NULL) {
    return 0;
  }
  // 2.x counts in hundreds (212), 3.x in ten thousands (30302).
  int number = get();
  int base = number >= 10000 ? 100 : 10;
  snprintf(text, capacity, "%d.%d.%d", number / base / base, number / base % base, number % base);
  return 1;
}

static int version_of_jemalloc(char *text, size_t capacity) {
  control get;
  function_find("mallctl", &get);
  const char *version = NULL;
  size_t bytes = sizeof version;
  if (get == NULL || get("version", &version, &bytes, NULL, 0) != 0) {
    return 0;
  }
  snprintf(text, capacity, "%.*s", (int)strcspn(version, "-"), version);
  return 1;
}

static int version_of_tcmalloc(char *text, size_t capacity) {
  parts_getter get;
  function_find("tc_version", &get);
  if (get == NULL) {
    return 0;
  }
  int major = 0;
  int minor = 0;
  const char *patch = "";
  get(&major, &minor, &patch);
  snprintf(text, capacity, "%d.%d%s", major, minor, patch);
  return 1;
}

static int version_of_tslab(char *text, size_t capacity) {
  text_getter get;
  function_find("tslab_version", &get);
  if (get == NULL) {
    return 0;
  }
  snprintf(text, capacity, "%s", get());
  return 1;
}

static int version_of_libc(char *text, size_t capacity) {
#if defined(__GLIBC__)
  if (strncmp(allocator_file(), "libc.so", 7) == 0) {
    snprintf(text, capacity, "%s", gnu_get_libc_version());
    return 1;
  }
#endif
  (void)text;
  (void)capacity;
  return 0;
}

void allocator_version(char *text, size_t capacity) {
  if (!version_of_tslab(text, capacity) && !version_of_mimalloc(text, capacity) &&
      !version_of_jemalloc(text, capacity) && !version_of_tcmalloc(text, capacity) &&
      !version_of_libc(text, capacity)) {
    snprintf(text, capacity, "unknown");
  }
}
