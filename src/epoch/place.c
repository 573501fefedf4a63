#include "epoch/place.h"

#include <errno.h>

#include "base/options.h"
#include "epoch/open.h"
#include "epoch/regulars.h"
#include "state/epoch.h"
#include "state/history.h"
#include "state/label.h"

enum { BEING_OPENED = 1 };  // no epoch's id

// By label; 0: none yet.
static tslab_epoch shared_epochs[TSL_MOST_LABELS];  // [remote]
static uint32_t was_any;                            // [remote] 1: some label came to share

bool tsl_place_is_shared(tslab_epoch id) {
  const struct tsl_epoch *epoch = tsl_epoch_find(id);
  return epoch != NULL && tsl_epoch_is_shared(epoch);
}

// EAGAIN while another thread opens it.
TSL_NOINLINE static int shared_open(uint32_t label, tslab_epoch *id) {
  tslab_epoch before = 0;
  tsl_store_relaxed(&was_any, 1);
  while (!tsl_cas_acq_rel(&shared_epochs[label], &before, BEING_OPENED)) {  // pairs: shared
    if (before != 0) return EAGAIN;
  }
  int error = tsl_epoch_open_shared(label, id);
  tsl_store_release(&shared_epochs[label], error == 0 ? *id : 0);  // pairs: shared
  return error;
}

// PL2.
TSL_ALWAYS_INLINE int shared_find(uint32_t label, tslab_epoch *id) {
  *id = tsl_load_acquire(&shared_epochs[label]);  // pairs: shared
  return tsl_likely(*id > BEING_OPENED) ? 0 : *id == 0 ? shared_open(label, id) : EAGAIN;
}

static bool has_terms(const tslab_epoch_options *options) {
  bool has_limits = options->soft_limit_bytes != 0 || options->hard_limit_bytes != 0;
  return has_limits || options->on_limit != NULL || options->purge == TSLAB_PURGE_KEEP ||
         options->first_cell_bytes != 0;
}

bool tsl_place_wants_own(const tslab_epoch_options *options) {
  return options->parent != TSLAB_DEFAULT || has_terms(options);
}

static bool label_shares(uint32_t label) {
  return tsl_option(places) == TSL_PLACES_AUTO && tsl_history_shares(label);
}

static bool may_share(const tslab_epoch_options *options) {
  return options->place == TSLAB_PLACE_AUTO && !tsl_place_wants_own(options);
}

static bool is_guest(uint32_t label, const tslab_epoch_options *options) {
  if (options->parent == TSLAB_DEFAULT || has_terms(options)) return false;
  // Of what a guest leaves the host's end alone knows that it is free.
  if (options->purge != TSLAB_PURGE_DECAY) return false;
  if (options->place != TSLAB_PLACE_AUTO || tsl_option(places) != TSL_PLACES_AUTO) return false;
  uint32_t host = tsl_epoch_host_below(tsl_epoch_slot(options->parent));
  return host != 0 && tsl_regulars_come(host) && tsl_history_shares(label);
}

// In the shared epoch of its label; while another thread opens that, in memory of its own.
TSL_ALWAYS_INLINE int open_sharing(uint32_t label, const tslab_epoch_options *options,
                                   tslab_epoch *id) {
  tslab_epoch place;
  int error = shared_find(label, &place);
  if (tsl_unlikely(error == EAGAIN)) return tsl_epoch_open(label, options, id);
  if (tsl_unlikely(error != 0)) return error;
  enum tslab_purge purge = options == NULL ? TSLAB_PURGE_DECAY : options->purge;
  return tsl_epoch_open_sharing(label, tsl_epoch_slot(place), purge, id);
}

int tsl_place_open(uint32_t label, tslab_epoch *id) {
  return label_shares(label) ? open_sharing(label, NULL, id) : tsl_epoch_open(label, NULL, id);
}

int tsl_place_open_with(uint32_t label, const tslab_epoch_options *options, tslab_epoch *id) {
  if (options->place == TSLAB_PLACE_SHARED) return open_sharing(label, options, id);
  if (may_share(options) && label_shares(label)) return open_sharing(label, options, id);
  if (is_guest(label, options)) return tsl_epoch_open_guest(label, options, id);
  return tsl_epoch_open(label, options, id);
}

void tsl_place_after_fork(void) {
  if (tsl_load_relaxed(&was_any) == 0) return;
  for (unsigned label = 0; label < TSL_MOST_LABELS; label++)
    if (tsl_load_relaxed(&shared_epochs[label]) == BEING_OPENED)
      tsl_store_relaxed(&shared_epochs[label], 0);
}
