// rows: what stands in the statistics file (memory/mirror.h), declared once. The structs and the
// descriptors come from here, and so do the tables of docs/statistics.md, of the command and of its
// page, which `make format` writes.
//
// ONE(type, name, unit, kind, meaning) is one value, EACH(the same) one for each size class,
// LIST(length, the same) several, and TEXT(bytes, name, meaning) a text.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "memory/mirror.h"
#include "slab/sizeclass.h"
#include "state/label.h"

enum {
  TSL_MOST_SITES = 1 << 14,
  TSL_MOST_SAMPLES = 1 << 16,
  TSL_MOST_EVENTS = 1 << 20,
  TSL_SITE_FRAMES = 32,
  TSL_NAME_BYTES = 16,  // with the 0 at the end: what Linux keeps of a name
};

#define TSL_PROCESS_FIELDS(T, ONE, EACH, LIST, TEXT)                                            \
  ONE(T, uint64_t, open_bytes, BYTES, GAUGE, "memory that was ever opened for blocks")          \
  ONE(T, uint64_t, free_bytes, BYTES, GAUGE, "of `open_bytes`: nobody's")                       \
  ONE(T, uint64_t, dirty_bytes, BYTES, GAUGE, "of `free_bytes`: not given back yet")            \
  ONE(T, uint64_t, cached_bytes, BYTES, GAUGE, "empty units at hand for all threads")           \
  ONE(T, uint64_t, peak_held_bytes, BYTES, GAUGE,                                               \
      "the most of `open_bytes` that was neither free nor cached when threads reported")        \
  ONE(T, uint64_t, peak_ms, MS, GAUGE, "when it was `peak_held_bytes`")                         \
  ONE(T, uint64_t, large_objects, OBJECTS, GAUGE, "live blocks of whole units")                 \
  ONE(T, uint64_t, large_bytes, BYTES, GAUGE, "of `large_objects`")                             \
  ONE(T, uint64_t, large_allocations, OBJECTS, COUNTER, "blocks of whole units so far")         \
  ONE(T, uint64_t, purges, PIECES, COUNTER, "calls that gave pages back to the system")         \
  ONE(T, uint64_t, purged_bytes, BYTES, COUNTER, "given back to the system")                    \
  ONE(T, uint64_t, purges_refused, PIECES, COUNTER,                                             \
      "calls to give pages back that the system refused")                                       \
  ONE(T, uint64_t, limits_refused, PIECES, COUNTER, "times that a hard limit refused memory")   \
  ONE(T, uint64_t, memory_refused, PIECES, COUNTER, "times that the system refused memory")     \
  ONE(T, uint64_t, soft_limit_bytes, BYTES, GAUGE, "in force; 0: none")                         \
  ONE(T, uint64_t, sample_bytes, BYTES, GAUGE, "between samples on average; 0: none is taken")  \
  ONE(T, uint64_t, watch_bytes, BYTES, GAUGE, "the same in epochs that objects outlive")        \
  ONE(T, uint64_t, sampling_since_ms, MS, GAUGE,                                                \
      "since when all, what is watched, or nothing is sampled; 0: since there is a file")       \
  ONE(T, uint64_t, weight_bytes, BYTES, GAUGE, "mean by which `times` counts; 0: no samples")   \
  ONE(T, uint64_t, samples_taken, OBJECTS, COUNTER, "blocks")                                   \
  ONE(T, uint64_t, samples_lost, OBJECTS, COUNTER, "for which a table had no row")              \
  ONE(T, uint64_t, region_at, NONE, ID, "address of the region: the allocator's memory is in")  \
  ONE(T, uint64_t, region_bytes, BYTES, GAUGE, "addresses of the region, most without memory")  \
  ONE(T, uint64_t, blocks_at, NONE, ID, "address in the region from which on blocks lie")       \
  ONE(T, uint64_t, blocks_bytes, BYTES, GAUGE, "addresses where blocks lie or may come to lie") \
  ONE(T, uint64_t, code_at, NONE, ID, "address of the library; 0: it lies in the program")      \
  ONE(T, uint64_t, code_bytes, BYTES, GAUGE, "addresses from there on that its code lies in")   \
  ONE(T, uint64_t, purge_request, NONE, ID, "of `control`: the last one that was followed")     \
  TEXT(T, TSL_NAME_BYTES, name, "of the process, as the file was made")

