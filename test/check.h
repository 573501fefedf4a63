// check: assertions for test programs, in C and C++.
//
// A failed check prints where it stands, its text and its values, then ends the process with status
// 1. It formats into the stack and calls write(2), so that it works when the allocator under test
// does not. A process that ends well without having checked anything fails, too.
#ifndef TSLAB_TEST_CHECK_H
#define TSLAB_TEST_CHECK_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ctest counts this exit status as skipped, not as passed.
#define CHECK_SKIPPED 77
#define CHECK_WITHOUT_CHECKS 3

#define CHECK_PRINTF(format_at, values_at) \
  __attribute__((format(printf, format_at, values_at), unused))

// Checks made by this thread so far.
__attribute__((unused)) static __thread unsigned long check_count;

// One for all files of a program.
__attribute__((weak)) int check_is_made;

// Of a process that answers somebody who checks: it has nothing to check itself.
__attribute__((unused)) static void check_waive(void) {
  __atomic_store_n(&check_is_made, 1, __ATOMIC_RELAXED);
}

#define CHECK_COUNT() (check_count++, check_waive())

// What a failure has to name beside the place: the seed, the child, the size at hand.
static char check_context[160];

CHECK_PRINTF(1, 2) static void check_context_set(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(check_context, sizeof check_context, format, values);
  va_end(values);
}

CHECK_PRINTF(1, 2) static void check_print(const char *format, ...) {
  char line[1024];
  va_list values;
  va_start(values, format);
  int length = vsnprintf(line, sizeof line, format, values);
  va_end(values);
  size_t bytes = length < (int)sizeof line ? (size_t)length : sizeof line - 1;
  if (write(STDERR_FILENO, line, bytes) < 0) _exit(2);
}

CHECK_PRINTF(4, 5)
static void check_failed(const char *file, int line, const char *text, const char *format, ...) {
  char reason[512];
  va_list values;
  va_start(values, format);
  vsnprintf(reason, sizeof reason, format, values);
  va_end(values);
  check_print("%s:%d: check failed: %s%s%s%s%s\n", file, line, text, *reason ? ": " : "", reason,
              *check_context ? "; " : "", check_context);
  _exit(1);
}

__attribute__((unused)) static void check_skip(const char *reason) {
  check_print("skipped: %s\n", reason);
  _exit(CHECK_SKIPPED);
}

__attribute__((destructor, unused)) static void check_end(void) {
  if (__atomic_load_n(&check_is_made, __ATOMIC_RELAXED)) return;
  check_print("%s: nothing was checked\n", program_invocation_short_name);
  _exit(CHECK_WITHOUT_CHECKS);
}

#define CHECK(condition) CHECK_THAT(condition, "%s", "")

// With words of its own: CHECK_THAT(p != NULL, "size %zu", size).
#define CHECK_THAT(condition, ...)                                               \
  do {                                                                           \
    CHECK_COUNT();                                                               \
    if (!(condition)) check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
  } while (0)

#define CHECK_COMPARE(left, operation, right)                                        \
  do {                                                                               \
    CHECK_COUNT();                                                                   \
    long long check_left = (long long)(left), check_right = (long long)(right);      \
    if (!(check_left operation check_right))                                         \
      check_failed(__FILE__, __LINE__, #left " " #operation " " #right,              \
                   "%lld against %lld (0x%llx, 0x%llx)", check_left, check_right,    \
                   (unsigned long long)check_left, (unsigned long long)check_right); \
  } while (0)

#define CHECK_EQ(left, right) CHECK_COMPARE(left, ==, right)
#define CHECK_NE(left, right) CHECK_COMPARE(left, !=, right)
#define CHECK_LE(left, right) CHECK_COMPARE(left, <=, right)
#define CHECK_GE(left, right) CHECK_COMPARE(left, >=, right)

// A function's promise to fail: the result, and errno with it.
#define CHECK_REFUSED(call, error)                                                          \
  do {                                                                                      \
    CHECK_COUNT();                                                                          \
    errno = 0;                                                                              \
    void *check_result = (void *)(call);                                                    \
    int check_errno = errno;                                                                \
    if (check_result != NULL || check_errno != (error))                                     \
      check_failed(__FILE__, __LINE__, #call, "gave %p, errno %d; expected NULL, errno %d", \
                   check_result, check_errno, (error));                                     \
  } while (0)

#endif
