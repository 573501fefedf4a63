// bets: labels whose epochs their objects outlive, as the history tells it.
#pragma once

#include <string.h>

#include "epoch/regulars.h"
#include "state/epoch.h"
#include "state/history.h"
#include "state/label.h"
#include "test.h"

// So many closes with survivors, each of which was freed, as make the next epochs share.
static inline void bets_close_enough(const char *label) {
  struct tsl_closed closed = {.held_bytes = 1 << 23, .pinned_bytes = 1 << 23, .survivors = 1};
  uint32_t number = tsl_label_intern(label);
  for (unsigned i = 0; i <= TSL_HISTORY_FEW; i++) {
    tsl_history_freed(number);
    tsl_history_closed(number, &closed);
  }
}

// The same of a label of which no epoch was released.
static inline void bets_lose(const char *label) {
  bets_close_enough(label);
  CHECK(tsl_history_shares(tsl_label_intern(label)));
}

// The thread has opened so many epochs below the parent that it takes guests.
static inline void bets_come_often(tslab_epoch parent) {
  uint32_t host = tsl_epoch_host_below(tsl_epoch_slot(parent));
  for (unsigned i = 0; host != 0 && i < TSL_REGULARS_OFTEN; i++) tsl_regulars_come(host);
}
