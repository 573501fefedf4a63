// reader: what tslab_stats_read.h says of a process, as JSON.
//
// reader PID | PATH
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <tslab_stats_read.h>

static tslab_reader reader;

static bool is_ok(tslab_reader_error error) {
  if (error != TSLAB_READER_OK) fprintf(stderr, "reader: %s\n", tslab_reader_error_text(error));
  return error == TSLAB_READER_OK;
}

static void figures_print(const tslab_reader_figures *figures) {
  printf("\"live_objects\": %" PRIu64 ", \"live_bytes\": %" PRIu64 ", \"large_bytes\": %" PRIu64
         ", \"own_bytes\": %" PRIu64 ", \"unsettled\": %s",
         figures->live_objects, figures->live_bytes, figures->large_bytes, figures->held_bytes,
         figures->unsettled ? "true" : "false");
}

static bool totals_print(void) {
  tslab_reader_totals totals;
  if (!is_ok(tslab_reader_totals_get(&reader, &totals))) return false;
  printf("{\"totals\": {\"held_bytes\": %" PRIu64 ", \"hot_bytes\": %" PRIu64
         ", \"spare_bytes\": %" PRIu64 ", \"thread_cached_bytes\": %" PRIu64
         ", \"threads\": %" PRIu64 ", \"epochs_open\": %" PRIu64 ", \"epochs_shared\": %" PRIu64
         ", \"epochs_closed_with_survivors\": %" PRIu64 ", ",
         totals.all.held_bytes, totals.hot_bytes, totals.spare_bytes, totals.thread_cached_bytes,
         totals.threads, totals.all.epochs_open, totals.all.epochs_shared,
         totals.epochs_closed_with_survivors);
  figures_print(&totals.all);
  printf("}, \"allocations\": %" PRIu64, totals.allocations);
  return true;
}

// Rows of nobody are passed over.
static bool is_somebodys(tslab_reader_error error, bool *ok) {
  if (error != TSLAB_READER_OK && error != TSLAB_READER_NO_ROW) *ok = is_ok(error);
  return error == TSLAB_READER_OK;
}

static bool epochs_print(uint64_t rows) {
  const char *comma = "";
  bool ok = true;
  fputs(", \"epochs\": [", stdout);
  for (uint64_t row = 0; row < rows && ok; row++) {
    tslab_reader_epoch epoch;
    if (!is_somebodys(tslab_reader_epoch_get(&reader, row, &epoch), &ok)) continue;
    printf("%s{\"epoch\": %" PRIu64 ", \"id\": %" PRIu64 ", \"held_bytes\": %" PRIu64
           ", \"state\": %" PRIu64 ", ",
           comma, row, epoch.id, epoch.held_bytes, epoch.state);
    figures_print(&epoch.own);
    fputs("}", stdout);
    comma = ", ";
  }
  fputs("]", stdout);
  return ok;
}

static bool labels_print(uint64_t rows) {
  const char *comma = "";
  bool ok = true;
  fputs(", \"labels\": [", stdout);
  for (uint64_t row = 0; row < rows && ok; row++) {
    tslab_reader_label label;
    if (!is_somebodys(tslab_reader_label_get(&reader, row, &label), &ok)) continue;
    printf("%s{\"label\": \"%s\", \"limits_refused\": %" PRIu64 ", ", comma, label.text,
           label.limits_refused);
    figures_print(&label.all);
    fputs("}", stdout);
    comma = ", ";
  }
  fputs("]", stdout);
  return ok;
}

static bool classes_print(uint64_t rows) {
  fputs(", \"classes\": [", stdout);
  for (uint64_t row = 0; row < rows; row++) {
    tslab_reader_class of;
    if (!is_ok(tslab_reader_class_get(&reader, row, &of))) return false;
    printf("%s{\"bytes\": %" PRIu64 ", \"slab_bytes\": %" PRIu64 ", \"capacity\": %" PRIu64
           ", \"live\": %" PRIu64 ", \"out\": %" PRIu64 ", \"hot\": %" PRIu64
           ", \"slabs\": %" PRIu64 ", \"opened\": %" PRIu64 ", \"recycled\": %" PRIu64
           ", \"allocations\": %" PRIu64 ", \"refills\": %" PRIu64 ", \"returned\": %" PRIu64
           ", \"purged_bytes\": %" PRIu64 ", \"unsettled\": %s}",
           row == 0 ? "" : ", ", of.bytes, of.slab_bytes, of.capacity, of.live, of.out, of.hot,
           of.slabs, of.opened, of.recycled, of.allocations, of.refills, of.returned,
           of.purged_bytes, of.unsettled ? "true" : "false");
  }
  fputs("]}\n", stdout);
  return true;
}

int main(int argc, char **argv) {
  uint64_t epochs, labels, classes;
  char *end;
  if (argc != 2) return 2;
  long pid = strtol(argv[1], &end, 10);
  if (!is_ok(*end == '\0' ? tslab_reader_open(&reader, pid)
                          : tslab_reader_open_path(&reader, argv[1])))
    return 1;
  bool ok = is_ok(tslab_reader_rows(&reader, "epochs", &epochs)) &&
            is_ok(tslab_reader_rows(&reader, "labels", &labels)) &&
            is_ok(tslab_reader_rows(&reader, "classes", &classes)) && totals_print() &&
            epochs_print(epochs) && labels_print(labels) && classes_print(classes);
  tslab_reader_close(&reader);
  return ok ? 0 : 1;
}
