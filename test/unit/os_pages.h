// os_pages: pages of the real system, and what they hold.
#pragma once

#include "capture.h"
#include "os/os.h"

enum { BYTES = 1 << 22 };

// A sanitizer has more addresses than the limit by itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ADDRESSES_CAN_BE_LIMITED = 0 };
#else
enum { ADDRESSES_CAN_BE_LIMITED = 1 };
#endif

static inline char *reserve(void) {
  char *start = tsl_os_reserve(BYTES, BYTES);
  CHECK(start != NULL);
  return start;
}

static inline char *reserve_committed(void) {
  char *start = reserve();
  CHECK(tsl_os_commit(start, BYTES));
  return start;
}

static inline void check_filled(const char *start, size_t bytes, char byte) {
  for (size_t i = 0; i < bytes; i++) {
    if (start[i] != byte) CHECK_EQ(start[i], byte);
  }
}

static char *touched;
static bool touch_writes;

static inline void touch(void) {
  signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it
  if (touch_writes) *(volatile char *)touched = 1;
  (void)*(volatile char *)touched;
}

static inline bool may_touch(char *address, bool write) {
  touched = address, touch_writes = write;
  return capture_child(touch) == 0;
}
