#include "state/history.h"

enum sharing { OWN, SMALL, LOST };

struct tsl_sums tsl_histories[TSL_MOST_LABELS];

static void sum_add(uint64_t *sum,  // NOLINT(readability-non-const-parameter)
                    uint64_t more, unsigned halve) {
  tsl_store_relaxed(sum, (tsl_load_relaxed(sum) + more) >> halve);
}

static bool are_small(const struct tsl_sums *history) {
  uint64_t ended = tsl_load_relaxed(&history->ended);
  uint64_t held = tsl_load_relaxed(&history->held_bytes);
  return ended >= TSL_HISTORY_ENOUGH && held <= ended * TSL_HISTORY_BYTES &&
         tsl_load_relaxed(&history->survivor_bytes) * TSL_HISTORY_SURVIVING <= held &&
         tsl_load_relaxed(&history->lived_ms) <= ended * TSL_HISTORY_LIVED_MS;
}

// Survivors that nobody frees may wait for a release, which needs memory of their own.
static bool have_lost(const struct tsl_sums *history) {
  uint64_t pinned = tsl_load_relaxed(&history->pinned_bytes);
  unsigned enough = pinned >= TSL_HISTORY_BYTES ? TSL_HISTORY_FEW : TSL_HISTORY_ENOUGH;
  return tsl_load_relaxed(&history->ended) >= enough &&
         pinned * TSL_HISTORY_PINNED > tsl_load_relaxed(&history->held_bytes) &&
         tsl_history_are_freed(history, TSL_HISTORY_FREED);
}

static enum sharing sharing_of(const struct tsl_sums *history) {
  if (have_lost(history)) return LOST;
  return are_small(history) ? SMALL : OWN;
}

// An epoch that holds nothing says nothing; the label of all that have none of their own says
// nothing of one of them. A bet that was lost stays lost: epochs that share tell no more of it.
void tsl_history_closed(uint32_t label, const struct tsl_closed *closed) {
  struct tsl_sums *history = &tsl_histories[label];
  uint32_t ended = tsl_load_relaxed(&history->ended) + 1;
  unsigned halve = ended >= TSL_HISTORY_MOST;
  if (closed->held_bytes == 0 || label == TSL_LABEL_OTHER) return;
  sum_add(&history->held_bytes, closed->held_bytes, halve);
  sum_add(&history->pinned_bytes, closed->pinned_bytes, halve);
  sum_add(&history->survivor_bytes, closed->survivor_bytes, halve);
  sum_add(&history->lived_ms, closed->lived_ms, halve);
  sum_add(&history->survivors, closed->survivors, halve);
  if (halve) sum_add(&history->freed, 0, halve);
  tsl_store_relaxed(&history->ended, ended >> halve);
  if (tsl_load_relaxed(&history->shares) != LOST)
    tsl_store_relaxed(&history->shares, sharing_of(history));
}

static void history_forget(struct tsl_sums *history) {
  tsl_store_relaxed(&history->shares, OWN);
  tsl_store_relaxed(&history->ended, 0);
  tsl_store_relaxed(&history->held_bytes, 0);
  tsl_store_relaxed(&history->pinned_bytes, 0);
  tsl_store_relaxed(&history->survivor_bytes, 0);
  tsl_store_relaxed(&history->lived_ms, 0);
  tsl_store_relaxed(&history->survivors, 0);
  tsl_store_relaxed(&history->freed, 0);
  tsl_store_relaxed(&history->lived_long, 0);
}

void tsl_history_shared(uint32_t label, uint64_t lived_ms) {
  struct tsl_sums *history = &tsl_histories[label];
  if (lived_ms <= TSL_HISTORY_LIVED_MS || tsl_load_relaxed(&history->shares) == LOST) return;
  if (tsl_add_relaxed(&history->lived_long, 1) + 1 >= TSL_HISTORY_LONG) history_forget(history);
}

bool tsl_history_released(uint32_t label) {
  struct tsl_sums *history = &tsl_histories[label];
  if (tsl_load_relaxed(&history->released) != 0) return false;
  tsl_store_relaxed(&history->released, 1);
  return true;
}

bool tsl_history_shares(uint32_t label) {
  const struct tsl_sums *history = &tsl_histories[label];
  return tsl_load_relaxed(&history->shares) != OWN && tsl_load_relaxed(&history->released) == 0;
}

bool tsl_history_is_known(uint32_t label) {
  const struct tsl_sums *history = &tsl_histories[label];
  return tsl_load_relaxed(&history->released) != 0 ||
         tsl_load_relaxed(&history->ended) >= TSL_HISTORY_ENOUGH;
}

struct tsl_history tsl_history_of(uint32_t label) {
  const struct tsl_sums *history = &tsl_histories[label];
  return (struct tsl_history){
      .ended = tsl_load_relaxed(&history->ended),
      .released = tsl_load_relaxed(&history->released) != 0,
      .shares = tsl_history_shares(label),
      .held_bytes = tsl_load_relaxed(&history->held_bytes),
      .pinned_bytes = tsl_load_relaxed(&history->pinned_bytes),
      .survivor_bytes = tsl_load_relaxed(&history->survivor_bytes),
      .lived_ms = tsl_load_relaxed(&history->lived_ms),
  };
}
