#include "base/format.h"

#include <limits.h>

#include "test.h"

// Formats with ours and with the C library's; both must agree.
#define CHECK_SAME(...)                                                \
  do {                                                                 \
    char ours[128], theirs[128];                                       \
    size_t length = tsl_format(ours, sizeof ours, __VA_ARGS__);        \
    CHECK_EQ(length, snprintf(theirs, sizeof theirs, __VA_ARGS__));    \
    CHECK_THAT(strcmp(ours, theirs) == 0, "`%s`, `%s`", ours, theirs); \
  } while (0)

static void text(void) {
  CHECK_SAME("%s", "");
  CHECK_SAME("plain");
  CHECK_SAME("%s%s", "ab", "cd");
  CHECK_SAME("<%s> <%c>", "text", 'x');
  CHECK_SAME("100%% %s", "sure");
}

static void no_text(void) {
  char buffer[16];
  const char *volatile none = NULL;
  CHECK_EQ(tsl_format(buffer, sizeof buffer, "[%s]", none), 8);
  CHECK(strcmp(buffer, "[(null)]") == 0);
}

static void extreme_numbers(void) {
  CHECK_SAME("%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
  CHECK_SAME("%u %u", 0u, UINT_MAX);
  CHECK_SAME("%x %x %x", 0u, 0xabcdef12u, UINT_MAX);
  CHECK_SAME("%zu %zu", (size_t)0, SIZE_MAX);
  CHECK_SAME("%llu %llu", 0ull, ULLONG_MAX);
  CHECK_SAME("%p", (void *)&extreme_numbers);
  CHECK_SAME("%p", (void *)UINTPTR_MAX);
}

static void random_numbers(void) {
  uint64_t seed = 1;
  for (int i = 0; i < 20000; i++) {
    uint64_t value = test_random(&seed) >> test_random_below(&seed, 64);
    CHECK_SAME("%d,%u,%x;", (int)value, (unsigned)value, (unsigned)value);
    CHECK_SAME("%zu %llu", (size_t)value, (unsigned long long)value);
    CHECK_SAME("%p", (void *)(uintptr_t)(value | 1));
  }
}

// Every buffer size cuts the text where it must, ends it, and leaves what lies behind alone.
static void short_buffers(void) {
  char whole[64], buffer[64];
  size_t length = tsl_format(whole, sizeof whole, "%s-%d-%zu-%x", "text", -123, (size_t)4567, 255u);
  for (size_t size = 1; size < sizeof buffer; size++) {
    memset(buffer, '#', sizeof buffer);
    size_t written = tsl_format(buffer, size, "%s-%d-%zu-%x", "text", -123, (size_t)4567, 255u);
    CHECK_EQ(written, length < size ? length : size - 1);
    CHECK(memcmp(buffer, whole, written) == 0);
    CHECK_EQ(buffer[written], '\0');
    CHECK_EQ(buffer[written + 1 < size ? size : written + 1], '#');
  }
}

__attribute__((format(printf, 3, 4))) static size_t format_twice(char *first, char *second,
                                                                 const char *format, ...) {
  va_list list;
  va_start(list, format);
  size_t length = tsl_format_list(first, 32, format, list);
  length += tsl_format_list(second, 32, format, list);
  va_end(list);
  return length;
}

static void list_stays_usable(void) {
  char first[32], second[32];
  CHECK_EQ(format_twice(first, second, "%d %s", 7, "x"), 6);
  CHECK(strcmp(first, "7 x") == 0 && strcmp(second, "7 x") == 0);
}

int main(void) {
  RUN(text);
  RUN(no_text);
  RUN(extreme_numbers);
  RUN(random_numbers);
  RUN(short_buffers);
  RUN(list_stays_usable);
  return test_status();
}
