#include "observe/refusal.h"

#include "base/format.h"
#include "base/options.h"
#include "base/warn.h"
#include "memory/growth.h"
#include "memory/mirror.h"
#include "memory/purge.h"
#include "memory/record.h"
#include "memory/units.h"
#include "os/code.h"
#include "state/epoch.h"
#include "state/heap.h"
#include "state/label.h"
#include "tell/rows.h"
#include "tell/sample.h"

enum { SHOWN = 3, SHOWN_CALLS = 4 };

struct holder {
  size_t bytes;
  unsigned number;  // of a label, a size class or a site
};

static uint32_t reported;                    // [remote]
static size_t label_bytes[TSL_MOST_LABELS];  // written by the thread that reports

// Keeps the SHOWN largest, the largest first.
static void holders_add(struct holder *most, struct holder one) {
  for (unsigned i = 0; i < SHOWN; i++) {
    if (one.bytes <= most[i].bytes) continue;
    struct holder smaller = most[i];
    most[i] = one;
    one = smaller;
  }
}

// What an epoch holds counts for its parent, too: only epochs without one are added.
static void report_labels(void) {
  struct holder most[SHOWN] = {{0, 0}};
  for (uint32_t slot = 1; slot <= tsl_load_relaxed(&tsl_region.last_epoch); slot++) {
    const struct tsl_epoch *epoch = tsl_epoch_at(slot);
    if (tsl_load_relaxed(&epoch->parent) != 0) continue;
    label_bytes[tsl_load_relaxed(&epoch->label)] += tsl_load_relaxed(&epoch->held_bytes);
  }
  for (unsigned label = 0; label < TSL_MOST_LABELS; label++)
    holders_add(most, (struct holder){label_bytes[label], label});
  for (unsigned i = 0; i < SHOWN && most[i].bytes != 0; i++)
    tsl_warn("epochs \"%s\" hold %zu bytes", tsl_label_text(most[i].number), most[i].bytes);
}

static void report_classes(void) {
  size_t bytes[TSL_CLASSES] = {0};
  struct holder most[SHOWN] = {{0, 0}};
  size_t end = tsl_load_acquire(&tsl_region.units);  // pairs: region-grow
  for (size_t unit = tsl_region.first_unit; unit < end; unit++) {
    unsigned code = tsl_entry_code(tsl_load_relaxed(tsl_map_entry((tsl_unit)unit)));
    bool is_slab = code != 0 && !tsl_code_is_cell(code) && tsl_code_class(code) < TSL_CLASSES;
    if (is_slab) bytes[tsl_code_class(code)] += TSL_UNIT_BYTES;
  }
  for (unsigned class = 0; class < TSL_CLASSES; class += 1)
    holders_add(most, (struct holder){bytes[class], class});
  for (unsigned i = 0; i < SHOWN && most[i].bytes != 0; i++)
    tsl_warn("slabs of %zu-byte blocks have %zu bytes",
             (size_t)tsl_sizeclasses[most[i].number].bytes, most[i].bytes);
}

// What the live samples of a site stand for. All its blocks have one size class and one label.
static size_t site_bytes(const struct tsl_sites_row *site) {
  uint64_t samples = tsl_load_relaxed(&site->allocations), frees = tsl_load_relaxed(&site->frees);
  if (samples <= frees) return 0;
  return (samples - frees) * tsl_sample_weight(tsl_load_relaxed(&site->bytes) / samples);
}

// The library's own calls come first, where it does not lie in the program.
static unsigned first_call(const struct tsl_sites_row *row, size_t depth) {
  struct tsl_code own = tsl_code_place();
  unsigned first = 0;
  while (first < depth && tsl_load_relaxed(&row->frames[first]) - own.start < own.end - own.start)
    first++;
  return first;
}

// Addresses alone: what finds their names allocates.
static void report_site(struct holder site) {
  char calls[SHOWN_CALLS * 20] = "";
  const struct tsl_sites_row *row = TSL_ROW_MADE(sites, site.number);
  size_t length = 0, depth = row == NULL ? 0 : tsl_load_relaxed(&row->depth);
  unsigned first = depth == 0 ? 0 : first_call(row, depth);
  for (unsigned i = first; i < first + SHOWN_CALLS && i < depth; i++) {
    void *call = (void *)tsl_load_relaxed(&row->frames[i]);
    length += tsl_format(calls + length, sizeof calls - length, " %p", call);
  }
  if (length != 0) tsl_warn("by samples about %zu bytes were allocated by%s", site.bytes, calls);
}

static void report_sites(void) {
  struct holder most[SHOWN] = {{0, 0}};
  const struct tsl_sites_row *row;
  for (unsigned site = 1; (row = TSL_ROW_MADE(sites, site)) != NULL; site++)
    holders_add(most, (struct holder){site_bytes(row), site});
  for (unsigned i = 0; i < SHOWN && most[i].bytes != 0; i++) report_site(most[i]);
}

void tsl_refusal_report(size_t bytes) {
  if (tsl_option(verbose) == 0 || tsl_exchange_relaxed(&reported, 1) != 0) return;
  tsl_warn(
      "the system has no memory for %zu bytes; frees of other threads were collected, idle "
      "memory was given back, and it was asked again",
      bytes);
  tsl_warn("opened: %zu bytes, of which %zu are idle; %zu large blocks have %zu bytes",
           tsl_units_open() << TSL_UNIT_LOG2, tsl_purge_idle_bytes(),
           (size_t)tsl_load_relaxed(&tsl_counts.large_objects),
           (size_t)tsl_load_relaxed(&tsl_counts.large_bytes));
  report_labels();
  report_classes();
  report_sites();
}
