// Frees that meet the sealing of what the block lies in.
#include "base/options.h"
#include "scenario.h"
#include "upkeep/remains.h"

static void free_0(void) { free_block(0); }
static void free_1(void) { free_block(1); }
static void free_2(void) { free_block(2); }
static void free_4(void) { free_block(4); }
static void free_64(void) { free_block(64); }

static void prepare_slab(unsigned count, size_t bytes) {
  warm_all();
  epoch = open_slabs();
  allocate_in_epoch(A, 0, count, bytes);
}

static void slab_2(void) { prepare_slab(2, BLOCK_BYTES); }
static void slab_3(void) { prepare_slab(3, BLOCK_BYTES); }

static void free_1_to_63(void) {
  for (unsigned i = 1; i < 64; i++) free_block(i);
}

// The first block of each of two words; the others are on their way back.
static void slab_2_words(void) {
  prepare_slab(65, BLOCK_BYTES / 2);
  model_as(A, free_1_to_63);
}

static void free_5_to_8(void) {
  for (unsigned i = 5; i < 9; i++) free_block(i);
}

static void closed(void) { model_as(A, close_counted); }

static void closed_slab(void) {
  slab_3();
  closed();
}

static void prepare_cells(unsigned count, size_t bytes) {
  warm_all();
  epoch = open_cells();
  allocate_in_epoch(A, 0, count, bytes);
}

static void cell_2(void) { prepare_cells(2, 64); }
static void cell_3(void) { prepare_cells(3, 64); }

static void closed_cell(void) {
  cell_3();
  closed();
}

// A block of an older cell and one of the newest.
static void cells_2(void) { prepare_cells(5, BLOCK_BYTES); }

// A block that two threads free counts once: the other free is a mistake that is noticed.
static void *freed_twice;
static void cell_2_and_a_mistake(void) {
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  cell_2();
  freed_twice = blocks[0];
  blocks[0] = NULL;
}
static void free_twice(void) { tslab_free(freed_twice); }

static void one_is_left(void) {
  tslab_survivors survivors = tslab_epoch_close(epoch);
  EXPECT(survivors.error == 0);
  EXPECT(survivors.objects == 1);
  free_rest();
}

// What outlived its epoch, while somebody gives pages of it back.
static void look(void) { tsl_remains_step(); }
static void closed_cells(void) {
  tsl_options.purge_delay_ms = 0;
  prepare_cells(9, BLOCK_BYTES);
  model_as(A, free_5_to_8);
  closed();
}
static void closed_slab_2(void) {
  tsl_options.purge_delay_ms = 0;
  slab_2();
  closed();
}

const struct model_scenario free_scenarios[] = {
    {.name = "slab-seal", .prepare = slab_2, .threads = {close_counted, free_0, free_1}},
    {.name = "slab-seal-words",
     .prepare = slab_2_words,
     .threads = {close_counted, free_0, free_64}},
    {.name = "slab-seal-by-other", .prepare = slab_2, .threads = {free_0, free_1, close_counted}},
    {.name = "slab-sealed-last", .prepare = closed_slab, .threads = {free_0, free_1, free_2}},
    {.name = "cell-seal", .prepare = cell_2, .threads = {close_counted, free_0, free_1}},
    {.name = "cell-seal-by-other", .prepare = cell_2, .threads = {free_0, free_1, close_counted}},
    {.name = "cell-sealed-last", .prepare = closed_cell, .threads = {free_0, free_1, free_2}},
    {.name = "cell-freed-twice",
     .prepare = cell_2_and_a_mistake,
     .threads = {NULL, free_twice, free_twice},
     .finish = one_is_left},
    {.name = "cells-seal",
     .prepare = cells_2,
     .threads = {free_0, free_4, close_counted},
     .finish = free_rest},
    {.name = "cell-held",
     .prepare = closed_cells,
     .threads = {look, free_4, free_0},
     .finish = free_rest},
    {.name = "slab-held", .prepare = closed_slab_2, .threads = {look, free_0, free_1}},
    {.name = "cell-held-release",
     .prepare = closed_cells,
     .threads = {look, release_epoch},
     .finish = release_rest},
    {.name = "slab-held-release",
     .prepare = closed_slab_2,
     .threads = {look, release_epoch},
     .finish = release_rest},
    {0}};
