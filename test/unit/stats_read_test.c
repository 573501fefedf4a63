// tslab_stats_read.h: the sums of a small file whose rows are known, what each wrong file is
// called, and files with damage anywhere.
#include <unistd.h>

// What happens in the file while it is read.
static ssize_t watched_read(int file, void *into, size_t bytes);
#define read watched_read
#include "tslab_stats_read.h"
#undef read

#include "slab/sizeclass.h"
#include "state/label.h"
#include "tell/rows.h"
#include "test.h"

enum {
  ROWS = 300,  // of heaps: more than a reader sees at once
  LESS_ROWS = 8,
  IMAGE_BYTES = 1 << 20,
  DAMAGES = 200,
  CLASS = 3,  // in which the objects are
  HOME = 1,
  PART = 2,
  PARENT = 1,  // epochs
  CHILD = 2,
  CLOSED = 3,
  NOBODYS = 5,  // the epoch of a part that is about to end
  LABEL = 2,
};

_Static_assert(TSLAB_READER_UNIT_BYTES == TSL_NUMBER_unit_bytes, "");
_Static_assert(TSLAB_READER_MOST_CLASSES >= TSL_CLASSES, "");
_Static_assert(TSLAB_READER_TEXT_BYTES >= TSL_LABEL_BYTES, "");
_Static_assert((int)TSLAB_READER_OPEN == (int)TSL_EPOCHS_OPEN, "");
_Static_assert((int)TSLAB_READER_CLOSED == (int)TSL_EPOCHS_CLOSED, "");
_Static_assert((int)TSLAB_READER_RELEASED == (int)TSL_EPOCHS_RELEASED, "");
_Static_assert((int)TSLAB_READER_SHARED == (int)TSL_EPOCHS_SHARED, "");
_Static_assert((int)TSLAB_READER_NOBODYS == (int)TSL_HEAPS_NOBODYS, "");
_Static_assert((int)TSLAB_READER_A_THREADS == (int)TSL_HEAPS_A_THREADS, "");

static unsigned char image[IMAGE_BYTES];
static struct tslab_stats_table *tables;
static struct tslab_stats_field *fields;
static tslab_reader reader;
static char path[] = "/tmp/stats_read_test.XXXXXX";
static unsigned reads_left;  // until it happens; 0: never
static void (*happens)(void);

static ssize_t watched_read(int file, void *into, size_t bytes) {
  if (reads_left != 0 && --reads_left == 0) happens();
  return read(file, into, bytes);
}

static struct tslab_stats_header *header(void) { return (void *)image; }

static uint32_t rows_of(unsigned table) {
  uint32_t most = table == TSL_ROWS_heaps ? ROWS : LESS_ROWS;
  if (table == TSL_ROWS_classes) most = TSL_CLASSES;
  return table == TSL_ROWS_process || table == TSL_ROWS_control ? 1 : most;
}

static uint64_t tables_put(uint64_t at) {
  for (unsigned i = 0; i < tsl_rows_layout.table_count; i++) {
    tables[i] = tsl_rows_layout.tables[i];
    tables[i].rows = tables[i].most_rows = rows_of(i);
    tables[i].at = at;
    at += (uint64_t)tables[i].rows * tables[i].row_bytes;
  }
  return at;
}

static unsigned char *place(unsigned table, uint32_t row, const char *name, unsigned *bytes) {
  for (unsigned i = 0; i < tsl_rows_layout.field_count; i++) {
    const struct tslab_stats_field *field = &tsl_rows_layout.fields[i];
    *bytes = field->bytes;
    if (field->table == table && strcmp(field->name, name) == 0)
      return image + tables[table].at + (size_t)row * tables[table].row_bytes + field->at;
  }
  CHECK_THAT(false, "no field %s", name);
  return NULL;
}

static void put_class(unsigned table, uint32_t row, const char *name, unsigned class,
                      uint64_t value) {
  unsigned bytes;
  unsigned char *at = place(table, row, name, &bytes);
  memcpy(at + class * bytes, &value, bytes);
}