#define TSL_CONTROL_FIELDS(T, ONE, EACH, LIST, TEXT)                  \
  ONE(T, uint32_t, sample_bytes, BYTES, GAUGE,                        \
      "wanted; 0: what the option says, `no_samples`: none")          \
  ONE(T, uint32_t, purge_request, NONE, ID,                           \
      "number of the last request to give idle memory back; 0: none") \
  ONE(T, uint32_t, watch_request, NONE, ID,                           \
      "number of the last request to sample what is watched faster for a minute; 0: none")

#define TSL_SITES_FIELDS(T, ONE, EACH, LIST, TEXT)                                          \
  ONE(T, uint64_t, allocations, OBJECTS, COUNTER, "samples, each `times`")                  \
  ONE(T, uint64_t, bytes, BYTES, COUNTER, "of these samples, each `times`")                 \
  ONE(T, uint64_t, frees, OBJECTS, COUNTER, "of these samples, each `times`")               \
  ONE(T, uint64_t, short_frees, OBJECTS, COUNTER, "of `frees`: lived less than `short_ms`") \
  LIST(T, TSL_NUMBER_decades, uint64_t, frees_by_decade, OBJECTS, COUNTER,                  \
       "of `frees`: lived less than `short_ms`, 10 times that, and so on; last: longer")    \
  ONE(T, uint64_t, lifetime_ms, MS, COUNTER, "that those of `frees` lived, added up")       \
  ONE(T, uint32_t, label, NONE, ID, "row in labels")                                        \
  ONE(T, uint32_t, class, NONE, ID, "row in classes; beyond them: blocks of whole units")   \
  ONE(T, uint64_t, depth, PIECES, GAUGE, "calls in frames; 0: the row is nobody's")         \
  LIST(T, TSL_SITE_FRAMES, uint64_t, frames, NONE, ID, "return addresses, innermost first")

#define TSL_SAMPLES_FIELDS(T, ONE, EACH, LIST, TEXT)                                         \
  ONE(T, uint32_t, site, NONE, ID, "row in sites; 0: the row is nobody's, or being written") \
  ONE(T, uint32_t, times, OBJECTS, GAUGE, "samples at `weight_bytes` that it stands for")    \
  ONE(T, uint64_t, address, NONE, ID, "of the live block")                                   \
  ONE(T, uint64_t, bytes, BYTES, GAUGE, "of the block, unweighted")                          \
  ONE(T, uint64_t, epoch, NONE, ID, "id of its epoch; 0: the default one")                   \
  ONE(T, uint64_t, sampled_ms, MS, GAUGE, "when it was allocated")

#define TSL_EVENTS_FIELDS(T, ONE, EACH, LIST, TEXT)                                         \
  ONE(T, uint64_t, at_ns, NS, GAUGE, "when; 0: the row is nobody's, or being written")      \
  ONE(T, uint64_t, bytes, BYTES, GAUGE, "of the block, unweighted; 0: it was freed")        \
  ONE(T, uint32_t, times, OBJECTS, GAUGE, "samples at `weight_bytes` that it stands for")   \
  ONE(T, uint32_t, sample, NONE, ID, "number of the sample, the next one's after its free") \
  ONE(T, uint32_t, site, NONE, ID, "row in sites of who allocated or freed; 0: not known")  \
  ONE(T, uint32_t, thread, NONE, ID, "as the system numbers it")

#define TSL_CLASSES_FIELDS(T, ONE, EACH, LIST, TEXT)                     \
  ONE(T, uint32_t, bytes, BYTES, GAUGE, "of a block")                    \
  ONE(T, uint32_t, slab_bytes, BYTES, GAUGE, "of a slab")                \
  ONE(T, uint32_t, capacity, OBJECTS, GAUGE, "blocks that a slab holds") \
  ONE(T, uint64_t, purged_bytes, BYTES, COUNTER, "pages of open slabs that went back")

#define TSL_LABELS_FIELDS(T, ONE, EACH, LIST, TEXT)                                           \
  TEXT(T, TSL_LABEL_BYTES, text, "the label of row `label`")                                  \
  ONE(T, uint64_t, limits_refused, PIECES, COUNTER,                                           \
      "times that a limit of its epochs refused memory")                                      \
  ONE(T, uint64_t, memory_refused, PIECES, COUNTER,                                           \
      "times that the system refused its epochs memory")                                      \
  ONE(T, uint32_t, ended, PIECES, GAUGE,                                                      \
      "its epochs that were closed of late, with memory of their own and no guests")          \
  ONE(T, uint32_t, released, NONE, GAUGE,                                                     \
      "1: an epoch was released or reset, or a block of it kept for its parent: none shares") \
  ONE(T, uint32_t, shares, NONE, GAUGE, "1: the next epochs share memory")                    \
  ONE(T, uint64_t, ended_bytes, BYTES, GAUGE, "that `ended` held at their ends")              \
  ONE(T, uint64_t, ended_survivor_bytes, BYTES, GAUGE, "of them: objects that lived on")      \
  ONE(T, uint64_t, ended_pinned_bytes, BYTES, GAUGE,                                          \
      "of them: cells and slabs in which objects lived on")                                   \
  ONE(T, uint64_t, ended_lived_ms, MS, GAUGE, "that `ended` were open, added up")

