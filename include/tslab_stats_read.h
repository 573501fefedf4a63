/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tslab_stats_read: what a process on tslab holds, by its statistics file.
 *
 *   static tslab_reader reader;
 *   tslab_reader_totals totals;
 *   tslab_reader_error error = tslab_reader_open(&reader, pid);
 *   if (error == TSLAB_READER_OK) error = tslab_reader_totals_get(&reader, &totals);
 *   if (error != TSLAB_READER_OK) puts(tslab_reader_error_text(error));
 *   tslab_reader_close(&reader);
 *
 * The figures are those of the command `tslab` (docs/statistics.md). Of a process that runs, parts
 * of a sum are of different moments: a sum that comes out negative is 0, and `unsettled` is 1.
 * How the file is opened, and the rest of the rules: tslab_stats_file.h. */
#pragma once

#include "tslab_stats_file.h"

#define TSLAB_READER_MOST_CLASSES 128u
#define TSLAB_READER_UNIT_BYTES 65536u /* of what threads keep empty */
#define TSLAB_READER_TEXT_BYTES 128u   /* of a label, with the 0 at its end */

/* A figure that the file does not tell, because its library is older. */
#define TSLAB_READER_UNKNOWN UINT64_MAX

/* What lives and is held: in the process, in the epochs of a label, or in one epoch. */
typedef struct tslab_reader_figures {
  uint64_t live_objects;
  uint64_t live_bytes;
  uint64_t large_objects; /* of the live ones: blocks of whole units */
  uint64_t large_bytes;
  uint64_t held_bytes; /* slabs, cells and large blocks, without those of descendants */
  uint64_t epochs_open;
  uint64_t epochs_shared;
  int unsettled; /* 1: the figures were changing while they were read */
} tslab_reader_figures;

typedef struct tslab_reader_totals {
  tslab_reader_figures all;
  uint64_t epochs_closed_with_survivors;
  uint64_t hot_bytes;           /* free objects in slabs that threads keep at hand */
  uint64_t spare_bytes;         /* held, and neither live nor at hand */
  uint64_t thread_cached_bytes; /* empty units that threads keep: nobody holds them */
  uint64_t threads;             /* that have a heap */
  uint64_t allocations;         /* objects so far */
} tslab_reader_totals;

typedef struct tslab_reader_epoch {
  tslab_reader_figures own;
  uint64_t held_bytes; /* its descendants' memory included, as its limits count */
  uint64_t id;
  uint64_t parent; /* row; 0: none */
  uint64_t label;  /* row */
  uint64_t state;  /* TSLAB_READER_OPEN, ... */
  uint64_t opened_ms;
  uint64_t closed_ms;                          /* 0: it is open */
  uint64_t soft_limit_bytes, hard_limit_bytes; /* 0: none */
} tslab_reader_epoch;

typedef struct tslab_reader_label {
  tslab_reader_figures all;
  char text[TSLAB_READER_TEXT_BYTES];
  uint64_t limits_refused; /* or TSLAB_READER_UNKNOWN, as the next */
  uint64_t memory_refused;
} tslab_reader_label;

/* A size class, over all threads. */
typedef struct tslab_reader_class {
  uint64_t bytes;
  uint64_t slab_bytes;
  uint64_t capacity;
  uint64_t live;  /* objects in slabs, and survivors of epochs: all but those in cells */
  uint64_t out;   /* blocks that slabs miss: live, at hand, or on their way back */
  uint64_t hot;   /* free objects that threads keep at hand */
  uint64_t slabs; /* open now */
  uint64_t opened;
  uint64_t recycled; /* of `opened`: given back */
  uint64_t allocations;
  uint64_t refills;
  uint64_t returned;
  uint64_t purged_bytes; /* or TSLAB_READER_UNKNOWN */
  int unsettled;
} tslab_reader_class;

/* `state` of epochs, and of heaps. */
enum {
  TSLAB_READER_OPEN,
  TSLAB_READER_CLOSED,
  TSLAB_READER_RELEASED,
  TSLAB_READER_SHARED,
  TSLAB_READER_NOBODYS = 0,
  TSLAB_READER_A_THREADS
};

