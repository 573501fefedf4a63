/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tslab_stats: the statistics of a process, in a file that other processes map.
 *
 * A process that runs on tslab has a file /dev/shm/tslab.PID.START, where START is field 22 of
 * /proc/PID/stat. It appears with the first epoch, with 2.5 MiB of memory, or with what the
 * process allocates once it has lived for option `stats_delay_ms`; with option `sample_bytes` or
 * `sample_events` at once. The process deletes it when it ends; a killed one leaves it behind.
 * Readers map it read-only and take no lock; the process does not notice them.
 *
 * The file describes itself: a header, then tables of rows, each row a set of fields whose names,
 * units and places are in the file. A reader finds a field by the names of its table and itself,
 * passes over those that it does not know, and takes one that is missing for "not known". So newer
 * and older readers and libraries understand each other as long as `abi` is the same.
 *
 * Integers have the byte order of the machine and lie at multiples of their size. Each is written
 * whole; fields of one row may be of slightly different moments. */
#pragma once

#include <stdint.h>

#define TSLAB_STATS_MAGIC "tslabst" /* and a 0: 8 bytes */
#define TSLAB_STATS_ABI 1u          /* changes when an older reader would misread */

/* At the beginning of the file. What is not marked stays as it is once `magic` is written. */
struct tslab_stats_header {
  char magic[8];
  uint32_t abi;
  uint32_t header_bytes; /* of this struct */
  uint64_t file_bytes;   /* no row lies behind */
  uint64_t tables_at;    /* offset of the first struct tslab_stats_table */
  uint32_t tables;
  uint32_t table_bytes; /* distance from one to the next */
  uint64_t fields_at;   /* the same for struct tslab_stats_field */
  uint32_t fields;
  uint32_t field_bytes;
  uint64_t
      layout_hash; /* of names, sizes and places in a row: equal in files with the same fields */
  uint32_t pid;
  uint32_t page_bytes;
  uint64_t start_ticks; /* field 22 of /proc/PID/stat */
  uint64_t made_ms;     /* CLOCK_MONOTONIC when the file was made */
  uint64_t told_ms;     /* CLOCK_MONOTONIC when the process last wrote here; changes */
  char version[16];     /* of the library, with a 0 */
};

/* A table: rows of the same kind, one behind the other. */
struct tslab_stats_table {
  char name[16]; /* with a 0 */
  uint64_t at;   /* offset of row 0 */
  uint32_t row_bytes;
  uint32_t most_rows;
  uint32_t rows;    /* that may be read; grows, up to most_rows */
  uint32_t is_full; /* 1: the system had no memory for further rows, which are missing; changes */
};

/* How a field's values are to be understood. */
enum tslab_stats_kind {
  TSLAB_STATS_GAUGE,   /* a quantity now */
  TSLAB_STATS_COUNTER, /* a total that only grows; modulo 2^64 */
  TSLAB_STATS_ID,  /* a name or number of something: a row of another table, an epoch, a thread */
  TSLAB_STATS_TEXT /* bytes in UTF-8 with a 0 at their end */
};

enum tslab_stats_unit {
  TSLAB_STATS_NONE,
  TSLAB_STATS_BYTES,
  TSLAB_STATS_MS, /* a moment of CLOCK_MONOTONIC, 0: not yet; or a time that passed */
  TSLAB_STATS_NS,
  TSLAB_STATS_OBJECTS,
  TSLAB_STATS_PIECES /* slabs, pages, calls, ... : see the name */
};

/* A field of a table's rows: `count` values of `bytes` bytes at offset `at` of the row. More than
 * one: by size class, in the order of the table "classes"; but TEXT, whose bytes they are, and
 * fields of "sites", which are lists. */
struct tslab_stats_field {
  char name[32]; /* with a 0 */
  uint16_t table;
  uint8_t kind;
  uint8_t unit;
  uint32_t at;
  uint16_t bytes; /* 1, 4 or 8 */
  uint16_t count;
  uint32_t unused;
};
