#include <stddef.h>

#include "base/options.h"
#include "epochs.h"
#include "os_fake.h"
#include "tslab.h"

enum { BYTES = 100, MIB = 1 << 20 };

static void check_open_refused(const char *label, const tslab_epoch_options *options, int error) {
  errno = 0;
  CHECK(tslab_epoch_open(label, options) == TSLAB_NO_EPOCH);
  CHECK_EQ(errno, error);
}

static void open_takes_labels_of_63_bytes(void) {
  char label[80];
  memset(label, 'x', sizeof label);
  check_open_refused(label, NULL, EINVAL);
  label[TSLAB_LABEL_BYTES] = '\0';
  check_open_refused(label, NULL, EINVAL);
  label[TSLAB_LABEL_BYTES - 1] = '\0';
  tslab_epoch epoch = tslab_epoch_open(label, NULL);
  CHECK(epoch != TSLAB_NO_EPOCH);
  const char *text = epochs_stats(epoch).label;
  CHECK(strcmp(text, label) == 0);
  CHECK(epochs_stats(tslab_epoch_open(label, NULL)).label == text);
  CHECK(strcmp(epochs_stats(tslab_epoch_open("", NULL)).label, "") == 0);
}

static void labels_beyond_the_last_are_other(void) {
  char label[16];
  for (unsigned i = 0; i < 4100; i++) {
    snprintf(label, sizeof label, "%u", i);
    tslab_epoch epoch = tslab_epoch_open(label, NULL);
    CHECK(strcmp(epochs_stats(epoch).label, i < 4094 ? label : "other") == 0);
    epochs_close(epoch, 0);
  }
}

static void options_say_their_size(void) {
  tslab_epoch_options options = {0};
  for (size_t size = 0; size < sizeof(size_t); size++) {
    options.size = size;
    check_open_refused("test", &options, EINVAL);
  }
  options.size = sizeof options + 1;
  check_open_refused("test", &options, EINVAL);
  options.size = sizeof options;
  CHECK(tslab_epoch_open("test", &options) != TSLAB_NO_EPOCH);
}

// An older program's struct ends earlier: what lies behind it is not looked at.
static void options_of_older_programs(void) {
  tslab_epoch parent = epochs_open();
  tslab_epoch_options options;
  memset(&options, 0xff, sizeof options);
  options.size = offsetof(tslab_epoch_options, soft_limit_bytes);
  options.parent = parent;
  tslab_epoch epoch = tslab_epoch_open("old", &options);
  CHECK(epoch != TSLAB_NO_EPOCH);
  CHECK_EQ(epochs_stats(epoch).parent, parent);
  options.size = sizeof options.size;
  epoch = tslab_epoch_open("older", &options);
  CHECK_EQ(epochs_stats(epoch).parent, TSLAB_DEFAULT);
  epochs_alloc(epoch, MIB);
}

static void options_must_make_sense(void) {
  tslab_epoch over = epochs_open(), closed = epochs_open();
  tslab_epoch_options options = {.size = sizeof options};
  epochs_alloc(closed, BYTES);
  epochs_close(over, 0);
  epochs_close(closed, 1);
  options.purge = TSLAB_PURGE_NOW + 1;
  check_open_refused("test", &options, EINVAL);
  options.purge = (enum tslab_purge) - 1;
  check_open_refused("test", &options, EINVAL);
  options.purge = TSLAB_PURGE_NOW;
  options.parent = over;
  check_open_refused("test", &options, ESTALE);
  options.parent = closed;
  check_open_refused("test", &options, ECANCELED);
  options.parent = TSLAB_NO_EPOCH;
  check_open_refused("test", &options, ESTALE);
  options.parent = TSLAB_DEFAULT;
  CHECK(tslab_epoch_open("test", &options) != TSLAB_NO_EPOCH);
}

static void open_without_memory(void) {
  os_fake_fail_all(OS_FAKE_PLACE);
  os_fake_fail_all(OS_FAKE_RESERVE);
  check_open_refused("test", NULL, ENOMEM);
  CHECK_EQ(tslab_epoch_close(1).error, ENOMEM);
  CHECK_EQ(tslab_epoch_release(1), ENOMEM);
  CHECK_REFUSED(tslab_epoch_malloc(TSLAB_DEFAULT, 1), ENOMEM);
  tslab_scope scope;
  CHECK_EQ(tslab_scope_default(&scope), ENOMEM);
  os_fake_recover();
  tslab_epoch first = epochs_open();
  os_fake_fail_all(OS_FAKE_COMMIT);
  errno = 0;
  while (tslab_epoch_open("test", NULL) != TSLAB_NO_EPOCH) continue;
  CHECK_EQ(errno, ENOMEM);
  epochs_close(first, 0);
  tslab_epoch again = epochs_open();
  CHECK(again != first && epochs_is_over(first));
}

static void slots_come_to_an_end(void) {
  tsl_options.reserve = (size_t)32 << 20;
  uint32_t count = 0;
  while (tslab_epoch_open("test", NULL) != TSLAB_NO_EPOCH) count++;
  CHECK_EQ(errno, ENOMEM);
  CHECK_EQ(count, tsl_region.limit_epochs - 1);
  CHECK_EQ(tsl_region.last_epoch, count);
}

static void nesting_has_an_end(void) {
  tslab_epoch root = epochs_open(), parent = root;
  for (unsigned level = 1; level < TSL_EPOCH_MOST_LEVELS; level++)
    parent = EPOCHS_OPEN(.parent = parent);
  tslab_epoch_options options = {.size = sizeof options, .parent = parent};
  check_open_refused("too deep", &options, ELOOP);
  CHECK_EQ(tslab_epoch_release(root), 0);
  CHECK(epochs_is_over(parent));
  epochs_check_all_free();
}

int main(void) {
  RUN(open_takes_labels_of_63_bytes);
  RUN(labels_beyond_the_last_are_other);
  RUN(options_say_their_size);
  RUN(options_of_older_programs);
  RUN(options_must_make_sense);
  RUN(open_without_memory);
  RUN(slots_come_to_an_end);
  RUN(nesting_has_an_end);
  return test_status();
}
