#include "state/history.h"

#include "base/atomic.h"
#include "state/label.h"

// The trial that goes on. Changed as one word.
union trial {
  struct {
    uint16_t number;
    uint8_t ended;     // of its epochs were closed,
    uint8_t passed;    // and of these, passed
    uint32_t last_ms;  // when the last one was closed: the lower half of the time
  };
  uint64_t word;
};

// Sums over the epochs that ended. Their writers do not wait for each other.
struct history {
  uint32_t ended;           // [remote]
  uint32_t lived_long;      // [remote] of those that shared
  uint32_t released;        // [remote] 1: one of them was
  uint32_t shares;          // [remote] what the sums say of the next one
  uint64_t held_bytes;      // [remote]
  uint64_t survivor_bytes;  // [remote]
  uint64_t lived_ms;        // [remote]
  uint64_t trial;           // [remote] union trial
  uint32_t frees_soon;      // [remote] 1: all epochs of the last trial that came to its end passed
};

static struct history histories[TSL_MOST_LABELS];

static void sum_add(uint64_t *sum,  // NOLINT(readability-non-const-parameter)
                    uint64_t more, unsigned halve) {
  tsl_store_relaxed(sum, (tsl_load_relaxed(sum) + more) >> halve);
}

static bool few_survive(uint64_t survivor_bytes, uint64_t held_bytes) {
  return survivor_bytes * TSL_HISTORY_SURVIVING <= held_bytes;
}

static bool history_shares(const struct history *history) {
  uint64_t ended = tsl_load_relaxed(&history->ended);
  uint64_t held = tsl_load_relaxed(&history->held_bytes);
  return ended >= TSL_HISTORY_ENOUGH && held <= ended * TSL_HISTORY_BYTES &&
         tsl_load_relaxed(&history->lived_ms) <= ended * TSL_HISTORY_LIVED_MS &&
         (few_survive(tsl_load_relaxed(&history->survivor_bytes), held) ||
          tsl_load_relaxed(&history->frees_soon) != 0);
}

static bool trial_passed(union trial trial) { return trial.passed == TSL_HISTORY_ENOUGH; }

// Whether each of its epochs has had its time.
static bool trial_is_old(union trial trial, uint32_t now_ms) {
  return trial.ended == TSL_HISTORY_ENOUGH && now_ms - trial.last_ms > TSL_HISTORY_LATE_MS;
}

static union trial trial_next(union trial trial) {
  return (union trial){.number = (uint16_t)(trial.number + 1)};
}

static uint32_t trial_name(union trial trial) { return trial.number + UINT32_C(1); }

// Adds an epoch that was closed. Returns the trial where it has yet to pass, else 0.
static uint32_t trial_add(struct history *history, uint32_t now_ms, bool passes) {
  union trial before = {.word = tsl_load_relaxed(&history->trial)}, after;
  do {
    after = trial_is_old(before, now_ms) ? trial_next(before) : before;
    if (after.ended == TSL_HISTORY_ENOUGH) return 0;
    after.ended++;
    after.passed = (uint8_t)(after.passed + passes);
    after.last_ms = now_ms;
  } while (!tsl_cas_relaxed(&history->trial, &before.word, after.word));
  if (after.number != before.number) tsl_store_relaxed(&history->frees_soon, trial_passed(before));
  if (trial_passed(after)) tsl_store_relaxed(&history->frees_soon, 1);
  return passes ? 0 : trial_name(after);
}

// An epoch that nobody used says nothing; the label of all that have none of their own says nothing
// of one of them.
uint32_t tsl_history_closed(uint32_t label, struct tsl_closed closed) {
  struct history *history = &histories[label];
  uint32_t ended = tsl_load_relaxed(&history->ended) + 1;
  unsigned halve = ended >= TSL_HISTORY_MOST;
  if (closed.held_bytes == 0 || label == TSL_LABEL_OTHER) return 0;
  sum_add(&history->held_bytes, closed.held_bytes, halve);
  sum_add(&history->survivor_bytes, closed.survivor_bytes, halve);
  sum_add(&history->lived_ms, closed.lived_ms, halve);
  tsl_store_relaxed(&history->ended, ended >> halve);
  bool passes = few_survive(closed.survivor_bytes, closed.held_bytes);
  uint32_t trial = trial_add(history, (uint32_t)closed.closed_ms, passes);
  tsl_store_relaxed(&history->shares, history_shares(history));
  return trial;
}

bool tsl_history_over(uint32_t label, uint32_t trial, uint64_t after_ms) {
  struct history *history = &histories[label];
  union trial before = {.word = tsl_load_relaxed(&history->trial)}, after;
  if (after_ms > TSL_HISTORY_LATE_MS) return false;
  do {
    if (trial_name(before) != trial) return false;
    after = before;
    after.passed++;
  } while (!tsl_cas_relaxed(&history->trial, &before.word, after.word));
  if (!trial_passed(after)) return false;
  tsl_store_relaxed(&history->frees_soon, 1);
  tsl_store_relaxed(&history->shares, history_shares(history));
  return true;
}

static void history_forget(struct history *history) {
  union trial trial = {.word = tsl_load_relaxed(&history->trial)};
  tsl_store_relaxed(&history->trial, trial_next(trial).word);
  tsl_store_relaxed(&history->frees_soon, 0);
  tsl_store_relaxed(&history->shares, 0);
  tsl_store_relaxed(&history->ended, 0);
  tsl_store_relaxed(&history->held_bytes, 0);
  tsl_store_relaxed(&history->survivor_bytes, 0);
  tsl_store_relaxed(&history->lived_ms, 0);
  tsl_store_relaxed(&history->lived_long, 0);
}

void tsl_history_shared(uint32_t label, uint64_t lived_ms) {
  struct history *history = &histories[label];
  if (lived_ms <= TSL_HISTORY_LIVED_MS) return;
  if (tsl_add_relaxed(&history->lived_long, 1) + 1 >= TSL_HISTORY_LONG) history_forget(history);
}

bool tsl_history_released(uint32_t label) {
  struct history *history = &histories[label];
  if (tsl_load_relaxed(&history->released) != 0) return false;
  tsl_store_relaxed(&history->released, 1);
  return true;
}

bool tsl_history_shares(uint32_t label) {
  const struct history *history = &histories[label];
  return tsl_load_relaxed(&history->shares) != 0 && tsl_load_relaxed(&history->released) == 0;
}

struct tsl_history tsl_history_of(uint32_t label) {
  const struct history *history = &histories[label];
  return (struct tsl_history){
      .ended = tsl_load_relaxed(&history->ended),
      .released = tsl_load_relaxed(&history->released) != 0,
      .shares = tsl_history_shares(label),
      .held_bytes = tsl_load_relaxed(&history->held_bytes),
      .survivor_bytes = tsl_load_relaxed(&history->survivor_bytes),
      .lived_ms = tsl_load_relaxed(&history->lived_ms),
  };
}
