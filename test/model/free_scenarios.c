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
static void look(void) { tsl_remains_step(1); }
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

// Kept blocks, which others free while their epoch ends. The last block of those is not kept.
static void keep(unsigned index) { EXPECT(tslab_epoch_keep(blocks[index]) == 0); }
static void keep_0(void) { keep(0); }
static void keep_and_free(void) {
  keep(0);
  free_block(0);
}
static void keep_2(unsigned last) {
  keep(0);
  keep(1);
  blocks[last] = NULL;
}
static void kept_slab(void) {
  slab_3();
  keep_2(2);
}
static void kept_slab_whole(void) {
  slab_3();
  keep(0);
  keep(1);
}
static void kept_cell(void) {
  cell_3();
  keep_2(2);
}
static void kept_cells(void) {
  cells_2();
  keep(4);
  keep_2(3);
  blocks[2] = NULL;
}
static void kept_closed_slab(void) {
  closed_slab();
  keep_2(2);
}
static void kept_closed_cell(void) {
  closed_cell();
  keep_2(2);
}
static void reset_epoch(void) { EXPECT(tslab_epoch_reset(epoch) == 0); }
static void finish_reset(void) {
  free_rest();
  release_epoch();
}

// Block 1 belongs to the parent, which ends now; block 0 was kept again.
static tslab_epoch parent;
static void spared_cell(void) {
  warm_all();
  parent = open_cells();
  tslab_epoch_options options = {.size = sizeof options, .parent = parent};
  epoch = tslab_epoch_open("child", &options);
  allocate_in_epoch(A, 0, 2, 64);
  keep(0);
  keep(1);
  release_epoch();
  keep(0);
  blocks[1] = NULL;
}
static void release_parent(void) { EXPECT(tslab_epoch_release(parent) == 0); }

// The one that is kept survives, whatever is freed beside it meanwhile.
static void release_kept(void) {
  EXPECT(tslab_epoch_release(epoch) == 0);
  EXPECT(tslab_epoch_of(blocks[0]) == epoch);
  free_rest();
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
    {.name = "slab-kept",
     .prepare = kept_slab,
     .threads = {release_epoch, free_0, free_1},
     .finish = free_rest,
     .takes_long = true},
    {.name = "slab-kept-by-other",
     .prepare = kept_slab,
     .threads = {free_0, release_epoch},
     .finish = free_rest},
    {.name = "slab-kept-closed",
     .prepare = kept_closed_slab,
     .threads = {release_epoch, free_0, free_1},
     .finish = free_rest},
    {.name = "slab-kept-reset",
     .prepare = kept_slab,
     .threads = {reset_epoch, free_0, free_1},
     .finish = finish_reset},
    {.name = "slab-kept-close",
     .prepare = kept_slab_whole,
     .threads = {close_counted, free_0, free_1},
     .finish = free_rest},
    {.name = "cell-kept",
     .prepare = kept_cell,
     .threads = {release_epoch, free_0, free_1},
     .finish = free_rest},
    {.name = "cell-kept-by-other",
     .prepare = kept_cell,
     .threads = {free_0, release_epoch},
     .finish = free_rest},
    {.name = "cell-kept-closed",
     .prepare = kept_closed_cell,
     .threads = {release_epoch, free_0, free_1},
     .finish = free_rest},
    {.name = "cell-kept-reset",
     .prepare = kept_cell,
     .threads = {reset_epoch, free_0, free_1},
     .finish = finish_reset},
    {.name = "cells-kept",
     .prepare = kept_cells,
     .threads = {release_epoch, free_0, free_4},
     .finish = free_rest,
     .takes_long = true},
    {.name = "cell-kept-again",
     .prepare = spared_cell,
     .threads = {release_parent, free_0},
     .finish = free_rest},
    {.name = "slab-keep",
     .prepare = slab_3,
     .threads = {free_2, keep_0, free_1},
     .finish = release_kept},
    {.name = "cell-keep",
     .prepare = cell_3,
     .threads = {free_2, keep_0, free_1},
     .finish = release_kept},
    {.name = "slab-keep-close",
     .prepare = slab_2,
     .threads = {close_counted, keep_and_free},
     .finish = free_rest},
    {.name = "cell-keep-close",
     .prepare = cell_2,
     .threads = {close_counted, keep_and_free},
     .finish = free_rest},
    {0}};
