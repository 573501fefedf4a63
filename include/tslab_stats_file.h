/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tslab_stats_file: opens the statistics file of a process (tslab_stats.h), checks it, and finds
 * its fields by name. What they add up to: tslab_stats_read.h.
 *
 * For C99 and C++17, with nothing to link. It allocates nothing, maps nothing, writes nothing and
 * takes no lock. It trusts nothing in the file: a damaged one gives an error or wrong values.
 *
 * Threads: one at a time uses a reader. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tslab_stats.h"

#define TSLAB_READER_WINDOWS 3u
#define TSLAB_READER_WINDOW_BYTES 8192u
#define TSLAB_READER_MOST_ROWS_BYTES (UINT64_C(1) << 32)
#define TSLAB_READER_MOST_DESCRIPTIONS (UINT64_C(1) << 20) /* bytes of them */

#ifdef __cplusplus
#define TSLAB_READER_CAST(type, value) static_cast<type>(value)
#else
#define TSLAB_READER_CAST(type, value) ((type)(value))
#endif

typedef enum tslab_reader_error {
  TSLAB_READER_OK,
  TSLAB_READER_NO_PROCESS,  /* /proc has no process of this number */
  TSLAB_READER_NO_FILE,     /* the process told nothing yet, or does not run on tslab */
  TSLAB_READER_NOT_ALLOWED, /* the file is another user's */
  TSLAB_READER_NOT_READY,   /* its beginning is not written yet */
  TSLAB_READER_FOREIGN,     /* it is no statistics file */
  TSLAB_READER_OTHER_ABI,   /* of another format than this header's */
  TSLAB_READER_CUT_SHORT,   /* it lacks its end */
  TSLAB_READER_DAMAGED,     /* its parts lie outside of it */
  TSLAB_READER_NOT_TOLD,    /* it lacks a table, or a field that a sum consists of */
  TSLAB_READER_NO_ROW,      /* no such row, or it is nobody's */
  TSLAB_READER_SYSTEM       /* the system refused; errno says why */
} tslab_reader_error;

/* A part of the file, as it was read last. */
struct tslab_reader_window {
  uint64_t at;
  uint64_t bytes;
  unsigned char data[TSLAB_READER_WINDOW_BYTES];
};

/* An open file. It needs no memory beside this, 24 KiB. */
typedef struct tslab_reader {
  int file; /* -1: none */
  unsigned next_window;
  struct tslab_stats_header header; /* as it was when the file was opened */
  struct tslab_reader_window windows[TSLAB_READER_WINDOWS];
} tslab_reader;

/* The values of a field, by row. */
typedef struct tslab_reader_column {
  uint64_t table_at; /* in the file: of the table's description */
  uint64_t at;       /* in the file: of the first value of row 0 */
  uint64_t row_bytes;
  uint64_t rows;  /* as they were when the column was found; more may come */
  uint64_t bytes; /* of a value */
  uint64_t count; /* values of a row; 0: there is no such field */
  int kind;       /* enum tslab_stats_kind */
  int unit;       /* enum tslab_stats_unit */
} tslab_reader_column;

/* ---- The file */

static inline const char *tslab_reader_error_text(tslab_reader_error error) {
  switch (error) {
    case TSLAB_READER_OK: return "no error";
    case TSLAB_READER_NO_PROCESS: return "there is no such process";
    case TSLAB_READER_NO_FILE: return "there is no such statistics file";
    case TSLAB_READER_NOT_ALLOWED: return "the statistics file is another user's";
    case TSLAB_READER_NOT_READY: return "the statistics file is being made";
    case TSLAB_READER_FOREIGN: return "it is not a statistics file of tslab";
    case TSLAB_READER_OTHER_ABI: return "the statistics file has another format";
    case TSLAB_READER_CUT_SHORT: return "the statistics file is cut short";
    case TSLAB_READER_DAMAGED: return "the statistics file is damaged";
    case TSLAB_READER_NOT_TOLD: return "the statistics file does not tell this";
    case TSLAB_READER_NO_ROW: return "the statistics file has no such row";
    case TSLAB_READER_SYSTEM: return "the system refused to read the statistics file";
  }
  return "unknown error";
}

