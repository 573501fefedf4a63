#include "epoch/regulars.h"

#include "state/epoch.h"
#include "state/heap.h"

static uint64_t word_now(uint32_t slot) { return tsl_load_relaxed(&tsl_epoch_at(slot)->word); }

static bool may_go(struct tsl_regular regular) {
  return regular.times < TSL_REGULARS_OFTEN || word_now(regular.host) != regular.word;
}

// Its place; where it has none, that of the one that came longest ago and may go; else
// TSL_HOME_REGULARS.
static unsigned place_for(const struct tsl_regular *regulars, struct tsl_regular came) {
  unsigned to_go = TSL_HOME_REGULARS;
  for (unsigned at = 0; at < TSL_HOME_REGULARS; at++) {
    if (regulars[at].host == came.host && regulars[at].word == came.word) return at;
    if (may_go(regulars[at])) to_go = at;
  }
  return to_go;
}

bool tsl_regulars_come(uint32_t host) {
  const struct tsl_home *home = tsl_heap_current->home;
  if (home == &tsl_home_empty) return false;
  struct tsl_regular *regulars = home->own->regulars, came = {word_now(host), host, 0};
  unsigned at = place_for(regulars, came);
  if (at == TSL_HOME_REGULARS) return false;
  if (regulars[at].host == host && regulars[at].word == came.word) came = regulars[at];
  for (; at != 0; at--) regulars[at] = regulars[at - 1];
  if (came.times < TSL_REGULARS_OFTEN) came.times++;
  regulars[0] = came;
  return came.times == TSL_REGULARS_OFTEN;
}
