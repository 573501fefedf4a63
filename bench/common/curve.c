#include "curve.h"

#include "clock.h"
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

void curve_open(curve *c, const char *path, uint64_t before) {
  *c = (curve){.path = path, .before = before, .start_ns = clock_ns()};
  if (path != NULL) {
    c->samples = memory_map(CURVE_MAX * sizeof *c->samples);
    c->before += CURVE_MAX * sizeof *c->samples;
  }
}

void curve_tick(curve *c, uint64_t live_bytes) {
  if (c->path == NULL || c->count == CURVE_MAX) {
    return;
  }
  uint64_t ns = clock_ns() - c->start_ns;
  if (ns >= c->due_ns) {
    uint64_t resident = memory_resident_bytes_about();
    uint64_t own = resident < c->before ? resident : c->before;
    c->samples[c->count++] = (curve_sample){ns, resident - own, live_bytes};
    c->due_ns = ns - ns % CURVE_STEP_NS + CURVE_STEP_NS;
  }
}

void curve_write(const curve *c) {
  if (c->path == NULL) {
    return;
  }
  FILE *file = fopen(c->path, "w");
  if (file != NULL) {
    fputs("ms,rss_bytes,live_bytes\n", file);
    for (uint32_t i = 0; i < c->count; i++) {
      const curve_sample *s = &c->samples[i];
      fprintf(file, "%llu,%llu,%llu\n", (unsigned long long)(s->ns / 1000000),
              (unsigned long long)s->resident_bytes, (unsigned long long)s->live_bytes);
    }
  }
  if (file == NULL || fclose(file) != 0) {
    fprintf(stderr, "cannot write %s\n", c->path);
    exit(1);
  }
}
