#include "observe/leaks.h"

#include <string.h>

#include "base/warn.h"
#include "epoch/inspect.h"
#include "os/os.h"
#include "state/epoch.h"
#include "state/label.h"

// What closed epochs of one label left behind.
struct leak {
  size_t epochs;
  uint64_t closed_ms;  // the first of them
  struct tsl_survivors survivors;
  bool shares;                  // one that shares is open: nobody knows whose the objects are
  struct tsl_survivors shared;  // in the shared one
};

static struct leak leaks[TSL_MOST_LABELS];  // by label; written by the thread that reports

static bool is_closed(const struct tsl_epoch *epoch) {
  return tsl_epoch_state(tsl_load_relaxed(&epoch->word)) == TSL_EPOCH_CLOSED;
}

static bool is_sharing(uint32_t slot) {
  uint32_t place = tsl_epoch_place(slot);
  return place != slot && tsl_epoch_is_shared(tsl_epoch_at(place));
}

static int leaks_add_epoch(tslab_epoch id, void *unused) {
  (void)unused;
  uint32_t slot = tsl_epoch_slot(id);
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  struct leak *leak = &leaks[epoch->label];
  leak->shares |= is_sharing(slot);
  if (!is_closed(epoch)) return 0;
  uint64_t closed_ms = tsl_load_relaxed(&epoch->closed_ms);
  if (leak->epochs == 0 || closed_ms < leak->closed_ms) leak->closed_ms = closed_ms;
  leak->epochs++;
  return 0;
}

static void leaks_add_live(uint32_t slot, const struct tsl_survivors *live, void *unused) {
  (void)unused;
  const struct tsl_epoch *epoch = tsl_epoch_at(slot);
  if (!is_closed(epoch) && !tsl_epoch_is_shared(epoch)) return;
  struct leak *leak = &leaks[epoch->label];
  struct tsl_survivors *sum = tsl_epoch_is_shared(epoch) ? &leak->shared : &leak->survivors;
  sum->objects += live->objects;
  sum->bytes += live->bytes;
}

static bool report_closed(const char *label, const struct leak *leak) {
  if (leak->epochs == 0 || leak->survivors.objects == 0) return false;
  uint64_t age_ms = tsl_os_now_ms() - leak->closed_ms;
  tsl_warn("leak: \"%s\": %zu objects, %zu bytes; %zu epochs were closed, the first %zu ms ago",
           label, leak->survivors.objects, leak->survivors.bytes, leak->epochs, (size_t)age_ms);
  return true;
}

static bool report_shared(const char *label, const struct leak *leak) {
  if (leak->shares || leak->shared.objects == 0) return false;
  tsl_warn("leak: \"%s\": %zu objects, %zu bytes outlived epochs that shared their label's memory",
           label, leak->shared.objects, leak->shared.bytes);
  return true;
}

size_t tsl_leaks_report(void) {
  size_t count = 0;
  memset(leaks, 0, sizeof leaks);
  tsl_inspect_epochs(leaks_add_epoch, NULL);
  tsl_inspect_live(leaks_add_live, NULL);
  for (uint32_t label = 0; label < TSL_MOST_LABELS; label++) {
    bool closed = report_closed(tsl_label_text(label), &leaks[label]);
    bool shared = report_shared(tsl_label_text(label), &leaks[label]);
    count += closed || shared;
  }
  return count;
}