#define TSL_EPOCHS_FIELDS(T, ONE, EACH, LIST, TEXT)                                            \
  ONE(T, uint64_t, id, NONE, ID, "0, but in row 0: the row is nobody's, or being written")     \
  ONE(T, uint64_t, parent, NONE, ID, "the parent's row; 0: none")                              \
  ONE(T, uint32_t, label, NONE, ID, "row in labels")                                           \
  ONE(T, uint32_t, state, NONE, ID, "where it is in its life")                                 \
  ONE(T, uint64_t, opened_ms, MS, GAUGE, "when it was opened")                                 \
  ONE(T, uint64_t, closed_ms, MS, GAUGE, "when it was closed or released; 0: it is open")      \
  ONE(T, uint64_t, held_bytes, BYTES, GAUGE, "its cells, slabs, large blocks, its children's") \
  ONE(T, uint64_t, soft_limit_bytes, BYTES, GAUGE, "0: none")                                  \
  ONE(T, uint64_t, hard_limit_bytes, BYTES, GAUGE, "0: none")                                  \
  ONE(T, uint64_t, large_objects, OBJECTS, GAUGE, "live blocks of whole units")                \
  ONE(T, uint64_t, large_bytes, BYTES, GAUGE, "of `large_objects`")                            \
  EACH(T, uint32_t, survivors, OBJECTS, GAUGE, "live, in parts that were sealed")

#define TSL_HEAPS_FIELDS(T, ONE, EACH, LIST, TEXT)                                                \
  ONE(T, uint32_t, state, NONE, ID, "whose it is")                                                \
  ONE(T, uint32_t, epoch, NONE, ID, "row in epochs whose part this is")                           \
  ONE(T, uint32_t, home, NONE, ID, "row of the same thread's part of the default epoch")          \
  ONE(T, uint32_t, thread, NONE, ID, "of a home: the thread, as the system numbers it")           \
  ONE(T, uint32_t, scopes, PIECES, GAUGE, "open in it when it was last told, or its epoch ended") \
  ONE(T, uint32_t, cached_units, PIECES, GAUGE, "of `unit_bytes`, empty, that the thread keeps")  \
  ONE(T, uint64_t, cut_objects, OBJECTS, COUNTER, "allocated in cells")                           \
  ONE(T, uint64_t, cut_bytes, BYTES, COUNTER, "of `cut_objects`")                                 \
  ONE(T, uint64_t, freed_objects, OBJECTS, COUNTER, "of `cut_objects`: freed by the thread")      \
  ONE(T, uint64_t, freed_bytes, BYTES, COUNTER, "of `freed_objects`")                             \
  ONE(T, uint64_t, away_objects, OBJECTS, COUNTER, "freed by others; of slabs also in `taken`")   \
  ONE(T, uint64_t, away_bytes, BYTES, COUNTER, "of `away_objects`")                               \
  ONE(T, uint64_t, cell_bytes, BYTES, GAUGE, "its cells")

