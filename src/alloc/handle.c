// handle: names of objects that can be checked. In front of each object lies a stamp that no other
// object ever had; the free clears it. A release does not clear stamps, but ends the epoch's id: a
// block that gets the memory later belongs to another id. A reset neither clears stamps nor ends
// the id, but is counted: a stamp is kept together with that count, and means nothing later.
#include <errno.h>

#include "alloc/malloc.h"
#include "epoch/inspect.h"
#include "os/os.h"
#include "state/epoch.h"
#include "tslab.h"

// Keeps the object aligned as a block is.
struct stamped {
  uint64_t stamp;
  uint64_t reserved;
};

static uint64_t last_handle;    // [remote]
static uint64_t handle_secret;  // [remote] written once

// Turns a number into a stamp that a program hardly writes by chance: the finaliser of SplitMix64
// (Steele, Lea, Flood 2014). It is a bijection, so different numbers give different stamps.
static uint64_t stamp_of(uint64_t number) {
  uint64_t none = 0, seed = tsl_os_random() | 1;
  if (tsl_load_relaxed(&handle_secret) == 0) tsl_cas_relaxed(&handle_secret, &none, seed);
  uint64_t mixed = number ^ tsl_load_relaxed(&handle_secret);
  mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
  return mixed ^ mixed >> 31;
}

// The resets of an epoch so far, spread over all bits.
static uint64_t resets_of(tslab_epoch epoch) {
  return tsl_load_relaxed(&tsl_epoch_at(tsl_epoch_slot(epoch))->resets) *
         UINT64_C(0x9e3779b97f4a7c15);
}

tslab_handle tslab_handle_alloc(tslab_epoch epoch, size_t bytes) {
  tslab_handle none = {0};
  size_t total;
  if (__builtin_add_overflow(bytes, sizeof(struct stamped), &total)) {
    errno = ENOMEM;
    return none;
  }
  struct stamped *stamped = tslab_epoch_malloc(epoch, total);
  if (stamped == NULL) return none;
  uint64_t stamp = stamp_of(tsl_add_relaxed(&last_handle, 1));
  tslab_epoch place = tsl_inspect_epoch_of(stamped);
  tsl_store_release(&stamped->stamp, stamp ^ resets_of(place));  // pairs: handle
  return (tslab_handle){stamped + 1, place, stamp};
}

// The stamp of a handle's object, while its memory is a block of the handle's epoch.
static uint64_t *find_stamp(tslab_handle handle) {
  if (handle.block == NULL) return NULL;
  struct stamped *stamped = (struct stamped *)handle.block - 1;
  if (tsl_inspect_epoch_of(stamped) != handle.epoch) return NULL;
  if (tsl_unlikely(tsl_epoch_waits(tsl_epoch_slot(handle.epoch)))) return NULL;  // no access there
  return &stamped->stamp;
}

void *tslab_handle_get(tslab_handle handle) {
  const uint64_t *stamp = find_stamp(handle);
  if (stamp == NULL) return NULL;
  uint64_t kept = handle.stamp ^ resets_of(handle.epoch);
  return tsl_load_acquire(stamp) == kept ? handle.block : NULL;  // pairs: handle
}

bool tslab_handle_free(tslab_handle handle) {
  uint64_t *stamp = find_stamp(handle);
  if (stamp == NULL) return false;
  uint64_t kept = handle.stamp ^ resets_of(handle.epoch), seen = kept;
  while (!tsl_cas_acquire(stamp, &seen, 0)) {  // pairs: handle
    if (seen != kept) return false;
  }
  tsl_fast_free((struct stamped *)handle.block - 1);
  return true;
}