/* FIELD(table, field, whether sums go without it) */
#define TSLAB_READER_FIELDS_(FIELD)    \
  FIELD(epochs, id, 0)                 \
  FIELD(epochs, parent, 0)             \
  FIELD(epochs, label, 0)              \
  FIELD(epochs, state, 0)              \
  FIELD(epochs, held_bytes, 0)         \
  FIELD(epochs, large_objects, 0)      \
  FIELD(epochs, large_bytes, 0)        \
  FIELD(epochs, survivors, 0)          \
  FIELD(heaps, state, 0)               \
  FIELD(heaps, epoch, 0)               \
  FIELD(heaps, home, 0)                \
  FIELD(heaps, cut_objects, 0)         \
  FIELD(heaps, cut_bytes, 0)           \
  FIELD(heaps, freed_objects, 0)       \
  FIELD(heaps, freed_bytes, 0)         \
  FIELD(heaps, away_objects, 0)        \
  FIELD(heaps, away_bytes, 0)          \
  FIELD(heaps, cell_bytes, 0)          \
  FIELD(heaps, cached_units, 1)        \
  FIELD(bins, out, 0)                  \
  FIELD(bins, hot, 0)                  \
  FIELD(bins, sent, 0)                 \
  FIELD(bins, taken, 0)                \
  FIELD(bins, away, 1)                 \
  FIELD(bins, slabs, 0)                \
  FIELD(bins, opened, 1)               \
  FIELD(bins, allocations, 1)          \
  FIELD(bins, refills, 1)              \
  FIELD(bins, returned, 1)             \
  FIELD(bins, ended_objects, 1)        \
  FIELD(process, large_objects, 0)     \
  FIELD(process, large_bytes, 0)       \
  FIELD(process, large_allocations, 1) \
  FIELD(classes, bytes, 0)             \
  FIELD(classes, slab_bytes, 0)        \
  FIELD(classes, capacity, 1)          \
  FIELD(classes, purged_bytes, 1)

#define TSLAB_READER_FIELD_NAME_(table, field, optional) TSLAB_READER_##table##_##field,
enum { TSLAB_READER_FIELDS_(TSLAB_READER_FIELD_NAME_) TSLAB_READER_SUMMED_ };
#undef TSLAB_READER_FIELD_NAME_

/* Whose sums they are. */
enum { TSLAB_READER_ALL_, TSLAB_READER_OF_LABEL_, TSLAB_READER_OF_EPOCH_ };

/* What is added up while the tables are walked. */
struct tslab_reader_walk_ {
  tslab_reader *reader;
  tslab_reader_error error; /* the first one; then all values are 0 */
  int scope;
  uint64_t which; /* row of the label or the epoch */
  uint64_t classes;
  uint64_t held_bytes;
  uint64_t objects;
  uint64_t bytes;
  uint64_t large_objects; /* in scope, but of the default epoch */
  uint64_t large_bytes;
  uint64_t listed_objects; /* of all epochs */
  uint64_t listed_bytes;
  uint64_t parts_of_closed; /* of epochs that are closed */
  uint64_t cells_bytes;     /* of homes */
  uint64_t hot_bytes;
  uint64_t units;
  uint64_t threads;
  uint64_t allocations;
  uint64_t mark; /* changes with the epochs' rows */
  tslab_reader_figures figures;
  uint64_t there[TSLAB_READER_MOST_CLASSES]; /* of homes: out - hot */
  uint64_t away[TSLAB_READER_MOST_CLASSES];  /* of homes: sent - taken */
  uint64_t slabs[TSLAB_READER_MOST_CLASSES]; /* of homes */
  tslab_reader_column columns[TSLAB_READER_SUMMED_];
};

static inline uint64_t tslab_reader_take_(struct tslab_reader_walk_ *walk, int field, uint64_t row,
                                          uint64_t index) {
  const tslab_reader_column *column = &walk->columns[field];
  uint64_t value = 0;
  if (walk->error != TSLAB_READER_OK || row >= column->rows || index >= column->count) return 0;
  walk->error = tslab_reader_value(walk->reader, column, row, index, &value);
  return value;
}

/* Modulo 2^64, a negative sum is a large one. */
static inline uint64_t tslab_reader_settle_(uint64_t sum, int *unsettled) {
  if (sum <= INT64_MAX) return sum;
  *unsettled = 1;
  return 0;
}

static inline uint64_t tslab_reader_less_(uint64_t all, uint64_t part) {
  return all > part ? all - part : 0;
}

/* A counter of fewer bytes that went below 0. */
static inline uint64_t tslab_reader_extend_(uint64_t value, uint64_t bytes) {
  uint64_t sign = TSLAB_READER_CAST(uint64_t, 1) << (bytes * 8 - 1);
  return bytes >= 8 ? value : ((value & (sign * 2 - 1)) ^ sign) - sign;
}

