// handle: names of objects that can be checked. The object lies behind a stamp that no other object
// ever had; who frees it takes the stamp away. A released epoch takes its id away instead, and who
// gets the memory next has another one.
#include <errno.h>

#include "alloc/malloc.h"
#include "epoch/inspect.h"
#include "os/os.h"
#include "tslab.h"

// Keeps the object aligned as a block is.
struct stamped {
  uint64_t stamp;
  uint64_t reserved;
};

static uint64_t last_number;  // [remote]
static uint64_t secret;       // [remote] written once

// Numbers all different become stamps all different that no program writes by chance: the finaliser
// of SplitMix64 (Steele, Lea, Flood 2014), which is a bijection.
static uint64_t stamp_of(uint64_t number) {
  uint64_t none = 0, seed = tsl_os_random() | 1;
  if (tsl_load_relaxed(&secret) == 0) tsl_cas_relaxed(&secret, &none, seed);
  uint64_t mixed = number ^ tsl_load_relaxed(&secret);
  mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
  return mixed ^ mixed >> 31;
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
  uint64_t stamp = stamp_of(tsl_add_relaxed(&last_number, 1));
  tsl_store_release(&stamped->stamp, stamp);  // pairs: handle
  return (tslab_handle){stamped + 1, epoch, stamp};
}

// The stamp of a handle's object, while its memory is a block of the handle's epoch.
static uint64_t *find_stamp(tslab_handle handle) {
  if (handle.block == NULL) return NULL;
  struct stamped *stamped = (struct stamped *)handle.block - 1;
  if (tsl_inspect_epoch_of(stamped) != handle.epoch) return NULL;
  return &stamped->stamp;
}

void *tslab_handle_get(tslab_handle handle) {
  const uint64_t *stamp = find_stamp(handle);
  if (stamp == NULL || tsl_load_acquire(stamp) != handle.stamp) return NULL;  // pairs: handle
  return handle.block;
}

bool tslab_handle_free(tslab_handle handle) {
  uint64_t *stamp = find_stamp(handle), seen = handle.stamp;
  if (stamp == NULL) return false;
  while (!tsl_cas_acquire(stamp, &seen, 0)) {  // pairs: handle
    if (seen != handle.stamp) return false;
  }
  tsl_fast_free((struct stamped *)handle.block - 1);
  return true;
}
