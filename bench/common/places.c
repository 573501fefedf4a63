#include "places.h"

#include "clock.h"
#include "memory.h"

#define OBJECT_BYTES 32u

static void place_fill(place *p, unsigned index) {
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, p->epoch));
  char *object = malloc(OBJECT_BYTES);
  memory_demand(object);
  object[0] = 1;
  p->objects[index] = object;
  epochs_check(tslab_scope_leave(&scope));
}

uint64_t places_fill_ns(place *places, uint32_t count) {
  uint64_t start = clock_ns();
  for (unsigned index = 0; index < PLACE_OBJECTS; index++) {
    for (uint32_t i = 0; i < count; i++) {
      place_fill(&places[i], index);
    }
  }
  return clock_ns() - start;
}

static void places_clear(place *places, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    tslab_scope scope;
    epochs_check(tslab_scope_enter(&scope, places[i].epoch));
    for (unsigned index = 0; index < PLACE_OBJECTS; index++) {
      free(places[i].objects[index]);
    }
    epochs_check(tslab_scope_leave(&scope));
  }
}

double places_turn_ns(place *places, uint32_t count, uint64_t allocations) {
  uint64_t turns = allocations / (count * PLACE_OBJECTS) + 1;
  uint64_t ns = 0;
  places_clear(places, count);
  places_fill_ns(places, count);
  for (uint64_t turn = 0; turn < turns; turn++) {
    places_clear(places, count);
    ns += places_fill_ns(places, count);
  }
  return (double)ns / (double)(turns * count * PLACE_OBJECTS);
}

void places_open(place *places, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    places[i].epoch = epochs_open("many", NULL);
  }
}

void places_close(place *places, uint32_t count) {
  places_clear(places, count);
  for (uint32_t i = 0; i < count; i++) {
    epochs_close(places[i].epoch);
  }
}