static inline tslab_reader_error tslab_reader_columns_find_(struct tslab_reader_walk_ *walk) {
#define TSLAB_READER_FIELD_ENTRY_(table, field, optional) {#table, #field, optional},
  static const struct {
    const char *table, *field;
    int optional;
  } fields[] = {TSLAB_READER_FIELDS_(TSLAB_READER_FIELD_ENTRY_)};
#undef TSLAB_READER_FIELD_ENTRY_
  for (unsigned i = 0; i < TSLAB_READER_SUMMED_; i++) {
    tslab_reader_error error =
        tslab_reader_column_find(walk->reader, fields[i].table, fields[i].field, &walk->columns[i]);
    if (error == TSLAB_READER_NOT_TOLD && fields[i].optional) continue;
    if (error != TSLAB_READER_OK) return error;
  }
  return TSLAB_READER_OK;
}

static inline tslab_reader_error tslab_reader_walk_begin_(struct tslab_reader_walk_ *walk,
                                                          tslab_reader *reader, int scope,
                                                          uint64_t which) {
  memset(walk, 0, sizeof *walk);
  walk->reader = reader;
  walk->scope = scope;
  walk->which = which;
  if (reader->file < 0) return TSLAB_READER_NO_FILE;
  tslab_reader_refresh(reader);
  tslab_reader_error error = tslab_reader_columns_find_(walk);
  const tslab_reader_column *columns = walk->columns;
  walk->classes = columns[TSLAB_READER_classes_bytes].rows;
  if (error == TSLAB_READER_OK && (walk->classes > TSLAB_READER_MOST_CLASSES ||
                                   walk->classes < columns[TSLAB_READER_bins_out].count ||
                                   walk->classes < columns[TSLAB_READER_epochs_survivors].count))
    return TSLAB_READER_DAMAGED;
  return error;
}

/* Row 0 is the default epoch. */
static inline int tslab_reader_is_epoch_(struct tslab_reader_walk_ *walk, uint64_t row) {
  return row == 0 || tslab_reader_take_(walk, TSLAB_READER_epochs_id, row, 0) != 0;
}

static inline int tslab_reader_has_(struct tslab_reader_walk_ *walk, uint64_t row) {
  if (walk->scope == TSLAB_READER_OF_EPOCH_) return row == walk->which;
  return walk->scope == TSLAB_READER_ALL_ ||
         tslab_reader_take_(walk, TSLAB_READER_epochs_label, row, 0) == walk->which;
}

static inline void tslab_reader_mark_(uint64_t *mark, uint64_t value) {
  *mark = (*mark ^ value) * UINT64_C(0x100000001B3);
}

/* Objects of an epoch in parts that were sealed. */
static inline void tslab_reader_add_survivors_(struct tslab_reader_walk_ *walk, uint64_t row) {
  const tslab_reader_column *column = &walk->columns[TSLAB_READER_epochs_survivors];
  for (uint64_t i = 0; i < column->count; i++) {
    uint64_t objects = tslab_reader_take_(walk, TSLAB_READER_epochs_survivors, row, i);
    if (objects == 0) continue;
    objects = tslab_reader_extend_(objects, column->bytes);
    walk->objects += objects;
    walk->bytes += objects * tslab_reader_take_(walk, TSLAB_READER_classes_bytes, i, 0);
  }
}

/* Of memory that an epoch holds, its parent holds as much, too. */
static inline void tslab_reader_add_held_(struct tslab_reader_walk_ *walk, uint64_t row) {
  uint64_t held = tslab_reader_take_(walk, TSLAB_READER_epochs_held_bytes, row, 0);
  uint64_t parent = tslab_reader_take_(walk, TSLAB_READER_epochs_parent, row, 0);
  if (row != 0 && tslab_reader_has_(walk, row)) walk->held_bytes += held;
  if (row != 0 && parent != 0 && parent != row && tslab_reader_is_epoch_(walk, parent) &&
      tslab_reader_has_(walk, parent))
    walk->held_bytes -= held;
}

static inline void tslab_reader_add_epoch_(struct tslab_reader_walk_ *walk, uint64_t row) {
  uint64_t state = tslab_reader_take_(walk, TSLAB_READER_epochs_state, row, 0);
  uint64_t objects = tslab_reader_take_(walk, TSLAB_READER_epochs_large_objects, row, 0);
  uint64_t bytes = tslab_reader_take_(walk, TSLAB_READER_epochs_large_bytes, row, 0);
  walk->objects += objects;
  walk->bytes += bytes;
  tslab_reader_add_survivors_(walk, row);
  if (row == 0) return;
  walk->large_objects += objects;
  walk->large_bytes += bytes;
  walk->figures.epochs_open += state == TSLAB_READER_OPEN;
  walk->figures.epochs_shared += state == TSLAB_READER_SHARED;
}