static inline tslab_reader_error tslab_reader_read_(const tslab_reader *reader, uint64_t at,
                                                    unsigned char *into, uint64_t bytes) {
  uint64_t done = 0;
  if (at > INT64_MAX) return TSLAB_READER_DAMAGED;
  if (lseek(reader->file, TSLAB_READER_CAST(off_t, at), SEEK_SET) < 0) return TSLAB_READER_SYSTEM;
  while (done < bytes) {
    ssize_t some = read(reader->file, into + done, bytes - done);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) return TSLAB_READER_SYSTEM;
    if (some == 0) return TSLAB_READER_CUT_SHORT;
    done += TSLAB_READER_CAST(uint64_t, some);
  }
  return TSLAB_READER_OK;
}

/* Forgets what was read: the next figures are those of now. Each sum begins with it. */
static inline void tslab_reader_refresh(tslab_reader *reader) {
  for (unsigned i = 0; i < TSLAB_READER_WINDOWS; i++) reader->windows[i].bytes = 0;
}

/* Finds bytes of the file in a window, which is moved if none shows them. NULL: see `error`. */
static inline const unsigned char *tslab_reader_look_(tslab_reader *reader, uint64_t at,
                                                      uint64_t bytes, tslab_reader_error *error) {
  for (unsigned i = 0; i < TSLAB_READER_WINDOWS; i++) {
    const struct tslab_reader_window *known = &reader->windows[i];
    if (at >= known->at && at - known->at < known->bytes &&
        bytes <= known->bytes - (at - known->at))
      return known->data + (at - known->at);
  }
  struct tslab_reader_window *window = &reader->windows[reader->next_window];
  uint64_t end = reader->header.file_bytes, start = at - at % (TSLAB_READER_WINDOW_BYTES / 2);
  if (bytes > TSLAB_READER_WINDOW_BYTES / 2 || at > end || bytes > end - at) {
    *error = TSLAB_READER_DAMAGED;
    return NULL;
  }
  reader->next_window = (reader->next_window + 1) % TSLAB_READER_WINDOWS;
  window->bytes = 0;
  uint64_t some = end - start < TSLAB_READER_WINDOW_BYTES ? end - start : TSLAB_READER_WINDOW_BYTES;
  *error = tslab_reader_read_(reader, start, window->data, some);
  if (*error != TSLAB_READER_OK) return NULL;
  window->at = start;
  window->bytes = some;
  return window->data + (at - start);
}

static inline int tslab_reader_is_in_(uint64_t at, uint64_t bytes, uint64_t end) {
  return at <= end && bytes <= end - at;
}

/* What the file has not is 0. */
static inline tslab_reader_error tslab_reader_copy_(tslab_reader *reader, uint64_t at, void *to,
                                                    size_t bytes) {
  tslab_reader_error error = TSLAB_READER_OK;
  const unsigned char *from = tslab_reader_look_(reader, at, bytes, &error);
  memset(to, 0, bytes);
  if (from != NULL) memcpy(to, from, bytes);
  return error;
}

static inline tslab_reader_error tslab_reader_table_(tslab_reader *reader, uint32_t number,
                                                     struct tslab_stats_table *table) {
  const struct tslab_stats_header *header = &reader->header;
  uint64_t at = header->tables_at + TSLAB_READER_CAST(uint64_t, number) * header->table_bytes;
  tslab_reader_error error = tslab_reader_copy_(reader, at, table, sizeof *table);
  if (error != TSLAB_READER_OK) return error;
  uint64_t rows_bytes = TSLAB_READER_CAST(uint64_t, table->rows) * table->row_bytes;
  int is_sound = table->rows <= table->most_rows && (table->row_bytes > 0 || table->rows == 0) &&
                 rows_bytes <= TSLAB_READER_MOST_ROWS_BYTES &&
                 tslab_reader_is_in_(table->at, rows_bytes, header->file_bytes);
  table->name[sizeof table->name - 1] = '\0';
  return is_sound ? TSLAB_READER_OK : TSLAB_READER_DAMAGED;
}

