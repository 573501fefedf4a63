#include "memory/detention.h"

#include "base/atomic.h"
#include "base/options.h"
#include "memory/growth.h"
#include "memory/units.h"
#include "os/os.h"

enum { UNITS_BITS = 32 };

static uint64_t places[TSL_DETENTION_PLACES];  // [remote] first unit << 32 | units; 0: empty
static uint32_t next_place;                    // [remote]
static uint64_t spent_ms;                      // [remote]

static size_t units_of(uint64_t word) { return (size_t)(word & UINT32_MAX); }

// Time pays for each: what was not spent lately is enough for all places, no more.
static bool pay(void) {
  uint64_t price = tsl_option(detain_ms), most = price * TSL_DETENTION_PLACES;
  if (TSL_SECURE || price == 0) return price != 0;
  uint64_t now = tsl_os_now_ms() + most, spent = tsl_load_relaxed(&spent_ms);
  uint64_t next = (spent < now - most ? now - most : spent) + price;
  return next <= now && tsl_cas_relaxed(&spent_ms, &spent, next);
}

// Pages that the system does not open again stay where they are, for ever.
static void let_go(uint64_t word) {
  tsl_unit first = (tsl_unit)(word >> UNITS_BITS);
  if (word == 0) return;
  size_t bytes = units_of(word) << TSL_UNIT_LOG2;
  if (tsl_os_guard((void *)tsl_unit_address(first), bytes, false))
    tsl_units_give(first, units_of(word));
}

bool tsl_detention_take(tsl_unit first, size_t units) {
  if (units > TSL_DETENTION_MOST_UNITS) return false;
  if (!TSL_SECURE && tsl_region_is_huge(first)) return false;  // it would be small pages for ever
  if (!pay()) return false;
  if (!tsl_os_guard((void *)tsl_unit_address(first), units << TSL_UNIT_LOG2, true)) return false;
  uint32_t place = tsl_add_relaxed(&next_place, 1) % TSL_DETENTION_PLACES;
  uint64_t word = (uint64_t)first << UNITS_BITS | units;
  let_go(tsl_exchange_acq_rel(&places[place], word));  // pairs: detention
  return true;
}

void tsl_detention_end(void) {
  for (unsigned i = 0; i < TSL_DETENTION_PLACES; i++)
    let_go(tsl_exchange_acq_rel(&places[i], 0));  // pairs: detention
}

size_t tsl_detention_units(void) {
  size_t units = 0;
  for (unsigned i = 0; i < TSL_DETENTION_PLACES; i++)
    units += units_of(tsl_load_relaxed(&places[i]));
  return units;
}
