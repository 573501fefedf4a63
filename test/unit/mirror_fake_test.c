#include "memory/mirror.h"

#include <stdio.h>
#include <string.h>

#include "os_fake.h"
#include "test.h"
#include "threads.h"

enum { SMALL, LARGE, ROW_BYTES = 192, MOST_ROWS = 5000, CHUNK_ROWS = 4096 / ROW_BYTES };

static const struct tslab_stats_table tables[] = {
    [SMALL] = {.name = "small", .row_bytes = 64, .most_rows = 3},
    [LARGE] = {.name = "large", .row_bytes = ROW_BYTES, .most_rows = MOST_ROWS},
};
static const struct tslab_stats_field fields[] = {
    {"colour", SMALL, TSLAB_STATS_ID, TSLAB_STATS_NONE, 8, 4, 1, 0},
    {"weight", LARGE, TSLAB_STATS_GAUGE, TSLAB_STATS_BYTES, 16, 8, 20, 0},
    {"text", LARGE, TSLAB_STATS_TEXT, TSLAB_STATS_NONE, 0, 1, 16, 0},
};
static const struct tsl_mirror_layout layout = {tables, fields, 2, 3};

static const struct tslab_stats_header *head(void) {
  return (const struct tslab_stats_header *)(const void *)os_fake.shared;
}

// As a reader finds them: by what the header says.
static const struct tslab_stats_table *table_at(unsigned i) {
  const char *file = os_fake.shared;
  return (const struct tslab_stats_table *)(const void *)(file + head()->tables_at +
                                                          (size_t)i * head()->table_bytes);
}
static const struct tslab_stats_field *field_at(unsigned i) {
  const char *file = os_fake.shared;
  return (const struct tslab_stats_field *)(const void *)(file + head()->fields_at +
                                                          (size_t)i * head()->field_bytes);
}

static void *row_of(unsigned number, uint32_t row, size_t row_bytes) {
  return tsl_mirror_row(number, row, row_bytes, TSL_MIRROR_PASS);
}

static void open_mirror(void) {
  os_fake.now_ms = 77;
  CHECK(!tsl_mirror_is_open());
  CHECK(row_of(SMALL, 0, 64) == NULL);
  CHECK(tsl_mirror_open(&layout));
  CHECK(tsl_mirror_is_open());
}

static void the_file_describes_itself(void) {
  open_mirror();
  CHECK(memcmp(head()->magic, TSLAB_STATS_MAGIC, 8) == 0);
  CHECK_EQ(head()->abi, TSLAB_STATS_ABI);
  CHECK_EQ(head()->header_bytes, sizeof *head());
  CHECK_EQ(head()->file_bytes, os_fake.shared_bytes);
  CHECK_EQ(head()->pid, 4711);
  CHECK_EQ(head()->start_ticks, 1000);
  CHECK_EQ(head()->page_bytes, os_fake_page_bytes());
  CHECK_EQ(head()->made_ms, 77);
  CHECK(strcmp(os_fake.shared_name, "tslab.4711.1000") == 0);
  CHECK_EQ(head()->tables, 2);
  CHECK_EQ(head()->fields, 3);
  for (unsigned i = 0; i < 2; i++) {
    CHECK(strcmp(table_at(i)->name, tables[i].name) == 0);
    CHECK_EQ(table_at(i)->row_bytes, tables[i].row_bytes);
    CHECK_EQ(table_at(i)->most_rows, tables[i].most_rows);
    CHECK_EQ(table_at(i)->rows, 0);
  }
  for (unsigned i = 0; i < 3; i++) CHECK(memcmp(field_at(i), &fields[i], sizeof fields[i]) == 0);
}

static void tables_do_not_overlap(void) {
  open_mirror();
  uint64_t first = table_at(SMALL)->at, second = table_at(LARGE)->at;
  CHECK_GE(first, head()->fields_at + head()->fields * (uint64_t)head()->field_bytes);
  CHECK_GE(second, first + 3 * 64);
  CHECK_LE(second + (uint64_t)MOST_ROWS * ROW_BYTES, head()->file_bytes);
}

static void rows_get_memory_as_they_are_wanted(void) {
  open_mirror();
  char *row = row_of(LARGE, 0, ROW_BYTES);
  CHECK(row == os_fake.shared + table_at(LARGE)->at);
  CHECK_EQ(table_at(LARGE)->rows, CHUNK_ROWS);
  uint64_t calls = os_fake.calls[OS_FAKE_SHARE_MORE];
  for (uint32_t i = 0; i < CHUNK_ROWS; i++) {
    row = row_of(LARGE, i, ROW_BYTES);
    memset(row, (int)i, ROW_BYTES);
  }
  CHECK_EQ(os_fake.calls[OS_FAKE_SHARE_MORE], calls);
  memset(row_of(LARGE, MOST_ROWS - 1, ROW_BYTES), 1, ROW_BYTES);
  CHECK_EQ(table_at(LARGE)->rows, MOST_ROWS);
  memset(row_of(LARGE, MOST_ROWS / 2, ROW_BYTES), 1, ROW_BYTES);
  CHECK(row_of(LARGE, MOST_ROWS, ROW_BYTES) == NULL);
  CHECK(row_of(SMALL, 2, 64) != NULL);
  CHECK(row_of(SMALL, 3, 64) == NULL);
  CHECK_EQ(table_at(SMALL)->rows, 3);
}

