#include <string.h>

#include "bets.h"
#include "capture.h"
#include "epoch/open.h"
#include "epoch/scope.h"
#include "epochs.h"
#include "memory/growth.h"
#include "observe/leaks.h"
#include "os_fake.h"
#include "takes.h"
#include "upkeep/pool.h"

static void open_home(void) {
  os_fake.limit_bytes = (size_t)1 << 28;
  CHECK(tsl_region_init());
  tsl_epoch_init();
  tsl_scope_init();
  tsl_heap_current = &tsl_home_take()->heap;
}

static const char *look(size_t expected) {
  capture_start();
  size_t found = tsl_leaks_report();
  const char *said = capture_end();
  CHECK_EQ(found, expected);
  return said;
}

static void closed_epochs_with_objects_are_leaks(void) {
  open_home();
  tslab_epoch leaking = epochs_open(), later = epochs_open();
  tslab_epoch open = epochs_open(), drained = epochs_open();
  for (unsigned i = 0; i < 3; i++) epochs_alloc(leaking, 100);
  epochs_alloc(later, 200);
  epochs_alloc(open, 100);
  epochs_alloc(drained, 100);
  os_fake.now_ms = 5000;
  epochs_close(leaking, 3);
  os_fake.now_ms = 5100;
  epochs_close(later, 1);
  CHECK_EQ(tslab_epoch_release(drained), 0);
  os_fake.now_ms = 5250;
  char wanted[128];
  snprintf(wanted, sizeof wanted,
           "leak: \"test\": 4 objects, %zu bytes; 2 epochs were closed, the first 250 ms ago",
           3 * takes(100) + takes(200));
  const char *said = look(1);
  CHECK(strstr(said, wanted) != NULL);
  CHECK(strchr(said, '\n') == said + strlen(said) - 1);
}

// While one that shares is open, what lives there may be its own.
static void objects_that_outlived_all_that_shared_are_leaks(void) {
  open_home();
  tslab_epoch leaking = EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED);
  tslab_epoch other = EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED);
  for (unsigned i = 0; i < 3; i++) epochs_alloc(leaking, 100);
  epochs_close(leaking, 0);
  CHECK_EQ(strlen(look(0)), 0);
  epochs_close(other, 0);
  char wanted[128];
  snprintf(wanted, sizeof wanted,
           "leak: \"test\": 3 objects, %zu bytes outlived epochs that shared their label's memory",
           3 * takes(100));
  CHECK(strstr(look(1), wanted) != NULL);
}

// It lies with its host.
static void an_open_guest_hides_no_leak(void) {
  open_home();
  tslab_epoch leaking = EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED);
  epochs_alloc(leaking, 100);
  epochs_close(leaking, 0);
  bets_lose("test");
  tslab_epoch_options options = {.size = sizeof options, .parent = epochs_open()};
  bets_come_often(options.parent);
  tslab_epoch guest = tslab_epoch_open("test", &options);
  CHECK_EQ(epochs_stats(guest).place, options.parent);
  look(1);
}

static void without_leaks_nothing_is_said(void) {
  open_home();
  epochs_alloc(epochs_open(), 100);
  CHECK_EQ(strlen(look(0)), 0);
}

int main(void) {
  RUN(closed_epochs_with_objects_are_leaks);
  RUN(objects_that_outlived_all_that_shared_are_leaks);
  RUN(an_open_guest_hides_no_leak);
  RUN(without_leaks_nothing_is_said);
  return test_status();
}
