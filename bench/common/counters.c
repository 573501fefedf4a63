#include "counters.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tslab.h>
#include <tslab_stats.h>
#include <unistd.h>

#pragma weak tslab_option_set

#define MOST_VALUES 256u
#define START_FIELD 22
#define LARGE_BYTES 1048576u

typedef struct counter_name {
  const char *table;
  const char *field;
} counter_name;

static const counter_name names[COUNTERS] = {
    [COUNTER_OPENED] = {"bins", "opened"},
    [COUNTER_SLABS] = {"bins", "slabs"},
    [COUNTER_REFILLS] = {"bins", "refills"},
    [COUNTER_CELLS] = {"bins", "cells_taken"},
    [COUNTER_ANEW] = {"bins", "cells_restarted"},
    [COUNTER_RETURNED] = {"bins", "returned"},
    [COUNTER_SENT] = {"bins", "sent"},
    [COUNTER_LARGE] = {"process", "large_allocations"},
    [COUNTER_SAMPLED] = {"process", "samples_taken"},
};

// A large block is told at once.
void counters_demand(void) {
  if (tslab_option_set != NULL) {
    tslab_option_set("stats_delay_ms", "0");
    free(malloc(LARGE_BYTES));
  }
}

static bool read_at(int file, uint64_t at, void *bytes, size_t count) {
  return pread(file, bytes, count, (off_t)at) == (ssize_t)count;
}

static unsigned long long start_ticks(void) {
  char text[1024];
  int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) {
    close(file);
  }
  text[length < 0 ? 0 : length] = '\0';
  const char *at = strrchr(text, ')');
  for (int field = 2; at != NULL && field < START_FIELD; field++) {
    at = strchr(at + 1, ' ');
  }
  return at == NULL ? 0 : strtoull(at, NULL, 10);
}

static int file_open(struct tslab_stats_header *header) {
  char path[64];
  snprintf(path, sizeof path, "/dev/shm/tslab.%d.%llu", (int)getpid(), start_ticks());
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return -1;
  }
  if (read_at(file, 0, header, sizeof *header) &&
      memcmp(header->magic, TSLAB_STATS_MAGIC, sizeof header->magic) == 0 &&
      header->abi == TSLAB_STATS_ABI) {
    return file;
  }
  close(file);
  return -1;
}

static bool table_find(int file, const struct tslab_stats_header *header, const char *name,
                       uint32_t *number, counter_place *place) {
  for (*number = 0; *number < header->tables; *number += 1) {
    struct tslab_stats_table table;
    uint64_t at = header->tables_at + (uint64_t)*number * header->table_bytes;
    if (read_at(file, at, &table, sizeof table) && strcmp(table.name, name) == 0) {
      *place = (counter_place){.table_at = at, .rows_at = table.at, .row_bytes = table.row_bytes};
      return true;
    }
  }
  return false;
}

static bool field_find(int file, const struct tslab_stats_header *header, uint32_t table,
                       const char *name, counter_place *place) {
  for (uint32_t i = 0; i < header->fields; i++) {
    struct tslab_stats_field field;
    uint64_t at = header->fields_at + (uint64_t)i * header->field_bytes;
    if (read_at(file, at, &field, sizeof field) && field.table == table &&
        strcmp(field.name, name) == 0) {
      place->at = field.at;
      place->value_bytes = field.bytes;
      place->values = field.count;
      return field.count <= MOST_VALUES && field.bytes <= sizeof(uint64_t);
    }
  }
  return false;
}

static bool places_find(counters *c, const struct tslab_stats_header *header) {
  for (unsigned i = 0; i < COUNTERS; i++) {
    uint32_t table;
    if (!table_find(c->file, header, names[i].table, &table, &c->places[i]) ||
        !field_find(c->file, header, table, names[i].field, &c->places[i])) {
      return false;
    }
  }
  return true;
}

counters counters_open(void) {
  struct tslab_stats_header header;
  counters c = {.file = file_open(&header)};
  if (c.file >= 0 && !places_find(&c, &header)) {
    close(c.file);
    c.file = -1;
  }
  return c;
}

static uint64_t row_sum(const counters *c, const counter_place *place, uint64_t row) {
  unsigned char values[MOST_VALUES * sizeof(uint64_t)];
  uint64_t at = place->rows_at + row * place->row_bytes + place->at, sum = 0;
  if (!read_at(c->file, at, values, (size_t)place->values * place->value_bytes)) {
    return 0;
  }
  for (unsigned i = 0; i < place->values; i++) {
    uint64_t value = 0;
    memcpy(&value, values + (size_t)i * place->value_bytes, place->value_bytes);
    sum += value;
  }
  return sum;
}

uint64_t counters_sum(const counters *c, counter which) {
  const counter_place *place = &c->places[which];
  struct tslab_stats_table table;
  uint64_t sum = 0;
  if (c->file < 0 || !read_at(c->file, place->table_at, &table, sizeof table)) {
    return 0;
  }
  for (uint32_t row = 0; row < table.rows; row++) {
    sum += row_sum(c, place, row);
  }
  return sum;
}

uint64_t counters_slow_paths(const counters *c) {
  static const counter causes[] = {COUNTER_REFILLS, COUNTER_CELLS, COUNTER_ANEW,   COUNTER_RETURNED,
                                   COUNTER_SENT,    COUNTER_LARGE, COUNTER_SAMPLED};
  uint64_t sum = 0;
  for (unsigned i = 0; i < sizeof causes / sizeof causes[0]; i++) {
    sum += counters_sum(c, causes[i]);
  }
  return sum;
}
