#include "tell/rows.h"

#include <stdbool.h>
#include <string.h>

#include "memory/region.h"
#include "state/epoch.h"
#include "test.h"

static const struct tsl_mirror_layout *layout = &tsl_rows_layout;

static size_t bytes_of(const struct tslab_stats_field *field) {
  return (size_t)field->bytes * field->count;
}

static void tables_are_in_the_order_of_their_numbers(void) {
  CHECK_EQ(layout->table_count, TSL_ROWS);
  CHECK_LE(layout->table_count, TSL_MIRROR_TABLES);
  CHECK(strcmp(layout->tables[TSL_ROWS_process].name, "process") == 0);
  CHECK(strcmp(layout->tables[TSL_ROWS_bins].name, "bins") == 0);
  CHECK_EQ(layout->tables[TSL_ROWS_epochs].row_bytes, sizeof(struct tsl_epochs_row));
}

static void names_are_whole_and_different(void) {
  for (unsigned i = 0; i < layout->field_count; i++) {
    const struct tslab_stats_field *field = &layout->fields[i];
    CHECK(field->name[0] != '\0' && memchr(field->name, 0, sizeof field->name) != NULL);
    for (unsigned j = 0; j < i; j++) {
      const struct tslab_stats_field *other = &layout->fields[j];
      CHECK(other->table != field->table || strcmp(other->name, field->name) != 0);
    }
  }
}

static void fields_lie_in_their_rows(void) {
  for (unsigned i = 0; i < layout->field_count; i++) {
    const struct tslab_stats_field *field = &layout->fields[i];
    CHECK(field->table < layout->table_count);
    CHECK_LE(field->at + bytes_of(field), layout->tables[field->table].row_bytes);
    CHECK_EQ(field->at % field->bytes, 0);
    CHECK(field->count == 1 || field->kind == TSLAB_STATS_TEXT || field->count == TSL_CLASSES ||
          field->count == TSL_SITE_FRAMES || field->count == TSL_NUMBER_decades);
  }
}

static void fields_do_not_overlap(void) {
  for (unsigned i = 0; i < layout->field_count; i++) {
    for (unsigned j = 0; j < i; j++) {
      const struct tslab_stats_field *one = &layout->fields[i], *other = &layout->fields[j];
      if (one->table != other->table) continue;
      CHECK(one->at >= other->at + bytes_of(other) || other->at >= one->at + bytes_of(one));
    }
  }
}

// Rows of 8-byte values begin at multiples of 8 wherever they lie.
static void rows_keep_their_alignment(void) {
  for (unsigned i = 0; i < layout->table_count; i++)
    CHECK(layout->tables[i].row_bytes % 8 == 0 || i == TSL_ROWS_classes || i == TSL_ROWS_control);
}

static bool counts(unsigned table, const char *name) {
  for (unsigned i = 0; i < layout->field_count; i++) {
    const struct tslab_stats_field *field = &layout->fields[i];
    if (field->table == table && strcmp(field->name, name) == 0)
      return field->kind == TSLAB_STATS_COUNTER;
  }
  return false;
}

static void slow_paths_are_counted(void) {
#define COUNT(cause, who, table, field, meaning) CHECK(counts(TSL_ROWS_##table, #field));
#define LESS(cause, who, table, field, less, meaning) \
  COUNT(cause, who, table, field, meaning) CHECK(counts(TSL_ROWS_##table, #less));
  TSL_SLOW_PATHS(COUNT, LESS)
}

static void numbers_are_those_of_the_allocator(void) {
  CHECK_EQ(TSL_NUMBER_unit_bytes, TSL_UNIT_BYTES);
  CHECK_EQ(TSL_NUMBER_other_label, TSL_LABEL_OTHER);
  CHECK_EQ(TSL_EPOCHS_OPEN, TSL_EPOCH_OPEN);
  CHECK_EQ(TSL_EPOCHS_CLOSED, TSL_EPOCH_CLOSED);
  CHECK_EQ(TSL_EPOCHS_RELEASED, TSL_EPOCH_RELEASED);
}

int main(void) {
  RUN(tables_are_in_the_order_of_their_numbers);
  RUN(names_are_whole_and_different);
  RUN(fields_lie_in_their_rows);
  RUN(fields_do_not_overlap);
  RUN(rows_keep_their_alignment);
  RUN(slow_paths_are_counted);
  RUN(numbers_are_those_of_the_allocator);
  return test_status();
}