#define TSL_BINS_FIELDS(T, ONE, EACH, LIST, TEXT)                                                  \
  EACH(T, uint64_t, allocations, OBJECTS, COUNTER, "in slabs")                                     \
  EACH(T, uint32_t, out, OBJECTS, GAUGE, "blocks that slabs miss: live, hot or sent")              \
  EACH(T, uint32_t, hot, OBJECTS, GAUGE, "free blocks that the thread keeps at hand")              \
  EACH(T, uint64_t, sent, OBJECTS, COUNTER, "frees of blocks of other homes")                      \
  EACH(T, uint64_t, taken, OBJECTS, COUNTER, "frees by others that came back to the slabs")        \
  EACH(T, uint64_t, away, OBJECTS, COUNTER, "of a part: its `away_objects` in slabs")              \
  EACH(T, uint32_t, slabs, PIECES, GAUGE, "open now")                                              \
  EACH(T, uint32_t, opened, PIECES, COUNTER, "slabs so far")                                       \
  EACH(T, uint64_t, refills, PIECES, COUNTER, "times that an empty bin took blocks of a slab")     \
  EACH(T, uint64_t, returned, OBJECTS, COUNTER, "freed without room at hand: put in slabs")        \
  ONE(T, uint64_t, cells_taken, PIECES, COUNTER, "of a home: by its thread, in all epochs")        \
  ONE(T, uint64_t, cells_restarted, PIECES, COUNTER, "of a home: empty cells that it cut anew")    \
  ONE(T, uint64_t, ended_objects, OBJECTS, COUNTER, "of a home: `cut_objects` of parts it ended")  \
  ONE(T, uint64_t, ended_bytes, BYTES, COUNTER, "of `ended_objects`")                              \
  ONE(T, uint64_t, units_kept, PIECES, COUNTER, "of a home: for slabs, kept by its thread")        \
  ONE(T, uint64_t, units_shared, PIECES, COUNTER, "the same, from the cache of all threads")       \
  ONE(T, uint64_t, units_reused, PIECES, COUNTER, "the same, nobody's, with pages")                \
  ONE(T, uint64_t, units_fresh, PIECES, COUNTER, "the same, nobody's, whose pages were not there") \
  ONE(T, uint64_t, closes, PIECES, COUNTER, "of a home: epochs that its thread closed")            \
  ONE(T, uint64_t, releases, PIECES, COUNTER, "the same, released; their children count")          \
  ONE(T, uint64_t, end_parts, PIECES, COUNTER, "of a home: parts that its thread ended")           \
  ONE(T, uint64_t, end_pieces, PIECES, COUNTER, "cells and slabs of `end_parts`")                  \
  ONE(T, uint64_t, end_pieces_given, PIECES, COUNTER, "of `end_pieces`: given back at once")       \
  ONE(T, uint64_t, end_bytes, BYTES, COUNTER, "of `end_pieces`, whether or not resident")          \
  ONE(T, uint64_t, end_bytes_given, BYTES, COUNTER, "of `end_pieces_given`")                       \
  ONE(T, uint64_t, end_timed_parts, PIECES, COUNTER,                                               \
      "of `end_parts`: those of at least 64 pieces")                                               \
  ONE(T, uint64_t, end_timed_ns, NS, COUNTER, "that the walks over `end_timed_parts` took")

// TABLE(name, most rows, fields). Rows of epochs are their slots, of heaps and bins the numbers of
// heaps; row 0 of epochs is the default epoch, row 0 of bins the threads without a heap.
#define TSL_TABLES(TABLE)                              \
  TABLE(process, 1, TSL_PROCESS_FIELDS)                \
  TABLE(classes, TSL_CLASSES, TSL_CLASSES_FIELDS)      \
  TABLE(labels, TSL_MOST_LABELS, TSL_LABELS_FIELDS)    \
  TABLE(epochs, 1 << 18, TSL_EPOCHS_FIELDS)            \
  TABLE(heaps, 1 << 18, TSL_HEAPS_FIELDS)              \
  TABLE(bins, 1 << 14, TSL_BINS_FIELDS)                \
  TABLE(control, 1, TSL_CONTROL_FIELDS)                \
  TABLE(sites, TSL_MOST_SITES, TSL_SITES_FIELDS)       \
  TABLE(samples, TSL_MOST_SAMPLES, TSL_SAMPLES_FIELDS) \
  TABLE(events, TSL_MOST_EVENTS, TSL_EVENTS_FIELDS)

// STATE(name, meaning): the values of `state`, from 0 on.
#define TSL_EPOCHS_STATES(STATE) \
  STATE(OPEN, "open") STATE(CLOSED, "closed") STATE(RELEASED, "released") STATE(SHARED, "shared")
#define TSL_HEAPS_STATES(STATE) \
  STATE(NOBODYS, "nobody's") STATE(A_THREADS, "a thread's") STATE(POOLED, "a home without one")

// NUMBER(name, value, meaning): what else readers must know.
#define TSL_ROWS_NUMBERS(NUMBER)                                                     \
  NUMBER(unit_bytes, 0x10000, "of a unit")                                           \
  NUMBER(other_label, 1, "row in labels of those that have no row of their own")     \
  NUMBER(no_samples, 0xffffffff, "`sample_bytes` of control by which none is taken") \
  NUMBER(short_ms, 10, "of `short_frees` and `frees_by_decade` of sites")            \
  NUMBER(decades, 7, "values of `frees_by_decade` of sites")