static inline void tslab_reader_walk_epochs_(struct tslab_reader_walk_ *walk) {
  uint64_t rows = walk->columns[TSLAB_READER_epochs_id].rows;
  for (uint64_t row = 0; row < rows && walk->error == TSLAB_READER_OK; row++) {
    walk->listed_objects += tslab_reader_take_(walk, TSLAB_READER_epochs_large_objects, row, 0);
    walk->listed_bytes += tslab_reader_take_(walk, TSLAB_READER_epochs_large_bytes, row, 0);
    if (!tslab_reader_is_epoch_(walk, row)) continue;
    tslab_reader_add_held_(walk, row);
    if (tslab_reader_has_(walk, row)) tslab_reader_add_epoch_(walk, row);
  }
}

/* A number of which epochs there are and who survives there. */
static inline uint64_t tslab_reader_epochs_mark_(struct tslab_reader_walk_ *walk) {
  uint64_t mark = 0, rows = walk->columns[TSLAB_READER_epochs_id].rows;
  for (uint64_t row = 0; row < rows && walk->error == TSLAB_READER_OK; row++) {
    tslab_reader_mark_(&mark, tslab_reader_take_(walk, TSLAB_READER_epochs_id, row, 0));
    if (!tslab_reader_is_epoch_(walk, row) || !tslab_reader_has_(walk, row)) continue;
    uint64_t count = walk->columns[TSLAB_READER_epochs_survivors].count;
    for (uint64_t i = 0; i < count; i++)
      tslab_reader_mark_(&mark, tslab_reader_take_(walk, TSLAB_READER_epochs_survivors, row, i));
  }
  return mark;
}

/* In cells of a heap; of a part, less what others freed in its slabs. */
static inline void tslab_reader_add_cells_(struct tslab_reader_walk_ *walk, uint64_t row) {
  walk->objects += tslab_reader_take_(walk, TSLAB_READER_heaps_cut_objects, row, 0) -
                   tslab_reader_take_(walk, TSLAB_READER_heaps_freed_objects, row, 0) -
                   tslab_reader_take_(walk, TSLAB_READER_heaps_away_objects, row, 0);
  walk->bytes += tslab_reader_take_(walk, TSLAB_READER_heaps_cut_bytes, row, 0) -
                 tslab_reader_take_(walk, TSLAB_READER_heaps_freed_bytes, row, 0) -
                 tslab_reader_take_(walk, TSLAB_READER_heaps_away_bytes, row, 0);
}

static inline void tslab_reader_add_part_(struct tslab_reader_walk_ *walk, uint64_t row) {
  uint64_t count = walk->columns[TSLAB_READER_bins_out].count;
  tslab_reader_add_cells_(walk, row);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t objects = tslab_reader_take_(walk, TSLAB_READER_bins_out, row, i) -
                       tslab_reader_take_(walk, TSLAB_READER_bins_hot, row, i) +
                       tslab_reader_take_(walk, TSLAB_READER_bins_taken, row, i);
    walk->objects += objects;
    walk->bytes += objects * tslab_reader_take_(walk, TSLAB_READER_classes_bytes, i, 0);
  }
}

/* Row 0 is of the threads without a heap: they only free. */
static inline void tslab_reader_add_home_(struct tslab_reader_walk_ *walk, uint64_t row) {
  uint64_t count = walk->columns[TSLAB_READER_bins_out].count;
  for (uint64_t i = 0; i < count; i++) {
    walk->away[i] += tslab_reader_take_(walk, TSLAB_READER_bins_sent, row, i);
    walk->slabs[i] += tslab_reader_take_(walk, TSLAB_READER_bins_slabs, row, i);
    if (row == 0) continue;
    walk->away[i] -= tslab_reader_take_(walk, TSLAB_READER_bins_taken, row, i);
    walk->there[i] += tslab_reader_take_(walk, TSLAB_READER_bins_out, row, i) -
                      tslab_reader_take_(walk, TSLAB_READER_bins_hot, row, i);
  }
  if (row == 0) return;
  tslab_reader_add_cells_(walk, row);
  walk->cells_bytes += tslab_reader_take_(walk, TSLAB_READER_heaps_cell_bytes, row, 0);
}

