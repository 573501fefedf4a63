#include "tslab.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "epochs.h"

static char told[1 << 14];
static size_t told_bytes;

static void tell(const char *text, size_t length, void *context) {
  CHECK(context == told);
  CHECK(told_bytes + length < sizeof told);
  memcpy(told + told_bytes, text, length);
  told_bytes += length;
}

static const char *json(void) {
  told_bytes = 0;
  tslab_stats_json(tell, told);
  told[told_bytes] = '\0';
  return told;
}

static void sizes_are_checked(void) {
  tslab_stats stats;
  const size_t wrong[] = {0, 1, sizeof stats - 1, sizeof stats + 1, SIZE_MAX};
  for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    stats.size = wrong[i];
    CHECK_EQ(tslab_stats_get(&stats), EINVAL);
  }
  stats.size = sizeof stats;
  CHECK_EQ(tslab_stats_get(&stats), 0);
  CHECK_EQ(stats.size, sizeof stats);
}

static void blocks_are_counted(void) {
  tslab_stats stats = {.size = sizeof stats};
  void *block = tslab_malloc(100);
  CHECK_EQ(tslab_stats_get(&stats), 0);
  CHECK_EQ(stats.live_objects, 1);
  CHECK_EQ(stats.live_bytes, tslab_good_size(100));
  tslab_free(block);
}

static void without_epochs_the_list_is_empty(void) {
  CHECK(strncmp(json(), "{\"version\":\"" TSLAB_VERSION "\",\"live_objects\":0,", 30) == 0);
  CHECK(strstr(told, ",\"epochs\":[]}") != NULL);
}

static void epochs_are_told_with_their_labels(void) {
  tslab_epoch epoch = tslab_epoch_open("a \"b\" \\ \n \xc3\xbc", NULL);
  epochs_alloc(epoch, 100);
  CHECK(strstr(json(), "\"label\":\"a \\u0022b\\u0022 \\u005c \\u000a \xc3\xbc\"") != NULL);
  CHECK(strstr(told, "\"state\":\"open\"") != NULL);
  CHECK(strstr(told, "\"live_objects\":1,") != NULL);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 1);
  tslab_epoch second = epochs_open();
  CHECK(strstr(json(), "\"state\":\"closed\"") != NULL);
  CHECK(strstr(told, "},{") != NULL);
  CHECK_EQ(tslab_epoch_close(second).error, 0);
}

int main(void) {
  RUN(sizes_are_checked);
  RUN(blocks_are_counted);
  RUN(without_epochs_the_list_is_empty);
  RUN(epochs_are_told_with_their_labels);
  return test_status();
}
