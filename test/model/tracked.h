// tracked: memory whose states can be saved, restored and told apart.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Memory that is to be tracked; whole pages.
void tracked_add(void *start, size_t bytes);
// The same for all writable data of the program.
void tracked_add_program(void);

// What is in memory now is the beginning.
void tracked_begin(void);
// Brings it back.
void tracked_restart(void);

// What is in memory when tracked_hash looks at it: a save and a restore follow one, and nothing was
// written in between.
struct tracked_version;
struct tracked_state {
  struct tracked_version **versions;
  size_t pages, room;
};
void tracked_save(struct tracked_state *state);
void tracked_restore(const struct tracked_state *state);

// The same for the same contents.
uint64_t tracked_hash(void);

// The lowest page at or above `start` and below `end` that was written to; `end` when none was.
uintptr_t tracked_lowest(uintptr_t start, uintptr_t end);

size_t tracked_pages(void);
