// expect: an example that meets a surprise says which, and fails.
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <tslab.h>

static inline void expect(bool holds, const char *text) {
  if (holds) return;
  fprintf(stderr, "surprise: not %s\n", text);
  exit(1);
}

// `error` is what a function of tslab returned.
static inline void expect_done(int error, const char *call) {
  if (error == 0) return;
  fprintf(stderr, "surprise: %s: %s\n", call, tslab_error_text(error));
  exit(1);
}

#define EXPECT(condition) expect(condition, #condition)
#define EXPECT_DONE(call) expect_done(call, #call)