#define PUT(table, row, field, value) put_class(TSL_ROWS_##table, row, #field, 0, value)
#define PUT_CLASS(table, row, field, value) put_class(TSL_ROWS_##table, row, #field, CLASS, value)

static void label_put(uint32_t row, const char *text) {
  unsigned bytes;
  memcpy(place(TSL_ROWS_labels, row, "text", &bytes), text, strlen(text));
}

static void epoch_put(uint32_t row, uint64_t parent, unsigned state, uint64_t held_bytes) {
  PUT(epochs, row, id, row + 1000);
  PUT(epochs, row, parent, parent);
  PUT(epochs, row, state, state);
  PUT(epochs, row, label, LABEL + (row == CLOSED));
  PUT(epochs, row, held_bytes, held_bytes);
}

static void heap_put(uint32_t row, uint64_t epoch) {
  PUT(heaps, row, state, TSL_HEAPS_A_THREADS);
  PUT(heaps, row, home, HOME);
  PUT(heaps, row, epoch, epoch);
  PUT(heaps, row, cut_objects, 10);
  PUT(heaps, row, cut_bytes, 1000);
  PUT(heaps, row, freed_objects, 3);
  PUT(heaps, row, freed_bytes, 300);
  PUT(heaps, row, cached_units, 2);
}

// 40 objects of a class are out of the home's slabs, 5 of them at hand, 6 sent by others and 2 of
// these back; of the part's 30 are out, 1 of them at hand.
static void bins_put(void) {
  PUT_CLASS(bins, HOME, out, 40);
  PUT_CLASS(bins, HOME, hot, 5);
  PUT_CLASS(bins, 0, sent, 6);
  PUT_CLASS(bins, HOME, taken, 2);
  PUT_CLASS(bins, HOME, slabs, 1);
  PUT_CLASS(bins, HOME, allocations, 100);
  PUT(bins, HOME, ended_objects, 7);
  PUT_CLASS(bins, PART, out, 30);
  PUT_CLASS(bins, PART, hot, 1);
  PUT_CLASS(bins, PART, slabs, 2);
}

static void sizes_put(void) {
  for (unsigned i = 0; i < TSL_CLASSES; i++) {
    put_class(TSL_ROWS_classes, i, "bytes", 0, tsl_sizeclasses[i].bytes);
    put_class(TSL_ROWS_classes, i, "slab_bytes", 0, TSL_NUMBER_unit_bytes);
  }
}

static void rows_put(void) {
  sizes_put();
  label_put(0, "default");
  label_put(LABEL, "tenant");
  label_put(LABEL + 1, "upload");
  PUT(labels, LABEL, limits_refused, 4);
  epoch_put(PARENT, 0, TSL_EPOCHS_OPEN, 500000);
  epoch_put(CHILD, PARENT, TSL_EPOCHS_SHARED, 200000);
  epoch_put(CLOSED, 0, TSL_EPOCHS_CLOSED, 100000);
  PUT_CLASS(epochs, CLOSED, survivors, 9);
  PUT(epochs, CHILD, large_objects, 1);
  PUT(epochs, CHILD, large_bytes, 70000);
  PUT(process, 0, large_objects, 3);
  PUT(process, 0, large_bytes, 300000);
  PUT(process, 0, large_allocations, 11);
  heap_put(HOME, 0);
  heap_put(PART, CHILD);
  heap_put(ROWS - 1, CLOSED);
  heap_put(ROWS - 2, NOBODYS);
  PUT(heaps, ROWS - 2, cached_units, 0);
  PUT(heaps, HOME, cell_bytes, 4096);
  bins_put();
}