static void a_full_system_costs_rows(void) {
  open_mirror();
  CHECK(row_of(LARGE, 0, ROW_BYTES) != NULL);
  os_fake_fail_all(OS_FAKE_SHARE_MORE);
  CHECK(row_of(LARGE, CHUNK_ROWS, ROW_BYTES) == NULL);
  CHECK_EQ(table_at(LARGE)->is_full, 1);
  CHECK_EQ(table_at(LARGE)->rows, CHUNK_ROWS);
  os_fake_recover();
  os_fake.now_ms += 999;
  CHECK(row_of(LARGE, CHUNK_ROWS, ROW_BYTES) == NULL);
  CHECK(row_of(LARGE, CHUNK_ROWS - 1, ROW_BYTES) != NULL);
  CHECK(row_of(SMALL, 0, 64) != NULL);
  CHECK_EQ(table_at(SMALL)->is_full, 0);
  os_fake.now_ms += 1;
  CHECK(row_of(LARGE, CHUNK_ROWS, ROW_BYTES) != NULL);
  CHECK_EQ(table_at(LARGE)->is_full, 0);
}

static void refused(enum os_fake_call call) {
  os_fake_fail_next(call);
  CHECK(!tsl_mirror_open(&layout));
  CHECK(!tsl_mirror_is_open());
  CHECK(os_fake.shared == NULL);
  CHECK(os_fake.shared_name[0] == '\0');
  CHECK(row_of(SMALL, 0, 64) == NULL);
  tsl_mirror_beat(5);
  CHECK(!tsl_mirror_open(&layout));
}
static void without_a_file_there_are_no_rows(void) { refused(OS_FAKE_SHARE); }
static void without_memory_there_is_no_file(void) { refused(OS_FAKE_SHARE_MORE); }

static void the_process_says_when_it_was_here(void) {
  open_mirror();
  tsl_mirror_beat(1234);
  CHECK_EQ(head()->told_ms, 1234);
}

static void a_closed_mirror_leaves_no_name(void) {
  open_mirror();
  char *row = row_of(SMALL, 1, 64);
  tsl_mirror_close();
  CHECK(os_fake.shared_name[0] == '\0');
  row[0] = 1;  // who was just writing may end
  CHECK(row_of(SMALL, 1, 64) == NULL);
  CHECK(!tsl_mirror_open(&layout));
}

static void a_child_makes_its_own(void) {
  open_mirror();
  uint64_t *row = row_of(LARGE, 0, ROW_BYTES);
  *row = 7;
  tsl_mirror_after_fork();
  CHECK_EQ(*row, 0);  // the parent's file is not there any more,
  *row = 1;           // but who was just writing may end
  CHECK(row_of(LARGE, 0, ROW_BYTES) == NULL);
  open_mirror();
  CHECK_EQ(os_fake.calls[OS_FAKE_UNRESERVE], 1);
  CHECK(row_of(LARGE, 0, ROW_BYTES) != NULL);
}

// The magic and the version of what a file holds are told by equal hashes.
static void other_layouts_have_other_hashes(void) {
  open_mirror();
  uint64_t hash = head()->layout_hash;
  tsl_mirror_after_fork();
  struct tslab_stats_field changed[3];
  memcpy(changed, fields, sizeof changed);
  changed[1].at += 8;
  CHECK(tsl_mirror_open(&(struct tsl_mirror_layout){tables, changed, 2, 3}));
  CHECK(head()->layout_hash != hash);
}

static void *write_rows(void *haste) {
  for (uint32_t i = 0; i < MOST_ROWS; i++) {
    uint32_t *row = tsl_mirror_row(LARGE, i, ROW_BYTES, *(enum tsl_mirror_haste *)haste);
    if (row != NULL) tsl_add_relaxed(row, 1);
  }
  return NULL;
}

static void write_beside_others(enum tsl_mirror_haste haste, uint32_t least) {
  open_mirror();
  threads_run(write_rows, &haste);
  for (uint32_t i = 0; i < MOST_ROWS; i++) {
    const uint32_t *row = row_of(LARGE, i, ROW_BYTES);
    CHECK(row != NULL && *row >= least && *row <= THREADS);
  }
}

static void who_passes_misses_rows_of_a_table_that_grows(void) {
  write_beside_others(TSL_MIRROR_PASS, 0);
}
static void who_waits_misses_none(void) { write_beside_others(TSL_MIRROR_WAIT, THREADS); }

int main(void) {
  RUN(the_file_describes_itself);
  RUN(tables_do_not_overlap);
  RUN(rows_get_memory_as_they_are_wanted);
  RUN(a_full_system_costs_rows);
  RUN(without_a_file_there_are_no_rows);
  RUN(without_memory_there_is_no_file);
  RUN(the_process_says_when_it_was_here);
  RUN(a_closed_mirror_leaves_no_name);
  RUN(a_child_makes_its_own);
  RUN(other_layouts_have_other_hashes);
  RUN(who_passes_misses_rows_of_a_table_that_grows);
  RUN(who_waits_misses_none);
  return test_status();
}
