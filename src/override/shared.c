// shared: what both shared libraries have, and no program that the allocator is linked into.
#include "os/code.h"

// The linker's names for the ends of what it links.
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

struct tsl_code tsl_code_place(void) {
  return (struct tsl_code){(uintptr_t)__ehdr_start, (uintptr_t)etext};
}
