// mirror: the statistics file (tslab_stats.h), which other processes map: how it is made, and where
// its rows lie. The threads that change a figure copy it to its row (tell/).
//
//  M1  the allocator keeps its own state elsewhere: whatever another process writes to the file,
//      nothing breaks
//  M2  a row that was handed out has memory behind it: a full file system costs rows, not the
//      program's life
//  M3  a row has one writer at a time, but for fields marked [remote], which anyone adds to
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "tslab_stats.h"

enum { TSL_MIRROR_TABLES = 16 };

// Tables without their places, and their fields.
struct tsl_mirror_layout {
  const struct tslab_stats_table *tables;
  const struct tslab_stats_field *fields;
  unsigned table_count;  // at most TSL_MIRROR_TABLES
  unsigned field_count;
};

// Held while the file is made, grows or is deleted.
TSL_HIDDEN extern struct tsl_lock tsl_mirror_lock;

// Where a table's rows lie, and how many of them have memory.
struct tsl_mirror_table {
  uintptr_t rows;      // [lock:mirror, read by any] address of row 0
  uint32_t row_bytes;  // [lock:mirror, read by any]
  uint32_t ready;      // [lock:mirror, read by any] 0 while there is no file
  uint32_t most_rows TSL_GUARDED_BY(tsl_mirror_lock);  // [lock:mirror]
  // [lock:mirror] Refused rows are asked for again then; 0: none were.
  uint64_t retry_ms TSL_GUARDED_BY(tsl_mirror_lock);
};

TSL_HIDDEN extern struct tsl_mirror_table tsl_mirror_tables[TSL_MIRROR_TABLES];

// Totals of rare events, counted from the process's start, with or without a file. Any thread adds.
struct tsl_counts {
  uint64_t purges;             // [remote]
  uint64_t purged_bytes;       // [remote]
  uint64_t purges_refused;     // [remote]
  uint64_t limits_refused;     // [remote]
  uint64_t memory_refused;     // [remote]
  uint64_t large_objects;      // [remote]
  uint64_t large_bytes;        // [remote]
  uint64_t large_allocations;  // [remote]
};

TSL_HIDDEN extern struct tsl_counts tsl_counts;

// Makes the file. False, and no file, when the system refuses; then it is not tried again.
TSL_HIDDEN bool tsl_mirror_open(const struct tsl_mirror_layout *layout);

// Whether there is a file. A moment's value.
TSL_HIDDEN bool tsl_mirror_is_open(void);

// What a thread does that finds another at extending a table.
enum tsl_mirror_haste {
  TSL_MIRROR_PASS,  // it has no row: it writes it at its next report
  TSL_MIRROR_WAIT   // for a system call of the other: what it has to write is told only now
};

// Gives a table memory for one more row, when there is a file and the system has some; a system
// that refused is asked again a second later.
TSL_HIDDEN bool tsl_mirror_extend(unsigned number, uint32_t row, enum tsl_mirror_haste haste);

// The row of a table whose rows have so many bytes; NULL when there is none.
TSL_ALWAYS_INLINE void *tsl_mirror_row(unsigned number, uint32_t row, size_t row_bytes,
                                       enum tsl_mirror_haste haste) {
  const struct tsl_mirror_table *table = &tsl_mirror_tables[number];
  uint32_t ready = tsl_load_acquire(&table->ready);  // pairs: mirror
  if (tsl_unlikely(row >= ready) && !tsl_mirror_extend(number, row, haste)) return NULL;
  return (void *)(table->rows + row * row_bytes);
}

// The same for a row that was handed out, with nothing made: NULL once the file is gone.
TSL_ALWAYS_INLINE void *tsl_mirror_made_row(unsigned number, uint32_t row, size_t row_bytes) {
  const struct tsl_mirror_table *table = &tsl_mirror_tables[number];
  uint32_t ready = tsl_load_acquire(&table->ready);  // pairs: mirror
  return tsl_likely(row < ready) ? (void *)(table->rows + row * row_bytes) : NULL;
}

// Writes the time of the last report, by which readers see that the process is alive. Any thread.
TSL_HIDDEN void tsl_mirror_beat(uint64_t now_ms);

// Deletes the file; what is written to its rows later is seen by nobody.
TSL_HIDDEN void tsl_mirror_close(void);

// In the child of a fork: takes the parent's file away from its rows. The child has no file yet.
TSL_HIDDEN void tsl_mirror_after_fork(void);