/* Of a heap: nothing, the default epoch's home, or a part of an epoch. */
enum { TSLAB_READER_NO_HEAP_, TSLAB_READER_HOME_, TSLAB_READER_PART_ };

static inline int tslab_reader_role_(struct tslab_reader_walk_ *walk, uint64_t row) {
  if (tslab_reader_take_(walk, TSLAB_READER_heaps_state, row, 0) == TSLAB_READER_NOBODYS)
    return TSLAB_READER_NO_HEAP_;
  if (tslab_reader_take_(walk, TSLAB_READER_heaps_home, row, 0) == row) return TSLAB_READER_HOME_;
  return TSLAB_READER_PART_;
}

/* What all heaps have, whichever epochs they are of. */
static inline void tslab_reader_add_heap_(struct tslab_reader_walk_ *walk, uint64_t row) {
  uint64_t count = walk->columns[TSLAB_READER_bins_hot].count;
  for (uint64_t i = 0; i < count; i++) {
    walk->hot_bytes += tslab_reader_take_(walk, TSLAB_READER_bins_hot, row, i) *
                       tslab_reader_take_(walk, TSLAB_READER_classes_bytes, i, 0);
    walk->allocations += tslab_reader_take_(walk, TSLAB_READER_bins_allocations, row, i);
  }
  walk->allocations += tslab_reader_take_(walk, TSLAB_READER_bins_ended_objects, row, 0);
  if (row == 0) return;
  walk->allocations += tslab_reader_take_(walk, TSLAB_READER_heaps_cut_objects, row, 0);
  walk->units += tslab_reader_take_(walk, TSLAB_READER_heaps_cached_units, row, 0);
}

/* A part of the default epoch that is no home is about to become one. */
static inline void tslab_reader_add_part_of_(struct tslab_reader_walk_ *walk, uint64_t row) {
  uint64_t epoch = tslab_reader_take_(walk, TSLAB_READER_heaps_epoch, row, 0);
  if (epoch == 0 || !tslab_reader_is_epoch_(walk, epoch)) return;
  walk->parts_of_closed +=
      tslab_reader_take_(walk, TSLAB_READER_epochs_state, epoch, 0) == TSLAB_READER_CLOSED;
  if (tslab_reader_has_(walk, epoch)) tslab_reader_add_part_(walk, row);
}

static inline void tslab_reader_walk_heaps_(struct tslab_reader_walk_ *walk) {
  uint64_t rows = walk->columns[TSLAB_READER_heaps_state].rows;
  int has_default = tslab_reader_has_(walk, 0);
  tslab_reader_add_heap_(walk, 0);
  if (has_default) tslab_reader_add_home_(walk, 0);
  for (uint64_t row = 1; row < rows && walk->error == TSLAB_READER_OK; row++) {
    int role = tslab_reader_role_(walk, row);
    uint64_t state = tslab_reader_take_(walk, TSLAB_READER_heaps_state, row, 0);
    if (role == TSLAB_READER_NO_HEAP_) continue;
    tslab_reader_add_heap_(walk, row);
    walk->threads += role == TSLAB_READER_HOME_ && state == TSLAB_READER_A_THREADS;
    if (role == TSLAB_READER_PART_) tslab_reader_add_part_of_(walk, row);
    if (role == TSLAB_READER_HOME_ && has_default) tslab_reader_add_home_(walk, row);
  }
}

/* Live objects of a class in slabs of the default epoch: those that are out, but for those that
 * other threads freed and that are on their way back. */
static inline uint64_t tslab_reader_in_default_(const struct tslab_reader_walk_ *walk, uint64_t i,
                                                int *unsettled) {
  uint64_t sent = walk->columns[TSLAB_READER_bins_sent].bytes;
  uint64_t taken = walk->columns[TSLAB_READER_bins_taken].bytes;
  uint64_t away = tslab_reader_extend_(walk->away[i], sent < taken ? sent : taken);
  return tslab_reader_settle_(walk->there[i] - tslab_reader_settle_(away, unsettled), unsettled);
}

