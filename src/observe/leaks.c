#include "observe/leaks.h"

#include <string.h>

#include "base/warn.h"
#include "epoch/inspect.h"
#include "epoch/label.h"
#include "os/os.h"

// What closed epochs of one label left behind.
struct leak {
  size_t epochs;
  uint64_t closed_ms;  // the first of them
  struct tsl_survivors survivors;
};

static struct leak leaks[TSL_MOST_LABELS];  // by label; who reports

static struct leak *leak_of(uint32_t slot) {
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  bool closed = tsl_epoch_state(tsl_load_relaxed(&epoch->word)) == TSL_EPOCH_CLOSED;
  return closed ? &leaks[epoch->label] : NULL;
}

static int add_epoch(tslab_epoch id, void *unused) {
  (void)unused;
  uint32_t slot = tsl_epoch_slot(id);
  struct leak *leak = leak_of(slot);
  if (leak == NULL) return 0;
  uint64_t closed_ms = tsl_load_relaxed(&tsl_epoch_at(slot)->closed_ms);
  if (leak->epochs == 0 || closed_ms < leak->closed_ms) leak->closed_ms = closed_ms;
  leak->epochs++;
  return 0;
}

static void add_live(uint32_t slot, const struct tsl_survivors *live, void *unused) {
  (void)unused;
  struct leak *leak = leak_of(slot);
  if (leak == NULL) return;
  leak->survivors.objects += live->objects;
  leak->survivors.bytes += live->bytes;
}

static void report(const char *label, const struct leak *leak) {
  uint64_t age_ms = tsl_os_now_ms() - leak->closed_ms;
  tsl_warn("leak: \"%s\": %zu objects, %zu bytes; %zu epochs were closed, the first %zu ms ago",
           label, leak->survivors.objects, leak->survivors.bytes, leak->epochs, (size_t)age_ms);
}

size_t tsl_leaks_report(void) {
  size_t count = 0;
  memset(leaks, 0, sizeof leaks);
  tsl_inspect_epochs(add_epoch, NULL);
  tsl_inspect_live(add_live, NULL);
  for (uint32_t label = 0; label < TSL_MOST_LABELS; label++) {
    const struct leak *leak = &leaks[label];
    if (leak->epochs == 0 || leak->survivors.objects == 0) continue;
    report(tsl_label_text(label), leak);
    count++;
  }
  return count;
}