static void image_make(void) {
  memset(image, 0, sizeof image);
  struct tslab_stats_header *h = header();
  memcpy(h->magic, TSLAB_STATS_MAGIC, sizeof h->magic);
  h->abi = TSLAB_STATS_ABI;
  h->header_bytes = sizeof *h;
  h->tables_at = sizeof *h;
  h->tables = tsl_rows_layout.table_count;
  h->table_bytes = sizeof *tables;
  h->fields_at = h->tables_at + h->tables * sizeof *tables;
  h->fields = tsl_rows_layout.field_count;
  h->field_bytes = sizeof *fields;
  tables = (void *)(image + h->tables_at);
  fields = (void *)(image + h->fields_at);
  memcpy(fields, tsl_rows_layout.fields, h->fields * sizeof *fields);
  h->file_bytes = tables_put(h->fields_at + h->fields * sizeof *fields);
  CHECK(h->file_bytes <= sizeof image);
  rows_put();
}

static tslab_reader_error image_open(size_t bytes) {
  FILE *file = fopen(path, "w");
  CHECK(file != NULL && fwrite(image, 1, bytes, file) == bytes);
  CHECK_EQ(fclose(file), 0);
  return tslab_reader_open_path(&reader, path);
}

static void image_open_whole(void) { CHECK_EQ(image_open(header()->file_bytes), TSLAB_READER_OK); }

static uint64_t class_bytes(uint64_t objects) { return objects * tsl_sizeclasses[CLASS].bytes; }

static tslab_reader_totals totals_get(void) {
  tslab_reader_totals totals;
  CHECK_EQ(tslab_reader_totals_get(&reader, &totals), TSLAB_READER_OK);
  return totals;
}

// In the default epoch 7 in cells, 40 - 5 - 4 in slabs, and 2 large; in others 7 + 29 + 1, and 16.
static void totals_add_up(void) {
  image_make();
  image_open_whole();
  tslab_reader_totals totals = totals_get();
  CHECK_EQ(totals.all.live_objects, 7 + 31 + 2 + 7 + 29 + 1 + 9 + 7);
  CHECK_EQ(totals.all.live_bytes, 3 * 700 + 300000 + class_bytes(31 + 29 + 9));
  CHECK_EQ(totals.all.large_bytes, 300000);
  CHECK_EQ(totals.all.held_bytes, 500000 + 100000 + 230000 + 4096 + TSL_NUMBER_unit_bytes);
  CHECK_EQ(totals.hot_bytes, class_bytes(6));
  CHECK_EQ(totals.spare_bytes, totals.all.held_bytes - totals.all.live_bytes - totals.hot_bytes);
  CHECK_EQ(totals.thread_cached_bytes, 6 * TSL_NUMBER_unit_bytes);
  CHECK_EQ(totals.threads, 1);
  CHECK_EQ(totals.allocations, 100 + 7 + 40 + 11);
  CHECK_EQ(totals.all.epochs_open, 1);
  CHECK_EQ(totals.all.epochs_shared, 1);
  CHECK_EQ(totals.epochs_closed_with_survivors, 1);
  CHECK_EQ(totals.all.unsettled, 0);
  tslab_reader_close(&reader);
}

static void epochs_own_what_no_child_holds(void) {
  image_make();
  image_open_whole();
  tslab_reader_epoch epoch;
  CHECK_EQ(tslab_reader_epoch_get(&reader, PARENT, &epoch), TSLAB_READER_OK);
  CHECK_EQ(epoch.id, PARENT + 1000);
  CHECK_EQ(epoch.held_bytes, 500000);
  CHECK_EQ(epoch.own.held_bytes, 300000);
  CHECK_EQ(epoch.own.live_objects, 0);
  CHECK_EQ(tslab_reader_epoch_get(&reader, CHILD, &epoch), TSLAB_READER_OK);
  CHECK_EQ(epoch.own.live_objects, 7 + 29 + 1);
  CHECK_EQ(epoch.own.live_bytes, 700 + 70000 + class_bytes(29));
  CHECK_EQ(epoch.parent, PARENT);
  CHECK_EQ(tslab_reader_epoch_get(&reader, 0, &epoch), TSLAB_READER_OK);
  CHECK_EQ(epoch.own.live_objects, 7 + 31 + 2);
  CHECK_EQ(epoch.held_bytes, 230000 + 4096 + TSL_NUMBER_unit_bytes);
  CHECK_EQ(tslab_reader_epoch_get(&reader, CLOSED + 1, &epoch), TSLAB_READER_NO_ROW);
  CHECK_EQ(tslab_reader_epoch_get(&reader, LESS_ROWS, &epoch), TSLAB_READER_NO_ROW);
}

