#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "os_pages.h"

static bool move_fails;
static bool move_breaks;  // when the first quarter has moved

// In place of the C library's: what Linux before 6.17 does with a source that is more than one
// mapping. It refuses, and has unmapped the target by then.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved
void *mremap(void *from, size_t old_bytes, size_t bytes, int flags, ...) {
  va_list list;
  va_start(list, flags);
  void *to = va_arg(list, void *);
  va_end(list);
  void *target = (flags & MREMAP_FIXED) == 0 ? NULL : to;
  if (!move_fails) return (void *)syscall(SYS_mremap, from, old_bytes, bytes, flags, target);
  if (target != NULL) munmap(to, bytes);
  if (move_breaks) syscall(SYS_mremap, from, bytes / 4, bytes / 4, flags, target);
  errno = EFAULT;
  return MAP_FAILED;
}

// Old systems cannot move so: then nothing has moved.
static void moved_content(void) {
  char *from = reserve_committed(), *to = reserve_committed();
  memset(from, 1, BYTES);
  bool moved = tsl_os_move(from, to, BYTES / 2) == TSL_OS_MOVED;
  check_filled(to, BYTES / 2, moved ? 1 : 0);
  check_filled(from, BYTES / 2, moved ? 0 : 1);
  check_filled(from + BYTES / 2, BYTES / 2, 1);
  memset(from, 2, BYTES);
  memset(to, 2, BYTES);
}

static void refused_move_leaves_both_places(void) {
  char *from = reserve_committed(), *to = reserve_committed();
  memset(from, 1, BYTES);
  move_fails = true;
  errno = EDOM;
  CHECK_EQ(tsl_os_move(from, to, BYTES / 2), TSL_OS_NOT_MOVED);
  CHECK_EQ(errno, EDOM);
  check_filled(from, BYTES, 1);
  CHECK(may_touch(to, true) && may_touch(to + BYTES / 2 - 1, true));
  check_filled(to, BYTES, 0);
}

// Since Linux 6.17 a source of several mappings is moved one by one.
static void move_that_breaks_off_loses_nothing(void) {
  char *from = reserve_committed(), *to = reserve_committed();
  memset(from, 1, BYTES);
  move_fails = move_breaks = true;
  CHECK_EQ(tsl_os_move(from, to, BYTES / 2), TSL_OS_NOT_MOVED);
  check_filled(from, BYTES, 1);
  check_filled(to, BYTES, 0);
}

static size_t mappings(const char *start, size_t bytes) {
  char line[512];
  size_t count = 0;
  uintptr_t from, to;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%zx-%zx", &from, &to) != 2) continue;
    count += from < (uintptr_t)start + bytes && to > (uintptr_t)start;
  }
  fclose(maps);
  return count;
}

// A moved page keeps the place in the sequence of pages where it was first touched.
static void renewed_place_is_one_mapping(void) {
  char *start = reserve_committed();
  size_t part = BYTES / 4, whole = mappings(start, BYTES);
  memset(start, 1, BYTES);
  if (tsl_os_move(start, start + 2 * part, part) != TSL_OS_MOVED) return;
  CHECK_GE(mappings(start, BYTES), whole + 2);
  errno = EDOM;
  CHECK(tsl_os_renew(start + 2 * part, part));
  CHECK_EQ(errno, EDOM);
  CHECK_EQ(mappings(start, BYTES), whole);
  check_filled(start + 2 * part, part, 0);
  check_filled(start + 3 * part, part, 1);
}

int main(void) {
  RUN(moved_content);
  RUN(refused_move_leaves_both_places);
  RUN(move_that_breaks_off_loses_nothing);
  RUN(renewed_place_is_one_mapping);
  return test_status();
}