/* The default epoch keeps no list of its large blocks: they are those of no other epoch. */
static inline void tslab_reader_add_default_(struct tslab_reader_walk_ *walk) {
  int *unsettled = &walk->figures.unsettled;
  uint64_t objects = tslab_reader_take_(walk, TSLAB_READER_process_large_objects, 0, 0);
  uint64_t bytes = tslab_reader_take_(walk, TSLAB_READER_process_large_bytes, 0, 0);
  objects = tslab_reader_settle_(objects - walk->listed_objects, unsettled);
  bytes = tslab_reader_settle_(bytes - walk->listed_bytes, unsettled);
  walk->objects += objects;
  walk->bytes += bytes;
  walk->large_objects += objects;
  walk->large_bytes += bytes;
  walk->held_bytes += bytes + walk->cells_bytes;
  for (uint64_t i = 0; i < walk->columns[TSLAB_READER_bins_out].count; i++) {
    objects = tslab_reader_in_default_(walk, i, unsettled);
    walk->objects += objects;
    walk->bytes += objects * tslab_reader_take_(walk, TSLAB_READER_classes_bytes, i, 0);
    walk->held_bytes +=
        walk->slabs[i] * tslab_reader_take_(walk, TSLAB_READER_classes_slab_bytes, i, 0);
  }
}

/* Epochs are read first: what a thread that leaves one moves meanwhile from its part to the epoch
 * is missed, not counted twice; and again at last, to tell whether they changed. */
static inline tslab_reader_error tslab_reader_walk_all_(struct tslab_reader_walk_ *walk) {
  tslab_reader_figures *figures = &walk->figures;
  uint64_t mark = tslab_reader_epochs_mark_(walk);
  tslab_reader_walk_epochs_(walk);
  tslab_reader_walk_heaps_(walk);
  if (tslab_reader_has_(walk, 0)) tslab_reader_add_default_(walk);
  tslab_reader_refresh(walk->reader);
  if (mark != tslab_reader_epochs_mark_(walk)) figures->unsettled = 1;
  figures->live_objects = tslab_reader_settle_(walk->objects, &figures->unsettled);
  figures->live_bytes = tslab_reader_settle_(walk->bytes, &figures->unsettled);
  figures->held_bytes = tslab_reader_settle_(walk->held_bytes, &figures->unsettled);
  figures->large_objects = walk->large_objects;
  figures->large_bytes = walk->large_bytes;
  return walk->error;
}

/* What lives and is held in one epoch, by its row. Looks at every row of epochs and heaps. */
static inline tslab_reader_error tslab_reader_epoch_get(tslab_reader *reader, uint64_t row,
                                                        tslab_reader_epoch *epoch) {
  static const char *const names[] = {"id",         "parent",           "label",
                                      "state",      "opened_ms",        "closed_ms",
                                      "held_bytes", "soft_limit_bytes", "hard_limit_bytes"};
  uint64_t *const values[] = {
      &epoch->id,         &epoch->parent,           &epoch->label,
      &epoch->state,      &epoch->opened_ms,        &epoch->closed_ms,
      &epoch->held_bytes, &epoch->soft_limit_bytes, &epoch->hard_limit_bytes};
  struct tslab_reader_walk_ walk;
  uint64_t id = 0;
  memset(epoch, 0, sizeof *epoch);
  tslab_reader_error error = tslab_reader_walk_begin_(&walk, reader, TSLAB_READER_OF_EPOCH_, row);
  for (unsigned i = 0; i < sizeof names / sizeof names[0] && error == TSLAB_READER_OK; i++) {
    tslab_reader_column column;
    error = tslab_reader_column_find(reader, "epochs", names[i], &column);
    if (error == TSLAB_READER_OK) error = tslab_reader_value(reader, &column, row, 0, values[i]);
  }
  if (error == TSLAB_READER_OK && row != 0 && epoch->id == 0) error = TSLAB_READER_NO_ROW;
  if (error == TSLAB_READER_OK) error = tslab_reader_walk_all_(&walk);
  if (error != TSLAB_READER_OK) return error;
  epoch->own = walk.figures;
  if (row == 0) epoch->held_bytes = epoch->own.held_bytes;
  error = tslab_reader_value(reader, &walk.columns[TSLAB_READER_epochs_id], row, 0, &id);
  if (error == TSLAB_READER_OK && id != epoch->id) return TSLAB_READER_NO_ROW;
  return error;
}

/* How many rows of a table there are now; of epochs, those of nobody among them. */
static inline tslab_reader_error tslab_reader_rows(tslab_reader *reader, const char *name,
                                                   uint64_t *rows) {
  struct tslab_stats_table table;
  uint32_t number;
  *rows = 0;
  tslab_reader_refresh(reader);
  tslab_reader_error error = tslab_reader_table_find_(reader, name, &number, &table);
  if (error == TSLAB_READER_OK) *rows = table.rows;
  return error;
}

