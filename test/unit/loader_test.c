#include "os/loader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static unsigned mallocs, callocs;

// ThreadSanitizer does not know a thread yet whose memory is being made.
#define EARLY __attribute__((no_sanitize("thread")))

EARLY static void *counted_malloc(size_t bytes) {
  mallocs++;
  return malloc(bytes);
}

EARLY static void *counted_calloc(size_t count, size_t bytes) {
  callocs++;
  return calloc(count, bytes);
}

static const struct tsl_redirect redirects[] = {
    {"malloc", (uintptr_t)malloc, (uintptr_t)counted_malloc},
    {"calloc", (uintptr_t)calloc, (uintptr_t)counted_calloc},
};

static void redirect(void) { tsl_loader_redirect(redirects, 2); }

// asprintf of the C library; what wants its malloc may be a sanitizer's.
static unsigned mallocs_of_library(void) {
  char *text;
  mallocs = 0;
  CHECK(asprintf(&text, "a text of %d words", 5) == 17);
  free(text);
  return mallocs;
}

static void *nothing(void *word) { return word; }

// The loader makes each thread's vector of thread-local memory.
static unsigned callocs_of_loader(void) {
  pthread_t thread;
  callocs = 0;
  CHECK_EQ(pthread_create(&thread, NULL, nothing, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  return callocs;
}

// musl's are its own all the time.
static bool is_glibc(void) {
#if defined(__GLIBC__)
  return true;
#else
  return false;
#endif
}

static void nothing_is_led_elsewhere_before(void) {
  CHECK_EQ(mallocs_of_library(), 0);
  CHECK_EQ(callocs_of_loader(), 0);
}

static void calls_of_the_libraries_are(void) {
  redirect();
  CHECK_EQ(mallocs_of_library() != 0, is_glibc());
  CHECK_EQ(callocs_of_loader() != 0, is_glibc());
}

static void calls_of_the_program_are_not(void) {
  redirect();
  mallocs = 0;
  void *volatile block = malloc(100);
  free(block);
  CHECK_EQ(mallocs, 0);
}

static void a_second_time_changes_nothing(void) {
  redirect();
  unsigned first = mallocs_of_library();
  redirect();
  CHECK_EQ(mallocs_of_library(), first);
}

int main(void) {
  RUN(nothing_is_led_elsewhere_before);
  RUN(calls_of_the_libraries_are);
  RUN(calls_of_the_program_are_not);
  RUN(a_second_time_changes_nothing);
  return test_status();
}
