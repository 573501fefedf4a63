#include "synthetic/pattern.h"

#include "common/random.h"

#include <stddef.h>
#include <string.h>

static const pattern patterns[] = {
    {.name = "burst",
     .request_rate = 2000,
     .objects_least = 80,
     .objects_most = 200,
     .sizes = {1, 1, {{128, 1}}},
     .batch = 1},
    {.name = "steady",
     .request_rate = 5000,
     .objects_least = 50,
     .objects_most = 50,
     .sizes = {1, 1, {{128, 1}}},
     .batch = 16,
     .lag = 8},
    {.name = "leak",
     .request_rate = 2000,
     .objects_least = 80,
     .objects_most = 200,
     .sizes = {1, 1, {{128, 1}}},
     .batch = 1,
     .leaked_ppm = MILLION / 100},
    {.name = "hotspot",
     .request_rate = 4000,
     .objects_least = 120,
     .objects_most = 120,
     .sizes = {3, 100, {{128, 85}, {256, 10}, {512, 5}}},
     .batch = 1},
    {.name = "kernel",
     .request_rate = 2000,
     .objects_least = 300,
     .objects_most = 300,
     .sizes = {1, 1, {{256, 1}}},
     .batch = 1,
     .purge = TSLAB_PURGE_NOW},
};

const pattern *pattern_find(const char *name) {
  for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
    if (strcmp(patterns[i].name, name) == 0) {
      return &patterns[i];
    }
  }
  return NULL;
}

uint32_t mix_draw(const mix *m, uint32_t *state) {
  unsigned chosen = 0;
  if (m->count > 1) {
    uint32_t rest = random_below(state, m->weights);
    while (rest >= m->parts[chosen].weight) {
      rest -= m->parts[chosen].weight;
      chosen++;
    }
  }
  return m->parts[chosen].bytes;
}