static inline uint64_t tslab_reader_optional_(tslab_reader *reader, const char *table,
                                              const char *field, uint64_t row) {
  tslab_reader_column column;
  uint64_t value = TSLAB_READER_UNKNOWN;
  if (tslab_reader_column_find(reader, table, field, &column) != TSLAB_READER_OK ||
      tslab_reader_value(reader, &column, row, 0, &value) != TSLAB_READER_OK)
    return TSLAB_READER_UNKNOWN;
  return value;
}

/* What lives and is held in the epochs of a label, by the label's row; 0 is the default epoch's.
 * Returns: TSLAB_READER_NO_ROW for a row without a text. */
static inline tslab_reader_error tslab_reader_label_get(tslab_reader *reader, uint64_t row,
                                                        tslab_reader_label *label) {
  struct tslab_reader_walk_ walk;
  tslab_reader_column text;
  memset(label, 0, sizeof *label);
  tslab_reader_error error = tslab_reader_walk_begin_(&walk, reader, TSLAB_READER_OF_LABEL_, row);
  if (error == TSLAB_READER_OK) error = tslab_reader_column_find(reader, "labels", "text", &text);
  if (error == TSLAB_READER_OK)
    error = tslab_reader_text(reader, &text, row, label->text, sizeof label->text);
  if (error == TSLAB_READER_OK && label->text[0] == '\0') error = TSLAB_READER_NO_ROW;
  if (error != TSLAB_READER_OK) return error;
  label->limits_refused = tslab_reader_optional_(reader, "labels", "limits_refused", row);
  label->memory_refused = tslab_reader_optional_(reader, "labels", "memory_refused", row);
  error = tslab_reader_walk_all_(&walk);
  label->all = walk.figures;
  return error;
}

/* Closed epochs with live objects. Only where a thread has not left one are the heaps asked. */
static inline tslab_reader_error tslab_reader_closed_(struct tslab_reader_walk_ *all,
                                                      uint64_t *closed) {
  struct tslab_reader_walk_ walk;
  tslab_reader_error error =
      tslab_reader_walk_begin_(&walk, all->reader, TSLAB_READER_OF_EPOCH_, 0);
  uint64_t rows = walk.columns[TSLAB_READER_epochs_id].rows;
  for (uint64_t row = 1; row < rows && error == TSLAB_READER_OK; row++) {
    uint64_t state = tslab_reader_take_(&walk, TSLAB_READER_epochs_state, row, 0);
    if (!tslab_reader_is_epoch_(&walk, row) || state != TSLAB_READER_CLOSED) continue;
    walk.which = row;
    walk.objects = 0;
    tslab_reader_add_epoch_(&walk, row);
    if (all->parts_of_closed != 0) tslab_reader_walk_heaps_(&walk);
    *closed += walk.objects != 0 && walk.objects <= INT64_MAX;
    error = walk.error;
  }
  return error;
}

/* What lives and is held in the process. */
static inline tslab_reader_error tslab_reader_totals_get(tslab_reader *reader,
                                                         tslab_reader_totals *totals) {
  struct tslab_reader_walk_ walk;
  memset(totals, 0, sizeof *totals);
  tslab_reader_error error = tslab_reader_walk_begin_(&walk, reader, TSLAB_READER_ALL_, 0);
  if (error == TSLAB_READER_OK) error = tslab_reader_walk_all_(&walk);
  if (error != TSLAB_READER_OK) return error;
  totals->all = walk.figures;
  totals->hot_bytes = walk.hot_bytes;
  totals->spare_bytes =
      tslab_reader_less_(walk.figures.held_bytes, walk.figures.live_bytes + walk.hot_bytes);
  totals->thread_cached_bytes = walk.columns[TSLAB_READER_heaps_cached_units].count == 0
                                    ? TSLAB_READER_UNKNOWN
                                    : walk.units * TSLAB_READER_UNIT_BYTES;
  totals->threads = walk.threads;
  totals->allocations =
      walk.columns[TSLAB_READER_bins_allocations].count == 0
          ? TSLAB_READER_UNKNOWN
          : walk.allocations +
                tslab_reader_take_(&walk, TSLAB_READER_process_large_allocations, 0, 0);
  return tslab_reader_closed_(&walk, &totals->epochs_closed_with_survivors);
}

/* ---- Size classes */