// The causes for which allocations and frees leave the fast path. COUNT(cause, who, table, field,
// meaning): their number is the field's sum over all rows. LESS(cause, who, table, field, less,
// meaning): that sum less the sum of the field `less`.
#define TSL_SLOW_PATHS(COUNT, LESS)                                                        \
  LESS(bin_empty, ALLOCATION, bins, refills, opened,                                       \
       "no block was at hand: up to 64 were taken from a slab")                            \
  COUNT(slab_opened, ALLOCATION, bins, opened,                                             \
        "no slab of the class had room: another was opened")                               \
  COUNT(cell_full, ALLOCATION, bins, cells_taken,                                          \
        "the epoch's newest cell was full: another was taken")                             \
  COUNT(cell_restarted, ALLOCATION, bins, cells_restarted,                                 \
        "the newest cell was full, and all in it free: it was begun anew")                 \
  COUNT(whole_units, ALLOCATION, process, large_allocations, "blocks above 32 KiB")        \
  COUNT(sampled, ALLOCATION, process, samples_taken, "allocations that the profiler took") \
  COUNT(bin_full, FREE, bins, returned, "there was no room at hand for a freed block")     \
  COUNT(other_thread, FREE, bins, sent, "blocks of the default epoch that other threads freed")

#define TSL_STATE(name, meaning) TSL_EPOCHS_##name,
enum tsl_epochs_state { TSL_EPOCHS_STATES(TSL_STATE) };
#undef TSL_STATE
#define TSL_STATE(name, meaning) TSL_HEAPS_##name,
enum tsl_heaps_state { TSL_HEAPS_STATES(TSL_STATE) };
#undef TSL_STATE
#define TSL_NUMBER(name, value, meaning) TSL_NUMBER_##name = (value),
enum tsl_rows_numbers { TSL_ROWS_NUMBERS(TSL_NUMBER) };
#undef TSL_NUMBER

#define TSL_TABLE_NUMBER(name, most, fields) TSL_ROWS_##name,
enum tsl_rows { TSL_TABLES(TSL_TABLE_NUMBER) TSL_ROWS };
#undef TSL_TABLE_NUMBER

#define TSL_ROW_ONE(table, type, name, unit, kind, meaning) type name;
#define TSL_ROW_EACH(table, type, name, unit, kind, meaning) type name[TSL_CLASSES];
#define TSL_ROW_LIST(table, length, type, name, unit, kind, meaning) type name[length];
#define TSL_ROW_TEXT(table, bytes, name, meaning) char name[bytes];
#define TSL_TABLE_ROW(name, most, fields)                               \
  struct tsl_##name##_row {                                             \
    fields(name, TSL_ROW_ONE, TSL_ROW_EACH, TSL_ROW_LIST, TSL_ROW_TEXT) \
  };
TSL_TABLES(TSL_TABLE_ROW)
#undef TSL_TABLE_ROW

TSL_HIDDEN extern const struct tsl_mirror_layout tsl_rows_layout;

// A row, NULL when there is none.
#define TSL_ROW(table, number) TSL_ROW_IN(TSL_MIRROR_PASS, table, number)

// A row that is written once, and at no later report.
#define TSL_ROW_ONCE(table, number) TSL_ROW_IN(TSL_MIRROR_WAIT, table, number)

#define TSL_ROW_IN(haste, table, number)                                  \
  ((struct tsl_##table##_row *)tsl_mirror_row(TSL_ROWS_##table, (number), \
                                              sizeof(struct tsl_##table##_row), (haste)))

// One that was written before.
#define TSL_ROW_MADE(table, number)                                            \
  ((struct tsl_##table##_row *)tsl_mirror_made_row(TSL_ROWS_##table, (number), \
                                                   sizeof(struct tsl_##table##_row)))

#define TSL_PUT(row, field, value) tsl_store_relaxed(&(row)->field, (value))

// Writes a text of less than `bytes` bytes to a row, and zeroes behind it: word by word, as others
// may read it at the same time. `row_text` is aligned as a word, and `bytes` are whole words.
TSL_HIDDEN void tsl_rows_put_text(char *row_text, const char *text, size_t bytes);

// Zeroes a part of a row, word by word: other threads may add to its words at the same time (M3).
TSL_HIDDEN void tsl_rows_clear(void *start, size_t bytes);

// Whether there is a file to tell anything.
TSL_ALWAYS_INLINE bool tsl_report_is_on(void) {
  return tsl_load_relaxed(&tsl_mirror_tables[TSL_ROWS_heaps].ready) != 0;
}