static void labels_have_the_sums_of_their_epochs(void) {
  image_make();
  image_open_whole();
  tslab_reader_label label;
  CHECK_EQ(tslab_reader_label_get(&reader, LABEL, &label), TSLAB_READER_OK);
  CHECK(strcmp(label.text, "tenant") == 0);
  CHECK_EQ(label.all.held_bytes, 500000);
  CHECK_EQ(label.all.live_objects, 7 + 29 + 1);
  CHECK_EQ(label.limits_refused, 4);
  CHECK_EQ(tslab_reader_label_get(&reader, LABEL + 1, &label), TSLAB_READER_OK);
  CHECK_EQ(label.all.live_objects, 9 + 7);
  CHECK_EQ(tslab_reader_label_get(&reader, LABEL + 2, &label), TSLAB_READER_NO_ROW);
  CHECK_EQ(tslab_reader_label_get(&reader, LESS_ROWS, &label), TSLAB_READER_NO_ROW);
}

static void classes_count_all_but_cells(void) {
  image_make();
  image_open_whole();
  tslab_reader_class of;
  CHECK_EQ(tslab_reader_class_get(&reader, CLASS, &of), TSLAB_READER_OK);
  CHECK_EQ(of.live, 31 + 29 + 9);
  CHECK_EQ(of.out, 70);
  CHECK_EQ(of.hot, 6);
  CHECK_EQ(of.slabs, 3);
  CHECK_EQ(of.allocations, 100);
  CHECK_EQ(of.bytes, tsl_sizeclasses[CLASS].bytes);
  CHECK_EQ(tslab_reader_class_get(&reader, TSL_CLASSES, &of), TSLAB_READER_NO_ROW);
}

static void columns_are_read_row_by_row(void) {
  image_make();
  image_open_whole();
  tslab_reader_column column;
  uint64_t value, rows;
  CHECK_EQ(tslab_reader_column_find(&reader, "heaps", "cut_objects", &column), TSLAB_READER_OK);
  CHECK_EQ(tslab_reader_value(&reader, &column, ROWS - 1, 0, &value), TSLAB_READER_OK);
  CHECK_EQ(value, 10);
  CHECK_EQ(tslab_reader_value(&reader, &column, ROWS, 0, &value), TSLAB_READER_NO_ROW);
  CHECK_EQ(tslab_reader_sum(&reader, &column, &value), TSLAB_READER_OK);
  CHECK_EQ(value, 40);
  column.at = reader.header.file_bytes - 4;
  CHECK_EQ(tslab_reader_value(&reader, &column, 0, 0, &value), TSLAB_READER_DAMAGED);
  CHECK_EQ(tslab_reader_rows(&reader, "heaps", &rows), TSLAB_READER_OK);
  CHECK_EQ(rows, ROWS);
  CHECK_EQ(tslab_reader_rows(&reader, "hips", &rows), TSLAB_READER_NOT_TOLD);
  CHECK_EQ(tslab_reader_column_find(&reader, "heaps", "x", &column), TSLAB_READER_NOT_TOLD);
  CHECK_EQ(tslab_reader_sum(&reader, &column, &value), TSLAB_READER_OK);
  CHECK_EQ(value, 0);
}

// What is seen in the middle of a change.
static void negative_sums_are_0_and_said(void) {
  image_make();
  PUT_CLASS(epochs, CLOSED, survivors, (uint32_t)-20);
  image_open_whole();
  tslab_reader_epoch epoch;
  CHECK_EQ(tslab_reader_epoch_get(&reader, CLOSED, &epoch), TSLAB_READER_OK);
  CHECK_EQ(epoch.own.live_objects, 0);
  CHECK_EQ(epoch.own.unsettled, 1);
  CHECK_EQ(totals_get().epochs_closed_with_survivors, 0);
}