/* The sum of a field over all heaps that are somebody's, by class. */
static inline uint64_t tslab_reader_of_bins_(struct tslab_reader_walk_ *walk, int field,
                                             uint64_t i) {
  uint64_t rows = walk->columns[field].rows, sum = 0;
  if (walk->columns[field].count == 0) return TSLAB_READER_UNKNOWN;
  for (uint64_t row = 0; row < rows && walk->error == TSLAB_READER_OK; row++) {
    if (row == 0 || tslab_reader_role_(walk, row) != TSLAB_READER_NO_HEAP_)
      sum += tslab_reader_take_(walk, field, row, i);
  }
  return sum;
}

/* Live objects of a class in slabs of parts of epochs. */
static inline uint64_t tslab_reader_in_parts_(struct tslab_reader_walk_ *walk, uint64_t i) {
  uint64_t rows = walk->columns[TSLAB_READER_bins_out].rows, sum = 0;
  for (uint64_t row = 1; row < rows && walk->error == TSLAB_READER_OK; row++) {
    if (tslab_reader_role_(walk, row) != TSLAB_READER_PART_ ||
        tslab_reader_take_(walk, TSLAB_READER_heaps_epoch, row, 0) == 0)
      continue;
    sum += tslab_reader_take_(walk, TSLAB_READER_bins_out, row, i) -
           tslab_reader_take_(walk, TSLAB_READER_bins_hot, row, i) +
           tslab_reader_take_(walk, TSLAB_READER_bins_taken, row, i) -
           tslab_reader_take_(walk, TSLAB_READER_bins_away, row, i);
  }
  return sum;
}

static inline uint64_t tslab_reader_survived_(struct tslab_reader_walk_ *walk, uint64_t i) {
  const tslab_reader_column *column = &walk->columns[TSLAB_READER_epochs_survivors];
  uint64_t sum = 0;
  for (uint64_t row = 0; row < column->rows && walk->error == TSLAB_READER_OK; row++) {
    if (tslab_reader_is_epoch_(walk, row))
      sum += tslab_reader_extend_(tslab_reader_take_(walk, TSLAB_READER_epochs_survivors, row, i),
                                  column->bytes);
  }
  return sum;
}

/* A size class, by its row in `classes`. Looks at every row of epochs, heaps and bins. */
static inline tslab_reader_error tslab_reader_class_get(tslab_reader *reader, uint64_t row,
                                                        tslab_reader_class *of) {
  struct tslab_reader_walk_ walk;
  memset(of, 0, sizeof *of);
  tslab_reader_error error = tslab_reader_walk_begin_(&walk, reader, TSLAB_READER_ALL_, 0);
  if (error == TSLAB_READER_OK && row >= walk.classes) error = TSLAB_READER_NO_ROW;
  if (error != TSLAB_READER_OK) return error;
  of->bytes = tslab_reader_take_(&walk, TSLAB_READER_classes_bytes, row, 0);
  of->slab_bytes = tslab_reader_take_(&walk, TSLAB_READER_classes_slab_bytes, row, 0);
  of->capacity = tslab_reader_take_(&walk, TSLAB_READER_classes_capacity, row, 0);
  of->purged_bytes = tslab_reader_optional_(reader, "classes", "purged_bytes", row);
  uint64_t survived = tslab_reader_survived_(&walk, row);
  of->out = tslab_reader_of_bins_(&walk, TSLAB_READER_bins_out, row);
  of->hot = tslab_reader_of_bins_(&walk, TSLAB_READER_bins_hot, row);
  of->slabs = tslab_reader_of_bins_(&walk, TSLAB_READER_bins_slabs, row);
  of->opened = tslab_reader_of_bins_(&walk, TSLAB_READER_bins_opened, row);
  of->recycled = of->opened == TSLAB_READER_UNKNOWN ? TSLAB_READER_UNKNOWN
                                                    : tslab_reader_less_(of->opened, of->slabs);
  of->allocations = tslab_reader_of_bins_(&walk, TSLAB_READER_bins_allocations, row);
  of->refills = tslab_reader_of_bins_(&walk, TSLAB_READER_bins_refills, row);
  of->returned = tslab_reader_of_bins_(&walk, TSLAB_READER_bins_returned, row);
  tslab_reader_walk_heaps_(&walk);
  if (row < walk.columns[TSLAB_READER_bins_out].count)
    of->live = tslab_reader_in_default_(&walk, row, &of->unsettled);
  of->live += tslab_reader_settle_(tslab_reader_in_parts_(&walk, row), &of->unsettled);
  of->live += tslab_reader_settle_(survived, &of->unsettled);
  return walk.error;
}
