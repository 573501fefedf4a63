#include "tell/rows.h"

#include <stddef.h>
#include <string.h>

#define TABLE(table, most, fields) \
  {.name = #table, .row_bytes = sizeof(struct tsl_##table##_row), .most_rows = (most)},
static const struct tslab_stats_table tables[] = {TSL_TABLES(TABLE)};
#undef TABLE

#define FIELD(table_, type, field, unit_, kind_, count_) \
  {.name = #field,                                       \
   .table = TSL_ROWS_##table_,                           \
   .kind = TSLAB_STATS_##kind_,                          \
   .unit = TSLAB_STATS_##unit_,                          \
   .at = offsetof(struct tsl_##table_##_row, field),     \
   .bytes = sizeof(type),                                \
   .count = (count_)},
#define ONE(table, type, field, unit, kind, meaning) FIELD(table, type, field, unit, kind, 1)
#define EACH(table, type, field, unit, kind, meaning) \
  FIELD(table, type, field, unit, kind, TSL_CLASSES)
#define LIST(table, length, type, field, unit, kind, meaning) \
  FIELD(table, type, field, unit, kind, length)
#define TEXT(table, length, field, meaning) FIELD(table, char, field, NONE, TEXT, length)
#define TABLE(table, most, fields) fields(table, ONE, EACH, LIST, TEXT)
static const struct tslab_stats_field fields[] = {TSL_TABLES(TABLE)};
#undef TABLE
#undef TEXT
#undef LIST
#undef EACH
#undef ONE
#undef FIELD

const struct tsl_mirror_layout tsl_rows_layout = {tables, fields, sizeof tables / sizeof *tables,
                                                  sizeof fields / sizeof *fields};

void tsl_rows_put_text(char *row_text, const char *text, size_t bytes) {
  size_t left = strnlen(text, bytes - 1);
  for (uint64_t *word = (void *)row_text; bytes != 0; bytes -= sizeof *word) {
    uint64_t next = 0;
    size_t length = left < sizeof next ? left : sizeof next;
    memcpy(&next, text, length);
    text += length;
    left -= length;
    tsl_store_relaxed(word++, next);
  }
}

void tsl_rows_clear(void *start, size_t bytes) {
  for (uint64_t *word = start; bytes != 0; bytes -= sizeof *word) tsl_store_relaxed(word++, 0);
}
