// test: what a unit test is made of: the checks of ../check.h, and RUN. (Neither cmocka nor
// greatest: both allocate through the allocator's own kind, and neither gives each test a fresh
// process.)
//
// Each test function runs in a child of its own: it meets the allocator as it is before the first
// allocation, and a crash is one failed test. A function that comes to its end without a single
// check has failed, too. Nothing is sampled unasked (tell/watch.h): blocks lie where tests expect
// them.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "check.h"

#ifndef TEST_OF_DEFAULTS
#define TEST_OF_DEFAULTS 0
#endif

#define RUN(function) test_run(#function, function)

// For tests of what the secure build does not have: bins, an order of blocks, memory that stays
// after its free. Its own ways are in secure_fake_test.c.
#define RUN_UNLESS_SECURE(function) \
  do {                              \
    check_waive();                  \
    if (!TSL_SECURE) RUN(function); \
  } while (0)

static int test_failures;

static inline void test_run(const char *name, void (*function)(void)) {
  int status;
  check_waive();  // the function is asked by itself
  pid_t child = fork();
  if (child == 0) {
    check_count = 0;
    if (!TEST_OF_DEFAULTS) tsl_options.watch_bytes = 0;
    function();
    exit(check_count != 0 ? EXIT_SUCCESS : CHECK_WITHOUT_CHECKS);
  }
  if (child > 0 && waitpid(child, &status, 0) == child && status == 0) return;
  test_failures++;
  if (child > 0 && WIFSIGNALED(status)) {
    check_print("%s failed: signal %d\n", name, WTERMSIG(status));
  } else {
    bool checked = child > 0 && WEXITSTATUS(status) != CHECK_WITHOUT_CHECKS;
    check_print("%s failed%s\n", name, checked ? "" : ": nothing was checked");
  }
}

static inline int test_status(void) { return test_failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE; }

// The same numbers in every run: splitmix64 (Steele, Lea, Flood 2014).
static inline uint64_t test_random(uint64_t *state) {
  uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

// A number from 0 to `below` - 1.
static inline unsigned test_random_below(uint64_t *state, unsigned below) {
  return (unsigned)(test_random(state) % below);
}
