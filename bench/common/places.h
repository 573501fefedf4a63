// Epochs that are open at once, ten small objects in each, allocated in turns: one object in each
// epoch, then the next one in each.
#ifndef BENCH_PLACES_H
#define BENCH_PLACES_H

#include "epochs.h"

#define PLACE_OBJECTS 10u

typedef struct place {
  tslab_epoch epoch;
  char *objects[PLACE_OBJECTS];
} place;

void places_open(place *places, uint32_t count);

// Allocates all objects and returns what that took.
uint64_t places_fill_ns(place *places, uint32_t count);

// Nanoseconds of one allocation, with the way into its epoch and out again. Places are full before
// and after.
double places_turn_ns(place *places, uint32_t count, uint64_t allocations);

// Places are full before.
void places_close(place *places, uint32_t count);

#endif
