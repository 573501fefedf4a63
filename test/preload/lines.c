// One request of a warm thread, for a tool that counts the cache lines that it touches: between two
// empty functions, whose addresses the program prints, lies nothing else. After each request the
// program would pause, and come back to none of these lines.
//
//   preload_lines REQUEST COUNT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../check.h"
#include "tslab.h"

#pragma weak tslab_epoch_open
#pragma weak tslab_epoch_close
#pragma weak tslab_epoch_release
#pragma weak tslab_scope_enter
#pragma weak tslab_scope_leave

enum { OBJECTS = 20, WARM = 200 };

static void *objects[OBJECTS];

// Time stands still, for the library as well: a tool makes requests slow, and one that comes after
// a while also tells what its thread did.
int clock_gettime(clockid_t clock, struct timespec *now) {
  (void)clock;
  *now = (struct timespec){.tv_sec = 1000};
  return 0;
}

__attribute__((noinline)) static void measure_begins(void) { __asm__ volatile(""); }
__attribute__((noinline)) static void measure_ends(void) { __asm__ volatile(""); }

static void serve(void) {
  for (size_t i = 0; i < OBJECTS; i++) objects[i] = malloc(16 + 24 * i);
}

static void clean_up(void) {
  for (size_t i = 0; i < OBJECTS; i++) free(objects[i]);
}

static void plain(void) {
  serve();
  clean_up();
}

static void wrapped(void) {
  tslab_scope scope;
  tslab_epoch epoch = tslab_epoch_open("request", NULL);
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  serve();
  clean_up();
  tslab_scope_leave(&scope);
  tslab_epoch_close(epoch);
}

static void released(void) {
  tslab_scope scope;
  tslab_epoch epoch = tslab_epoch_open("request", NULL);
  CHECK_EQ(tslab_scope_enter(&scope, epoch), 0);
  serve();
  tslab_scope_leave(&scope);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
}

static const struct request {
  const char *name;
  void (*serve)(void);
} requests[] = {{"plain", plain}, {"wrapped", wrapped}, {"released", released}};

int main(int count, char **values) {
  CHECK(count == 3);
  const struct request *request = requests;
  while (strcmp(request->name, values[1]) != 0) request++;
  printf("%p %p\n", (void *)measure_begins, (void *)measure_ends);
  fflush(stdout);
  for (int i = 0; i < WARM; i++) request->serve();
  for (long i = 0; i < strtol(values[2], NULL, 10); i++) {
    measure_begins();
    request->serve();
    measure_ends();
  }
  return 0;
}
