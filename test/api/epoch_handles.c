// Handles: a block that was freed, or ended with its epoch, is not found again.
#include "epochs.h"

static void handle_test(void) {
  enum { HANDLES = 500 };
  static tslab_handle handles[HANDLES];
  tslab_handle none = {0};
  CHECK(tslab_handle_get(none) == NULL && !tslab_handle_free(none));
  for (int round = 0; round < 3; round++) {
    tslab_epoch epoch = epoch_open(NULL);
    for (size_t i = 0; i < HANDLES; i++) {
      handles[i] = tslab_handle_alloc(epoch, i * i);
      CHECK(tslab_handle_get(handles[i]) == handles[i].block && handles[i].block != NULL);
      pattern_fill(handles[i].block, i * i, (unsigned)i);
    }
    for (size_t i = 0; i < HANDLES; i += 2) {
      pattern_check(handles[i].block, i * i, (unsigned)i);
      CHECK(tslab_handle_free(handles[i]));
      CHECK(tslab_handle_get(handles[i]) == NULL);
      CHECK(!tslab_handle_free(handles[i]));
    }
    CHECK_EQ(epoch_stats(epoch).live_objects, HANDLES / 2);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
    for (size_t i = 0; i < HANDLES; i++) {
      CHECK(tslab_handle_get(handles[i]) == NULL);
      CHECK(!tslab_handle_free(handles[i]));
    }
  }
  tslab_handle lasting = tslab_handle_alloc(TSLAB_DEFAULT, 100);
  CHECK(tslab_handle_get(lasting) != NULL && tslab_handle_free(lasting));
  CHECK(tslab_handle_get(lasting) == NULL && !tslab_handle_free(lasting));
}

int main(void) {
  handle_test();
  return 0;
}