static inline tslab_reader_error tslab_reader_field_(tslab_reader *reader, uint32_t number,
                                                     struct tslab_stats_field *field) {
  const struct tslab_stats_header *header = &reader->header;
  uint64_t at = header->fields_at + TSLAB_READER_CAST(uint64_t, number) * header->field_bytes;
  tslab_reader_error error = tslab_reader_copy_(reader, at, field, sizeof *field);
  field->name[sizeof field->name - 1] = '\0';
  return error;
}

static inline int tslab_reader_describes_(uint64_t at, uint32_t count, uint32_t each, size_t least,
                                          uint64_t end) {
  uint64_t bytes = TSLAB_READER_CAST(uint64_t, count) * each;
  return each >= least && bytes <= TSLAB_READER_MOST_DESCRIPTIONS &&
         tslab_reader_is_in_(at, bytes, end);
}

/* Of each description: whether what it describes lies inside of the file. */
static inline tslab_reader_error tslab_reader_check_(tslab_reader *reader) {
  const struct tslab_stats_header *header = &reader->header;
  struct tslab_stats_table table;
  struct tslab_stats_field field;
  tslab_reader_error error = TSLAB_READER_OK;
  uint64_t end = header->file_bytes;
  if (!tslab_reader_describes_(header->tables_at, header->tables, header->table_bytes, sizeof table,
                               end) ||
      !tslab_reader_describes_(header->fields_at, header->fields, header->field_bytes, sizeof field,
                               end))
    return TSLAB_READER_DAMAGED;
  for (uint32_t i = 0; i < header->tables && error == TSLAB_READER_OK; i++)
    error = tslab_reader_table_(reader, i, &table);
  for (uint32_t i = 0; i < header->fields && error == TSLAB_READER_OK; i++) {
    error = tslab_reader_field_(reader, i, &field);
    if (error == TSLAB_READER_OK && field.table >= header->tables) error = TSLAB_READER_DAMAGED;
    if (error == TSLAB_READER_OK) error = tslab_reader_table_(reader, field.table, &table);
    uint64_t bytes = TSLAB_READER_CAST(uint64_t, field.bytes) * field.count;
    if (error == TSLAB_READER_OK && !tslab_reader_is_in_(field.at, bytes, table.row_bytes))
      error = TSLAB_READER_DAMAGED;
  }
  return error;
}

static inline tslab_reader_error tslab_reader_begin_(tslab_reader *reader) {
  static const char magic[8] = TSLAB_STATS_MAGIC, none[8] = "";
  struct tslab_stats_header *header = &reader->header;
  unsigned char bytes[sizeof *header] = {0};
  off_t size = lseek(reader->file, 0, SEEK_END);
  if (size < 0) return TSLAB_READER_SYSTEM;
  uint64_t there = TSLAB_READER_CAST(uint64_t, size);
  uint64_t some = there < sizeof *header ? there : sizeof *header;
  tslab_reader_error error = tslab_reader_read_(reader, 0, bytes, some);
  if (error != TSLAB_READER_OK) return error;
  memcpy(header, bytes, sizeof *header);
  if (memcmp(header->magic, none, sizeof magic) == 0) return TSLAB_READER_NOT_READY;
  if (memcmp(header->magic, magic, some < sizeof magic ? some : sizeof magic) != 0)
    return TSLAB_READER_FOREIGN;
  if (some < sizeof *header) return TSLAB_READER_CUT_SHORT;
  if (header->abi != TSLAB_STATS_ABI) return TSLAB_READER_OTHER_ABI;
  if (header->header_bytes < sizeof *header) return TSLAB_READER_DAMAGED;
  if (header->file_bytes > there) return TSLAB_READER_CUT_SHORT;
  header->version[sizeof header->version - 1] = '\0';
  return tslab_reader_check_(reader);
}

static inline void tslab_reader_close(tslab_reader *reader) {
  if (reader->file >= 0) close(reader->file);
  reader->file = -1;
}

