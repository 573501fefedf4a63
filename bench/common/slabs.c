#include "slabs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tslab.h>
#include <tslab_stats.h>
#include <unistd.h>

#pragma weak tslab_option_set

#define MOST_CLASSES 256u
#define START_FIELD 22

void slabs_demand(void) {
  if (tslab_option_set != NULL) {
    tslab_option_set("stats_delay_ms", "0");
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

static bool table_find(slabs *s, const struct tslab_stats_header *header, uint32_t *number) {
  for (*number = 0; *number < header->tables; *number += 1) {
    struct tslab_stats_table table;
    uint64_t at = header->tables_at + (uint64_t)*number * header->table_bytes;
    if (read_at(s->file, at, &table, sizeof table) && strcmp(table.name, "bins") == 0) {
      s->table_at = at;
      s->rows_at = table.at;
      s->row_bytes = table.row_bytes;
      return true;
    }
  }
  return false;
}

static bool field_find(slabs *s, const struct tslab_stats_header *header, uint32_t table,
                       const char *name, uint32_t *at) {
  for (uint32_t i = 0; i < header->fields; i++) {
    struct tslab_stats_field field;
    if (read_at(s->file, header->fields_at + (uint64_t)i * header->field_bytes, &field,
                sizeof field) &&
        field.table == table && strcmp(field.name, name) == 0) {
      *at = field.at;
      s->classes = field.count;
      return field.bytes == sizeof(uint32_t) && field.count <= MOST_CLASSES;
    }
  }
  return false;
}

slabs slabs_open(void) {
  struct tslab_stats_header header;
  slabs s = {.file = file_open(&header)};
  uint32_t table;
  if (s.file >= 0 &&
      !(table_find(&s, &header, &table) && field_find(&s, &header, table, "opened", &s.opened_at) &&
        field_find(&s, &header, table, "slabs", &s.open_at))) {
    close(s.file);
    s.file = -1;
  }
  return s;
}

static bool classes_add(const slabs *s, uint64_t at, uint64_t *sum) {
  uint32_t values[MOST_CLASSES];
  if (!read_at(s->file, at, values, s->classes * sizeof *values)) {
    return false;
  }
  for (uint32_t class = 0; class < s->classes; class ++) {
    *sum += values[class];
  }
  return true;
}

slab_counts slabs_now(const slabs *s) {
  slab_counts counts = {0};
  struct tslab_stats_table table;
  if (s->file < 0 || !read_at(s->file, s->table_at, &table, sizeof table)) {
    return counts;
  }
  counts.are_known = true;
  for (uint32_t row = 0; row < table.rows && counts.are_known; row++) {
    uint64_t at = s->rows_at + (uint64_t)row * s->row_bytes;
    counts.are_known = classes_add(s, at + s->opened_at, &counts.opened) &&
                       classes_add(s, at + s->open_at, &counts.open);
  }
  return counts;
}