static void older_files_lack_fields(void) {
  image_make();
  for (unsigned i = 0; i < header()->fields; i++) {
    if (strcmp(fields[i].name, "cached_units") == 0) fields[i].name[0] = 'k';
    if (strcmp(fields[i].name, "limits_refused") == 0) fields[i].name[0] = 'k';
  }
  image_open_whole();
  CHECK_EQ(totals_get().thread_cached_bytes, TSLAB_READER_UNKNOWN);
  tslab_reader_label label;
  CHECK_EQ(tslab_reader_label_get(&reader, LABEL, &label), TSLAB_READER_OK);
  CHECK_EQ(label.limits_refused, TSLAB_READER_UNKNOWN);
  for (unsigned i = 0; i < header()->fields; i++) {
    if (strcmp(fields[i].name, "survivors") == 0) fields[i].name[0] = 'k';
  }
  image_open_whole();
  tslab_reader_totals totals;
  CHECK_EQ(tslab_reader_totals_get(&reader, &totals), TSLAB_READER_NOT_TOLD);
}

static void wrong_files_are_called_by_name(void) {
  image_make();
  CHECK_EQ(tslab_reader_open(&reader, 0), TSLAB_READER_NO_PROCESS);
  CHECK_EQ(tslab_reader_open(&reader, (long)getpid()), TSLAB_READER_NO_FILE);
  CHECK_EQ(tslab_reader_open_path(&reader, "/nowhere"), TSLAB_READER_NO_FILE);
  CHECK_EQ(tslab_reader_open_path(&reader, "/tmp"), TSLAB_READER_SYSTEM);
  CHECK_EQ(image_open(0), TSLAB_READER_NOT_READY);
  CHECK_EQ(image_open(sizeof *header() - 1), TSLAB_READER_CUT_SHORT);
  CHECK_EQ(image_open(header()->file_bytes - 1), TSLAB_READER_CUT_SHORT);
  header()->abi++;
  CHECK_EQ(image_open(header()->file_bytes), TSLAB_READER_OTHER_ABI);
  header()->magic[0] = 'x';
  CHECK_EQ(image_open(header()->file_bytes), TSLAB_READER_FOREIGN);
  CHECK_EQ(reader.file, -1);
  image_make();
  tables[TSL_ROWS_heaps].at = UINT64_MAX - 8;
  CHECK_EQ(image_open(header()->file_bytes), TSLAB_READER_DAMAGED);
  image_make();
  fields[7].at = UINT32_MAX;
  CHECK_EQ(image_open(header()->file_bytes), TSLAB_READER_DAMAGED);
  image_make();
  fields[7].table = (uint16_t)header()->tables;
  CHECK_EQ(image_open(header()->file_bytes), TSLAB_READER_DAMAGED);
  image_make();
  tables[TSL_ROWS_heaps].most_rows = ROWS - 1;
  CHECK_EQ(image_open(header()->file_bytes), TSLAB_READER_DAMAGED);
  for (int error = TSLAB_READER_OK; error <= TSLAB_READER_SYSTEM; error++)
    CHECK(strcmp(tslab_reader_error_text((tslab_reader_error)error), "unknown error") != 0);
}

static void image_write(void) {
  FILE *file = fopen(path, "r+");
  CHECK(file != NULL && fwrite(image, 1, header()->file_bytes, file) == header()->file_bytes);
  CHECK_EQ(fclose(file), 0);
}

static void epoch_becomes_another(void) {
  PUT(epochs, CLOSED, id, CLOSED + 5000);
  image_write();
}

static void thread_leaves_an_epoch(void) {
  PUT_CLASS(epochs, CHILD, survivors, 29);
  PUT_CLASS(bins, PART, out, 1);
  image_write();
}

static void file_is_cut(void) { CHECK_EQ(truncate(path, 4096), 0); }

