// forks: what the child of a fork runs, and the blocks that it has from its parent.
#pragma once

#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "pattern.h"
#include "test.h"

enum { BLOCKS = 200, FORKS = 12 };

static void *blocks[BLOCKS + 1];  // the last one is for special uses

static inline void alloc_blocks(void) {
  for (unsigned i = 0; i < BLOCKS; i++) {
    size_t bytes = (i * i * 7) % 70000;
    blocks[i] = tsl_fast_malloc(bytes);
    CHECK(blocks[i] != NULL);
    pattern_write(blocks[i], bytes, i);
  }
}

static inline void check_and_free_blocks(void) {
  for (unsigned i = 0; i < BLOCKS; i++) {
    size_t bytes = (i * i * 7) % 70000;
    CHECK(pattern_is(blocks[i], bytes, i, bytes));
    tsl_fast_free(blocks[i]);
  }
}

// Runs the function in a fork's child.
static inline void in_child(void (*function)(void)) {
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);  // a lock held for ever is a failure, too
    function();
    _exit(EXIT_SUCCESS);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

static inline void use_everything(void) {
  check_and_free_blocks();
  alloc_blocks();
  tsl_trim(0);
  check_and_free_blocks();
  tsl_trim(0);
}
