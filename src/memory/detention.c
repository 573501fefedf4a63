#include "memory/detention.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/options.h"
#include "base/stack.h"
#include "memory/huge.h"
#include "memory/record.h"
#include "memory/units.h"
#include "os/os.h"

enum { UNITS_BITS = 32, PRICED_UNITS = (256 << 10) / TSL_UNIT_BYTES };

static uint64_t detained[TSL_DETENTION_PLACES];  // [remote] first unit << 32 | units; 0: empty
static uint32_t next_place;                      // [remote]
static uint64_t spent_ms;                        // [remote]
static struct tsl_stack stuck;                   // places that the system did not open again
static uint64_t stuck_units;                     // [remote]

static size_t units_of(uint64_t word) { return (size_t)(word & UINT32_MAX); }

// Whether a detention is affordable now: each PRICED_UNITS cost `detain_ms` of passed time, since
// their pages are made again. At most TSL_DETENTION_PLACES times as much can be saved up.
static bool detention_pay(size_t units) {
  uint64_t least = tsl_option(detain_ms), most = least * TSL_DETENTION_PLACES;
  if (TSL_SECURE || least == 0) return least != 0;
  uint64_t price = least * tsl_divide_up(units, PRICED_UNITS);
  uint64_t now = tsl_os_now_ms() + most, spent = tsl_load_relaxed(&spent_ms);
  uint64_t next = (spent < now - most ? now - most : spent) + price;
  return next <= now && tsl_cas_relaxed(&spent_ms, &spent, next);
}

static uint32_t *stuck_link(uint32_t unit) { return &tsl_span_at(unit)->cache_next; }

static void let_go(uint64_t word) {
  tsl_unit first = (tsl_unit)(word >> UNITS_BITS);
  size_t bytes = units_of(word) << TSL_UNIT_LOG2;
  if (word == 0) return;
  if (!tsl_os_guard((void *)tsl_unit_address(first), bytes, false))
    return tsl_detention_keep(first, units_of(word));
  if (tsl_span_at(first)->pieces == 0)
    tsl_units_give(first, units_of(word));
  else
    tsl_units_give_moved(first, units_of(word));
}

void tsl_detention_keep(tsl_unit first, size_t units) {
  tsl_store_relaxed(&tsl_span_at(first)->units, (uint32_t)units);
  tsl_add_relaxed(&stuck_units, units);
  tsl_stack_push(&stuck, first, stuck_link);
}

void tsl_detention_retry(void) {
  if (tsl_likely(tsl_load_relaxed(&stuck_units) == 0)) return;
  tsl_unit first = tsl_stack_pop(&stuck, stuck_link);
  if (first == 0) return;
  uint32_t units = tsl_load_relaxed(&tsl_span_at(first)->units);
  tsl_sub_relaxed(&stuck_units, units);
  let_go((uint64_t)first << UNITS_BITS | units);
}

bool tsl_detention_take(tsl_unit first, size_t units) {
  if (units > TSL_DETENTION_MOST_UNITS) return false;
  if (!TSL_SECURE && tsl_huge_is_everywhere()) return false;  // it would be small pages for ever
  if (!detention_pay(units)) return false;
  if (!tsl_os_guard((void *)tsl_unit_address(first), units << TSL_UNIT_LOG2, true)) return false;
  uint32_t place = tsl_add_relaxed(&next_place, 1) % TSL_DETENTION_PLACES;
  uint64_t word = (uint64_t)first << UNITS_BITS | units;
  let_go(tsl_exchange_acq_rel(&detained[place], word));  // pairs: detention
  return true;
}

void tsl_detention_end(void) {
  for (unsigned i = 0; i < TSL_DETENTION_PLACES; i++)
    let_go(tsl_exchange_acq_rel(&detained[i], 0));  // pairs: detention
  tsl_detention_retry();
}

size_t tsl_detention_units(void) {
  size_t units = tsl_load_relaxed(&stuck_units);
  for (unsigned i = 0; i < TSL_DETENTION_PLACES; i++)
    units += units_of(tsl_load_relaxed(&detained[i]));
  return units;
}