// Whatever is read first, one and the same moment is told, or that it was not one.
static void rows_change_while_they_are_read(void) {
  unsigned changed = 0, unsettled = 0, cut = 0;
  for (unsigned reads = 1; reads < 40; reads++) {
    tslab_reader_epoch epoch;
    image_make();
    image_open_whole();
    happens = epoch_becomes_another;
    reads_left = reads;
    tslab_reader_error error = tslab_reader_epoch_get(&reader, CLOSED, &epoch);
    CHECK(error == TSLAB_READER_OK || error == TSLAB_READER_NO_ROW);
    changed += error == TSLAB_READER_NO_ROW;
    image_make();
    image_open_whole();
    happens = thread_leaves_an_epoch;
    reads_left = reads;
    CHECK_EQ(tslab_reader_epoch_get(&reader, CHILD, &epoch), TSLAB_READER_OK);
    unsettled += epoch.own.unsettled != 0;
    CHECK(epoch.own.unsettled || epoch.own.live_objects == 7 + 29 + 1);
    image_make();
    image_open_whole();
    happens = file_is_cut;
    reads_left = reads;
    error = tslab_reader_epoch_get(&reader, CHILD, &epoch);
    CHECK(error == TSLAB_READER_OK || error == TSLAB_READER_CUT_SHORT);
    cut += error == TSLAB_READER_CUT_SHORT;
    reads_left = 0;
  }
  CHECK_GE(changed, 1);
  CHECK_GE(unsettled, 1);
  CHECK_GE(cut, 1);
}

// Every function is asked; whatever it answers, it answers.
static tslab_reader_error ask_all(void) {
  tslab_reader_totals totals;
  tslab_reader_epoch epoch;
  tslab_reader_label label;
  tslab_reader_class of;
  tslab_reader_column column;
  uint64_t sum;
  tslab_reader_error error = tslab_reader_totals_get(&reader, &totals);
  for (unsigned row = 0; row < LESS_ROWS; row++) {
    (void)tslab_reader_epoch_get(&reader, row, &epoch);
    (void)tslab_reader_label_get(&reader, row, &label);
    (void)tslab_reader_class_get(&reader, row, &of);
  }
  (void)tslab_reader_column_find(&reader, "bins", "opened", &column);
  (void)tslab_reader_sum(&reader, &column, &sum);
  return error;
}

// Most of the damage is where the file describes itself.
static void image_damage(uint64_t *random) {
  uint64_t described = header()->fields_at + header()->fields * sizeof *fields;
  unsigned below = (unsigned)(test_random_below(random, 4) != 0 ? described : header()->file_bytes);
  for (unsigned i = test_random_below(random, 8) + 1; i != 0; i--)
    image[sizeof header()->magic + test_random_below(random, below - 8)] =
        (unsigned char)test_random(random);
}

static void damage_gives_an_error_or_an_answer(void) {
  uint64_t random = 1;
  unsigned refused = 0, answered = 0;
  for (unsigned i = 0; i < DAMAGES; i++) {
    check_context_set("damage %u", i);
    image_make();
    size_t bytes = header()->file_bytes;
    if (i % 4 == 0) {
      bytes = test_random_below(&random, (unsigned)bytes);
    } else {
      image_damage(&random);
    }
    tslab_reader_error error = image_open(bytes);
    if (error == TSLAB_READER_OK) error = ask_all();
    *(error == TSLAB_READER_OK ? &answered : &refused) += 1;
    tslab_reader_close(&reader);
  }
  CHECK_GE(refused, DAMAGES / 4);
  CHECK_GE(answered, 1);
}

int main(void) {
  int file = mkstemp(path);
  CHECK(file >= 0);
  close(file);
  RUN(totals_add_up);
  RUN(epochs_own_what_no_child_holds);
  RUN(labels_have_the_sums_of_their_epochs);
  RUN(classes_count_all_but_cells);
  RUN(columns_are_read_row_by_row);
  RUN(negative_sums_are_0_and_said);
  RUN(older_files_lack_fields);
  RUN(wrong_files_are_called_by_name);
  RUN(rows_change_while_they_are_read);
  RUN(damage_gives_an_error_or_an_answer);
  unlink(path);
  return test_status();
}
