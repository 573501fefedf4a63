// cold: operator new with a hint of how often the object will be used, which compilers emit from a
// profile (`__hot_cold_t`, one byte). Cold objects of the default epoch lie together in the shared
// epoch of label `cold`, so that hot ones have no cold neighbours. In any other epoch the hint
// changes nothing: its objects end with it.
#include <stdint.h>
#include <tslab.h>

#include "base/atomic.h"
#include "override/override.h"

// As the profile's users have it: from here on an object is not cold.
#define HINT_NOT_COLD 128

extern void *_Znwm(size_t bytes);
extern void *_ZnwmRKSt9nothrow_t(size_t bytes, const void *nothrow);
extern void *_ZnwmSt11align_val_t(size_t bytes, size_t alignment);
extern void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t bytes, size_t alignment,
                                                const void *nothrow);

// The shared epoch; TSLAB_DEFAULT before the first cold object. Whoever opens it finds the same.
static tslab_epoch cold_place;

// TSLAB_DEFAULT while another thread is opening it.
static tslab_epoch cold_open(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  tslab_epoch_stats stats = {.size = sizeof stats};
  tslab_epoch opened = tslab_epoch_open("cold", &options);
  bool is_shared = tslab_epoch_get_stats(opened, &stats) == 0 && stats.place != opened;
  tslab_epoch_close(opened);
  if (!is_shared) return TSLAB_DEFAULT;
  tsl_store_relaxed(&cold_place, stats.place);
  return stats.place;
}

// Where an object with this hint lies when it is not to lie where the thread is.
static tslab_epoch cold_epoch(uint8_t hint) {
  if (hint >= HINT_NOT_COLD || tslab_epoch_current() != TSLAB_DEFAULT) return TSLAB_DEFAULT;
  tslab_epoch place = tsl_load_relaxed(&cold_place);
  return place != TSLAB_DEFAULT ? place : cold_open();
}

// NULL: the operator without a hint serves, and does what is to be done without memory.
static void *cold_new(size_t bytes, uint8_t hint) {
  tslab_epoch epoch = cold_epoch(hint);
  return epoch == TSLAB_DEFAULT ? NULL : tslab_epoch_malloc(epoch, bytes);
}

static void *cold_new_aligned(size_t bytes, size_t alignment, uint8_t hint) {
  tslab_epoch epoch = cold_epoch(hint);
  return epoch == TSLAB_DEFAULT ? NULL : tslab_epoch_aligned_alloc(epoch, alignment, bytes);
}

FACE void *_Znwm12__hot_cold_t(size_t bytes, uint8_t hint) {
  void *block = cold_new(bytes, hint);
  return block != NULL ? block : _Znwm(bytes);
}
FACE void *_ZnwmRKSt9nothrow_t12__hot_cold_t(size_t bytes, const void *nothrow, uint8_t hint) {
  void *block = cold_new(bytes, hint);
  return block != NULL ? block : _ZnwmRKSt9nothrow_t(bytes, nothrow);
}
FACE void *_ZnwmSt11align_val_t12__hot_cold_t(size_t bytes, size_t alignment, uint8_t hint) {
  void *block = cold_new_aligned(bytes, alignment, hint);
  return block != NULL ? block : _ZnwmSt11align_val_t(bytes, alignment);
}
FACE void *_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t(size_t bytes, size_t alignment,
                                                            const void *nothrow, uint8_t hint) {
  void *block = cold_new_aligned(bytes, alignment, hint);
  return block != NULL ? block : _ZnwmSt11align_val_tRKSt9nothrow_t(bytes, alignment, nothrow);
}

ALIAS(_Znwm12__hot_cold_t, _Znam12__hot_cold_t);
ALIAS(_ZnwmRKSt9nothrow_t12__hot_cold_t, _ZnamRKSt9nothrow_t12__hot_cold_t);
ALIAS(_ZnwmSt11align_val_t12__hot_cold_t, _ZnamSt11align_val_t12__hot_cold_t);
ALIAS(_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t,
      _ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t);
