// expect: an example that meets a surprise says which, and fails.
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void expect(bool holds, const char *text) {
  if (holds) return;
  fprintf(stderr, "surprise: not %s\n", text);
  exit(1);
}

#define EXPECT(condition) expect(condition, #condition)
