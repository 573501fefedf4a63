#include "override/sanitizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/warn.h"
#include "os/os.h"
#include "override/override.h"

#define LIBRARY "libtslab-preload.so"

// The system allows 6 MiB of arguments and environment.
enum { TEXTS_BYTES = 8 << 20, MOST_TEXTS = 1 << 18 };

extern void __asan_init(void) __attribute__((weak));
extern void __hwasan_init(void) __attribute__((weak));
extern void __lsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

// AddressSanitizer calls this before anything else. Without this answer it would end a process in
// which its library is not the first one, before the program can be started again.
FACE __attribute__((weak)) const char *__asan_default_options(void) {
  return "verify_asan_link_order=0";
}

static const char *sanitizer_name(void) {
  if (__asan_init != NULL) return "AddressSanitizer";
  if (__hwasan_init != NULL) return "HWAddressSanitizer";
  if (__msan_init != NULL) return "MemorySanitizer";
  if (__lsan_init != NULL) return "LeakSanitizer";
  return __tsan_init != NULL ? "ThreadSanitizer" : NULL;
}

static bool is_separator(char c) { return c == ':' || c == ' '; }

// Takes this library out of a list of libraries. False when it is not there.
static bool list_remove(char *list) {
  char *found = strstr(list, LIBRARY), *start = found, *end = found;
  if (found == NULL) return false;
  while (start != list && !is_separator(start[-1])) start--;
  while (*end != '\0' && !is_separator(*end)) end++;
  if (*end != '\0') end++;
  memmove(start, end, strlen(end) + 1);
  return true;
}

static bool environment_remove(char **environment) {
  for (char **at = environment; *at != NULL; at++)
    if (strncmp(*at, "LD_PRELOAD=", sizeof "LD_PRELOAD=" - 1) == 0) return list_remove(*at);
  return false;
}

// The texts of a file, each with a 0 at its end, as a vector. NULL when it cannot be read.
static char **texts_of(const char *path) {
  char **texts = tsl_os_borrow(TEXTS_BYTES + MOST_TEXTS * sizeof *texts);
  char *at = (char *)(texts + MOST_TEXTS);
  size_t count = 0, length = texts == NULL ? 0 : tsl_os_read_file(path, at, TEXTS_BYTES - 1);
  for (const char *end = at + length; at < end && count < MOST_TEXTS - 1; at += strlen(at) + 1)
    texts[count++] = at;
  return length == 0 ? NULL : texts;
}

void tsl_sanitizer_step_aside(void) {
  const char *name = sanitizer_name();
  if (name == NULL) return;
  char **arguments = texts_of("/proc/self/cmdline"), **environment = texts_of("/proc/self/environ");
  if (arguments != NULL && environment != NULL && environment_remove(environment)) {
    tsl_warn("%s needs its own malloc: the program starts again without " LIBRARY, name);
    tsl_os_execute("/proc/self/exe", arguments, environment);
  }
  tsl_warn("%s needs its own malloc: link or start the program without tslab", name);
}
