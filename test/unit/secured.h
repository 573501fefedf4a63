// secured: blocks of the secure build, and what it says of mistakes that are made with them.
#pragma once

#include "alloc/malloc.h"
#include "alloc/standard.h"
#include "base/options.h"
#include "capture.h"
#include "test.h"
#include "upkeep/pool.h"

enum { BLOCKS = 200, BYTES = 95, TAKES = 96 };

static void *blocks[BLOCKS];

static inline void take_blocks(void) {
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = tsl_fast_malloc(BYTES);
    CHECK(blocks[i] != NULL);
    memset(blocks[i], 0x5a, BYTES);
  }
}

// Whether `call` reports `text`, and only that.
static inline bool reports(void (*call)(void), const char *text) {
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  call();
  const char *said = capture_end();
  return capture_lines(said) == 1 && strstr(said, text) != NULL;
}

static inline void free_as_other(void *block) {
  struct tsl_heap *mine = tsl_heap_current;
  tsl_heap_current = &tsl_home_take()->heap;
  tsl_fast_free(block);
  tsl_heap_current = mine;
}
