// One pair of an allocation and its free, repeated, for a tool that counts instructions: the
// function `measured` holds nothing else but its loop.
//
//   preload_instructions PAIR COUNT
#include <stddef.h>

#include "../check.h"

typedef void measured_loop(long count);

#define PAIR(name, make, end)                                         \
  __attribute__((noinline)) static void measured_##name(long count) { \
    for (long i = 0; i < count; i++) {                                \
      void *block = make;                                             \
      end;                                                            \
    }                                                                 \
  }

extern void *_Znwm(size_t size) __attribute__((weak));
extern void _ZdlPvm(void *block, size_t size) __attribute__((weak));

PAIR(malloc_16, malloc(16), free(block))
PAIR(malloc_64, malloc(64), free(block))
PAIR(malloc_1024, malloc(1024), free(block))
PAIR(calloc_64, calloc(1, 64), free(block))
PAIR(new_64, _Znwm(64), _ZdlPvm(block, 64))

static const struct pair {
  const char *name;
  measured_loop *run;
} pairs[] = {
    {"malloc_16", measured_malloc_16},     {"malloc_64", measured_malloc_64},
    {"malloc_1024", measured_malloc_1024}, {"calloc_64", measured_calloc_64},
    {"new_64", measured_new_64},
};

int main(int count, char **values) {
  CHECK_EQ(count, 3);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (strcmp(pairs[i].name, values[1]) != 0) continue;
    pairs[i].run(strtol(values[2], NULL, 10));
    return 0;
  }
  CHECK_THAT(0, "no pair %s", values[1]);
}
