// settings: what a program keeps with an epoch, or changes, while the epoch is there
// (include/tslab.h).
#include <errno.h>

#include "alloc/thread.h"
#include "epoch/open.h"
#include "heap/charge.h"
#include "heap/hold.h"
#include "tslab.h"

// The epoch whose setting a thread writes, which may have no heap. The epoch is held: until the end
// its slot is no other epoch's.
struct setting {
  struct tsl_lease lease;
  struct tsl_epoch *epoch;
};

static int setting_begin(struct setting *setting, tslab_epoch id) {
  *setting = (struct setting){{NULL}, NULL};
  if (id == TSLAB_DEFAULT) return EPERM;
  if (tsl_epoch_find(id) == NULL) return ESTALE;
  if (!tsl_thread_ensure(&setting->lease)) return ENOMEM;
  uint32_t slot = tsl_epoch_slot(id);
  bool is_held = tsl_epoch_hold(slot);
  setting->epoch = is_held ? tsl_epoch_find(id) : NULL;
  if (setting->epoch != NULL) return 0;
  if (is_held) tsl_epoch_drain(slot, 1);
  tsl_thread_leave(&setting->lease);
  return ESTALE;
}

static void setting_end(struct setting *setting, tslab_epoch id) {
  tsl_epoch_drain(tsl_epoch_slot(id), 1);
  tsl_thread_leave(&setting->lease);
}

int tslab_epoch_set_user(tslab_epoch epoch, void *user) {
  struct setting setting;
  int error = setting_begin(&setting, epoch);
  if (error != 0) return error;
  tsl_store_release(&setting.epoch->user, user);  // pairs: epoch-user
  setting_end(&setting, epoch);
  return 0;
}

int tslab_epoch_on_over(tslab_epoch epoch, void (*call)(tslab_epoch, void *), void *context) {
  struct setting setting;
  int error = setting_begin(&setting, epoch);
  if (error != 0) return error;
  if (tsl_epoch_is_shared(setting.epoch)) error = EPERM;
  if (error == 0) setting.epoch->over_context = context;
  if (error == 0) setting.epoch->on_over = call;
  setting_end(&setting, epoch);
  return error;
}

int tslab_epoch_set_limits(tslab_epoch epoch, size_t soft_limit_bytes, size_t hard_limit_bytes) {
  struct setting setting;
  int error = setting_begin(&setting, epoch);
  if (error != 0) return error;
  uint32_t slot = tsl_epoch_slot(epoch);
  error = tsl_epoch_check(epoch);
  if (error == 0 && tsl_epoch_place(slot) != slot) error = ENOTSUP;
  if (error == 0) tsl_epoch_set_limits(slot, soft_limit_bytes, hard_limit_bytes);
  setting_end(&setting, epoch);
  return error;
}

// Reads without holding the epoch: the slot may have gone to another epoch meanwhile, so the id is
// checked again after the read.
void *tslab_epoch_get_user(tslab_epoch epoch) {
  struct tsl_epoch *found = epoch == TSLAB_DEFAULT ? NULL : tsl_epoch_find(epoch);
  void *user = found == NULL ? NULL : tsl_load_acquire(&found->user);  // pairs: epoch-user
  if (epoch == TSLAB_DEFAULT || (found != NULL && tsl_epoch_find(epoch) != NULL)) return user;
  errno = ESTALE;
  return NULL;
}
