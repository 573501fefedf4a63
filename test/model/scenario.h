// scenario: what the scenarios share. Each runs in a process of its own.
#pragma once

#include <stddef.h>

#include "model.h"
#include "tslab.h"

enum { BLOCK_BYTES = 1024, MOST_BLOCKS = 160 };

// What the scenario is about.
extern tslab_epoch epoch;
extern void *blocks[MOST_BLOCKS];
extern tslab_scope scopes[MODEL_THREADS];

// Every thread gets a home heap.
void warm_all(void);

tslab_epoch open_slabs(void);
tslab_epoch open_cells(void);

// Allocates in `epoch`, so that the thread is outside again; before the scenario begins.
void allocate_in_epoch(int thread, unsigned first, unsigned count, size_t bytes);

void free_block(unsigned index);
// Closes `epoch`, whose blocks are all allocated and that nobody is in; what survived must agree
// with the frees that came before or at the same time.
void close_counted(void);
// Closes it; somebody else may have ended it.
void close_epoch(void);
void release_epoch(void);
void release_rest(void);
// What is left of `blocks`.
void free_rest(void);

extern const struct model_scenario free_scenarios[], scope_scenarios[], heap_scenarios[];
