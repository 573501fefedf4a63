#include "tslab.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "epochs.h"
#include "os_fake.h"
#include "takes.h"

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
  CHECK_EQ(stats.live_bytes, takes(100));
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

// An element of the list, from the figures of the epoch alone.
static int expect_epoch(tslab_epoch epoch, void *context) {
  static const char *const states[] = {"open", "closed", "released"};
  char *expected = context;
  size_t length = strlen(expected);
  tslab_epoch_stats stats = epochs_stats(epoch);
  snprintf(expected + length, sizeof told - length,
           "%s{\"epoch\":%llu,\"label\":\"%s\",\"state\":\"%s\",\"parent\":%llu,\"place\":%llu,"
           "\"live_objects\":%zu,\"live_bytes\":%zu,\"held_bytes\":%zu,\"age_ms\":%llu,"
           "\"closed_ms\":%llu}",
           length == 0 ? "" : ",", (unsigned long long)epoch, stats.label, states[stats.state],
           (unsigned long long)stats.parent, (unsigned long long)stats.place, stats.live_objects,
           stats.live_bytes, stats.held_bytes, (unsigned long long)stats.age_ms,
           (unsigned long long)stats.closed_ms);
  return 0;
}

static void each_epoch_has_its_own_figures(void) {
  static char expected[sizeof told];
  for (unsigned i = 1; i <= 30; i++) {
    os_fake.now_ms += 1000;
    tslab_epoch parent = epochs_open();
    tslab_epoch epoch = i % 3 == 0 ? EPOCHS_OPEN(.parent = parent) : parent;
    for (unsigned j = 0; j < i; j++) epochs_alloc(epoch, 100 * i * j);
    if (i % 5 == 0) epochs_close(epoch, i);
  }
  CHECK_EQ(tslab_epochs_each(expect_epoch, expected), 0);
  CHECK(strlen(expected) > 4000);
  const char *list = strstr(json(), ",\"epochs\":[");
  CHECK(list != NULL);
  list += strlen(",\"epochs\":[");
  CHECK(strncmp(list, expected, strlen(expected)) == 0);
  CHECK(strcmp(list + strlen(expected), "]}") == 0);
}

int main(void) {
  RUN(sizes_are_checked);
  RUN(blocks_are_counted);
  RUN(without_epochs_the_list_is_empty);
  RUN(epochs_are_told_with_their_labels);
  RUN(each_epoch_has_its_own_figures);
  return test_status();
}
