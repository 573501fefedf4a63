// Server threads that end and are followed by others: each keeps a table of objects, replaces
// random ones, and leaves the table to a thread of the next generation, so that most objects die in
// another thread than they were born in (in the manner of larson). --sized frees with the size, by
// C++ sized delete or C23 free_sized, whichever the allocator has.
#include "common/args.h"
#include "common/blocks.h"
#include "common/random.h"
#include "common/rate.h"
#include "common/threads.h"

#include <dlfcn.h>
#include <string.h>

#define TABLE_OBJECTS 4000u
#define GENERATIONS 50u

typedef void *(*make_function)(size_t bytes);
typedef void (*drop_function)(void *object, size_t bytes);

typedef struct server {
  block *tables;
  unsigned threads;
  unsigned generation;
  uint64_t operations;
  make_function make;
  drop_function drop;
} server;

static void drop_unsized(void *object, size_t bytes) {
  (void)bytes;
  free(object);
}

static void *function_find(const char *name) { return dlsym(RTLD_DEFAULT, name); }

static void server_use_sized(server *s) {
  void *make = function_find("_Znwm");
  void *drop = function_find("_ZdlPvm");
  if (make != NULL && drop != NULL) {
    memcpy(&s->make, &make, sizeof make);
    memcpy(&s->drop, &drop, sizeof drop);
    return;
  }
  drop = function_find("free_sized");
  if (drop != NULL) {
    memcpy(&s->drop, &drop, sizeof drop);
  }
}

static size_t object_bytes(uint32_t *state) { return 8 + random_below(state, 993); }

static block object_make(const server *s, size_t bytes) {
  block b = {s->make(bytes), bytes};
  memory_demand(b.start);
  memory_touch(b.start, bytes);
  return b;
}

static void server_thread(void *context, unsigned index) {
  const server *s = context;
  uint32_t state = random_seed(s->generation, index);
  block *table = &s->tables[(index + s->generation) % s->threads * TABLE_OBJECTS];
  for (uint64_t i = 0; i < s->operations; i += 2) {
    block *victim = &table[random_below(&state, TABLE_OBJECTS)];
    s->drop(victim->start, victim->bytes);
    *victim = object_make(s, object_bytes(&state));
  }
}

static void server_fill(const server *s) {
  uint32_t state = 42;
  for (unsigned i = 0; i < s->threads * TABLE_OBJECTS; i++) {
    s->tables[i] = object_make(s, object_bytes(&state));
  }
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_larson [--sized] [THREADS [OPS]]");
  server s = {.make = malloc, .drop = drop_unsized};
  bool sized = args_take_flag(&a, "--sized");
  s.threads = args_threads(&a, 0, 2);
  uint64_t operations = args_number(&a, 1, 120000000);
  args_end(&a, 2);
  if (sized) {
    server_use_sized(&s);
  }
  s.operations = operations / s.threads / GENERATIONS;
  s.tables = memory_map(s.threads * TABLE_OBJECTS * sizeof(block));

  server_fill(&s);
  uint64_t ns = 0;
  for (s.generation = 0; s.generation < GENERATIONS; s.generation++) {
    ns += threads_run(s.threads, server_thread, &s);
  }
  uint64_t done = s.operations * s.threads * GENERATIONS;
  rate_report(
      &(rate){sized ? "shape_larson_sized" : "shape_larson", "Mops/s", s.threads, done, 1e6, ns});
}