static inline tslab_reader_error tslab_reader_begin_at_(tslab_reader *reader, const char *path,
                                                        int flags) {
#ifdef O_CLOEXEC
  flags |= O_CLOEXEC;
#endif
  memset(reader, 0, sizeof *reader);
  reader->file = open(path, O_RDONLY | O_NONBLOCK | flags);
  if (reader->file < 0 && errno == ENOENT) return TSLAB_READER_NO_FILE;
  if (reader->file < 0 && errno == EACCES) return TSLAB_READER_NOT_ALLOWED;
  if (reader->file < 0) return TSLAB_READER_SYSTEM;
  tslab_reader_error error = tslab_reader_begin_(reader);
  if (error != TSLAB_READER_OK) tslab_reader_close(reader);
  return error;
}

/* Opens a file by its path: one that a dead process left, a copy, or `DIR/peak/statistics` of
 * `tslab record`.
 * Returns: an error, and then there is nothing to close. */
static inline tslab_reader_error tslab_reader_open_path(tslab_reader *reader, const char *path) {
  return tslab_reader_begin_at_(reader, path, 0);
}

/* Field 22 of /proc/PID/stat, behind the name, which may have any bytes in it. 0: no process. */
static inline unsigned long long tslab_reader_start_ticks_(long pid) {
  char text[1024];
  snprintf(text, sizeof text, "/proc/%ld/stat", pid);
  int file = open(text, O_RDONLY);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  text[length < 0 ? 0 : length] = '\0';
  const char *at = strrchr(text, ')');
  for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
  unsigned long long ticks = 0;
  for (at = at == NULL ? "" : at + 1; *at >= '0' && *at <= '9'; at++)
    ticks = ticks * 10 + TSLAB_READER_CAST(unsigned, *at - '0');
  return ticks;
}

/* Opens the file of a process of this PID namespace. A process that went over to another program by
 * exec may have the file of the former one, which does not change any more.
 * Returns: an error, and then there is nothing to close. */
static inline tslab_reader_error tslab_reader_open(tslab_reader *reader, long pid) {
  char path[64];
  int flags = 0;
#ifdef O_NOFOLLOW
  flags = O_NOFOLLOW;
#endif
  unsigned long long ticks = tslab_reader_start_ticks_(pid);
  reader->file = -1;
  if (ticks == 0) return TSLAB_READER_NO_PROCESS;
  snprintf(path, sizeof path, "/dev/shm/tslab.%ld.%llu", pid, ticks);
  return tslab_reader_begin_at_(reader, path, flags);
}

/* ---- Rows and values */

/* A column of nothing: it has no rows, and no values. */
static inline tslab_reader_column tslab_reader_no_column_(void) {
  tslab_reader_column none;
  memset(&none, 0, sizeof none);
  return none;
}

static inline tslab_reader_error tslab_reader_table_find_(tslab_reader *reader, const char *name,
                                                          uint32_t *number,
                                                          struct tslab_stats_table *table) {
  for (*number = 0; *number < reader->header.tables; *number += 1) {
    tslab_reader_error error = tslab_reader_table_(reader, *number, table);
    if (error != TSLAB_READER_OK) return error;
    if (strcmp(table->name, name) == 0) return TSLAB_READER_OK;
  }
  return TSLAB_READER_NOT_TOLD;
}

