#include "sharing.h"

#include "memory.h"
#include "rate.h"
#include "threads.h"

#include <stdlib.h>

#define OBJECT_BYTES 8u

static void object_write(volatile char *object, uint64_t writes) {
  for (uint64_t i = 0; i < writes; i++) {
    object[i % OBJECT_BYTES]++;
  }
}

static void sharing_thread(void *context, unsigned index) {
  const sharing *s = context;
  if (s->handed != NULL) {
    free(s->handed[index]);
  }
  for (uint64_t i = 0; i < s->objects; i++) {
    char *object = malloc(OBJECT_BYTES);
    memory_demand(object);
    object_write(object, s->writes);
    free(object);
  }
}

sharing sharing_open(const char *program, const args *a) {
  sharing s = {.program = program};
  s.threads = args_threads(a, 0, 2);
  s.objects = args_number(a, 1, 40000);
  s.writes = args_number(a, 2, 50000);
  args_end(a, 3);
  return s;
}

uint64_t sharing_run_ns(sharing *s) { return threads_run(s->threads, sharing_thread, s); }

void sharing_run(sharing *s) {
  uint64_t ns = sharing_run_ns(s);
  rate_report(
      &(rate){s->program, "Mwrites/s", s->threads, s->threads * s->objects * s->writes, 1e6, ns});
}