/* Finds a field of a table: its values, and how many rows there are now. */
static inline tslab_reader_error tslab_reader_column_find(tslab_reader *reader, const char *table,
                                                          const char *field,
                                                          tslab_reader_column *column) {
  struct tslab_stats_table of;
  struct tslab_stats_field known;
  uint32_t number;
  *column = tslab_reader_no_column_();
  tslab_reader_error error = tslab_reader_table_find_(reader, table, &number, &of);
  for (uint32_t i = 0; i < reader->header.fields && error == TSLAB_READER_OK; i++) {
    error = tslab_reader_field_(reader, i, &known);
    if (error != TSLAB_READER_OK) return error;
    if (known.table != number || strcmp(known.name, field) != 0) continue;
    uint64_t bytes = TSLAB_READER_CAST(uint64_t, known.bytes) * known.count;
    if (known.bytes != 1 && known.bytes != 2 && known.bytes != 4 && known.bytes != 8) break;
    if (!tslab_reader_is_in_(known.at, bytes, of.row_bytes)) return TSLAB_READER_DAMAGED;
    column->table_at =
        reader->header.tables_at + TSLAB_READER_CAST(uint64_t, number) * reader->header.table_bytes;
    column->at = of.at + known.at;
    column->row_bytes = of.row_bytes;
    column->rows = of.rows;
    column->bytes = known.bytes;
    column->count = known.count;
    column->kind = known.kind;
    column->unit = known.unit;
    return TSLAB_READER_OK;
  }
  return error != TSLAB_READER_OK ? error : TSLAB_READER_NOT_TOLD;
}

static inline uint64_t tslab_reader_number_(const unsigned char *bytes, uint64_t count) {
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  switch (count) {
    case 1: return bytes[0];
    case 2: memcpy(&two, bytes, sizeof two); return two;
    case 4: memcpy(&four, bytes, sizeof four); return four;
    default: memcpy(&eight, bytes, sizeof eight); return eight;
  }
}

/* Value `index` of a row. What was read since tslab_reader_refresh is not read again. */
static inline tslab_reader_error tslab_reader_value(tslab_reader *reader,
                                                    const tslab_reader_column *column, uint64_t row,
                                                    uint64_t index, uint64_t *value) {
  tslab_reader_error error = TSLAB_READER_OK;
  *value = 0;
  if (row >= column->rows || index >= column->count) return TSLAB_READER_NO_ROW;
  uint64_t at = column->at + row * column->row_bytes + index * column->bytes;
  const unsigned char *bytes = tslab_reader_look_(reader, at, column->bytes, &error);
  if (bytes != NULL) *value = tslab_reader_number_(bytes, column->bytes);
  return error;
}

/* The text of a row, up to its 0, or as much of it as there is room for. */
static inline tslab_reader_error tslab_reader_text(tslab_reader *reader,
                                                   const tslab_reader_column *column, uint64_t row,
                                                   char *text, size_t bytes) {
  uint64_t value = 1;
  size_t length = 0;
  tslab_reader_error error = TSLAB_READER_OK;
  if (bytes == 0 || row >= column->rows) return TSLAB_READER_NO_ROW;
  while (length + 1 < bytes && length < column->count) {
    error = tslab_reader_value(reader, column, row, length, &value);
    unsigned char byte = TSLAB_READER_CAST(unsigned char, value);
    if (error != TSLAB_READER_OK || byte == 0) break;
    memcpy(text + length++, &byte, 1);
  }
  text[length] = '\0';
  return error;
}

/* The sum of a field over all rows that there are by now, and over all values of each, modulo 2^64.
 * It is read anew, whatever was read before. */
static inline tslab_reader_error tslab_reader_sum(const tslab_reader *reader,
                                                  const tslab_reader_column *column,
                                                  uint64_t *sum) {
  unsigned char bytes[1024];
  struct tslab_stats_table table;
  *sum = 0;
  tslab_reader_error error = tslab_reader_read_(reader, column->table_at, bytes, sizeof table);
  if (error != TSLAB_READER_OK || column->count == 0) return error;
  memcpy(&table, bytes, sizeof table);
  uint64_t most = (reader->header.file_bytes - column->at) / column->row_bytes;
  uint64_t all = column->count * column->bytes, rows = table.rows < most ? table.rows : most;
  for (uint64_t row = 0; row < rows; row++) {
    for (uint64_t done = 0, some; done < all && error == TSLAB_READER_OK; done += some) {
      some = all - done < sizeof bytes ? all - done : sizeof bytes;
      error = tslab_reader_read_(reader, column->at + row * column->row_bytes + done, bytes, some);
      for (uint64_t i = 0; i < some && error == TSLAB_READER_OK; i += column->bytes)
        *sum += tslab_reader_number_(bytes + i, column->bytes);
    }
  }
  return error;
}
