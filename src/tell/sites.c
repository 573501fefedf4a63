#include "tell/sites.h"

#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "os/callers.h"
#include "tell/points.h"
#include "tell/rows.h"

enum {
  FEWEST_PLACES = 256,
  MOST_PLACES = 2 * TSL_MOST_SITES,
  MOST_BLIND = TSL_MOST_SITES / 2,
  CHECKED = 64,        // one in so many stacks is unwound although its frame sizes are known
  OUTERMOST = 3,       // frames of the C library below main, which have no frame pointers
  BLIND = UINT32_MAX,  // in place of a site: the frame pointers of this stack are wrong
};

// What is known of a call stack.
struct known {
  uint64_t hash;
  uint32_t site;  // row in sites, or BLIND; 0: nothing is known
};

_Static_assert((MOST_PLACES & (MOST_PLACES - 1)) == 0 && FEWEST_PLACES <= MOST_PLACES,
               "doubling ends at the largest table");
_Static_assert(TSL_MOST_SITES + MOST_BLIND < MOST_PLACES, "a probe ends at an empty place");

static struct tsl_lock sites_lock = {.rank = TSL_RANK_SITES};
// [lock:sites] By open addressing, in a table of `place_count` places that begins at place number
// `place_count`. Behind its end begins the one that is twice as large, so that pages are touched as
// they fill.
static struct known known_stacks[2 * MOST_PLACES] TSL_GUARDED_BY(sites_lock);
static uint32_t place_count TSL_GUARDED_BY(sites_lock) = FEWEST_PLACES;  // [lock:sites]
static uint32_t site_count TSL_GUARDED_BY(sites_lock);                   // [lock:sites]
static uint32_t blind_count TSL_GUARDED_BY(sites_lock);                  // [lock:sites]

struct call {
  uintptr_t frames[TSL_SITE_FRAMES];
  unsigned depth;
};

static uint64_t hash_word(uint64_t hash, uint64_t word) {
  hash = tsl_hash_add(hash, word);
  return hash ^ hash >> 29;
}

static uint64_t hash_call(const struct call *call, uint32_t label, unsigned class) {
  uint64_t hash = hash_word(TSL_HASH_EMPTY, (uint64_t)label << 32 | class);
  for (unsigned i = 0; i < call->depth; i++) hash = hash_word(hash, call->frames[i]);
  return hash | 1;
}

static struct known *find_locked(uint64_t hash) TSL_REQUIRES(sites_lock) {
  struct known *places = &known_stacks[place_count];
  size_t mask = place_count - 1, at = hash >> 1 & mask;  // the lowest bit is set in all (hash_call)
  while (places[at].hash != 0 && places[at].hash != hash) at = (at + 1) & mask;
  return &places[at];
}

// Before a stack is noted: half of the places stay empty as long as there are larger tables. The
// child of a fork clears what lies below the end of the table (tsl_sites_after_fork).
static void make_room(void) TSL_REQUIRES(sites_lock) {
  if (place_count == MOST_PLACES || 2 * (site_count + blind_count) < place_count) return;
  const struct known *before = &known_stacks[place_count], *end = &before[place_count];
  place_count *= 2;
  tsl_compiler_fence();  // pairs: sites
  for (; before != end; before++)
    if (before->hash != 0) *find_locked(before->hash) = *before;
}

// 0 when the stack is not known. BLIND also when it is not known and there is no room to note it as
// BLIND.
static uint32_t find_site(uint64_t hash) {
  tsl_lock_acquire(&sites_lock);
  uint32_t site = find_locked(hash)->site;
  if (site == 0 && blind_count == MOST_BLIND) site = BLIND;
  tsl_lock_release(&sites_lock);
  return site;
}

static void set_blind(uint64_t hash) {
  tsl_lock_acquire(&sites_lock);
  make_room();
  struct known *found = find_locked(hash);
  if (found->hash == 0 && blind_count < MOST_BLIND) {
    blind_count++;
    tsl_compiler_fence();  // pairs: sites
    *found = (struct known){hash, BLIND};
  }
  tsl_lock_release(&sites_lock);
}

static void write_site(struct tsl_sites_row *row, const struct call *call, uint32_t label,
                       unsigned class) {
  for (unsigned i = 0; i < TSL_SITE_FRAMES; i++)
    TSL_PUT(row, frames[i], i < call->depth ? call->frames[i] : 0);
  TSL_PUT(row, label, label);
  TSL_PUT(row, class, class);
  tsl_store_release(&row->depth, call->depth);  // pairs: mirror
}

// The site, which may have been there. 0 when there is no room for one more.
static uint32_t add_site(uint64_t hash, const struct call *call, uint32_t label, unsigned class) {
  tsl_lock_acquire(&sites_lock);
  make_room();
  struct known *found = find_locked(hash);
  uint32_t site = found->hash != 0 ? found->site : site_count + 1;
  bool is_new = found->hash == 0;
  struct tsl_sites_row *row = site < TSL_MOST_SITES ? TSL_ROW_ONCE(sites, site) : NULL;
  if (is_new && row != NULL) {
    write_site(row, call, label, class);
    site_count = site;
    tsl_compiler_fence();  // pairs: sites
    *found = (struct known){hash, site};
  }
  tsl_lock_release(&sites_lock);
  return row == NULL ? 0 : site;
}

static bool agree(const struct call *fast, const struct call *exact) {
  bool is_cut = fast->depth == TSL_SITE_FRAMES;
  if (fast->depth == 0 || fast->depth > exact->depth) return false;
  if (!is_cut && exact->depth - fast->depth > OUTERMOST) return false;
  return memcmp(fast->frames, exact->frames, fast->depth * sizeof *fast->frames) == 0;
}

// The unwinder of a program that is linked statically allocates, with a lock held. Blocks that are
// sampled then get no call stack.
TSL_NOINLINE static void unwind(struct tsl_home *home, struct call *call) {
  call->depth = 0;
  if (home->unwinding) return;
  home->unwinding = true;
  call->depth = tsl_callers_unwind(2, call->frames, TSL_SITE_FRAMES);
  home->unwinding = false;
}

static bool is_checked(struct tsl_home *home) {
  return tsl_random_next(tsl_points_seed(home)) % CHECKED == 0;
}

TSL_NOINLINE uint32_t tsl_site_of(struct tsl_home *home, uint32_t label, unsigned class) {
  const void *frame = __builtin_frame_address(0);
  struct call fast, exact;
  fast.depth = tsl_callers_walk(frame, fast.frames, TSL_SITE_FRAMES);
  uint64_t hash = hash_call(&fast, label, class);
  uint32_t site = fast.depth == 0 ? BLIND : find_site(hash);
  if (tsl_likely(site != 0 && site != BLIND)) return site;
  bool recalls = site == BLIND && !is_checked(home);
  exact.depth = recalls ? tsl_callers_recall(frame, exact.frames, TSL_SITE_FRAMES) : 0;
  if (exact.depth == 0) unwind(home, &exact);
  if (exact.depth == 0) exact = fast;
  if (site == 0 && agree(&fast, &exact)) return add_site(hash, &exact, label, class);
  if (site == 0) set_blind(hash);
  hash = hash_call(&exact, label, class) ^ 2;  // never the hash of a fast one
  return add_site(hash, &exact, label, class);
}

void tsl_sites_after_fork(void) TSL_NOT_ANALYSED {
  tsl_lock_take_over(&sites_lock);
  if (site_count == 0 && blind_count == 0) return;
  tsl_compiler_fence();  // pairs: sites
  memset(&known_stacks[FEWEST_PLACES], 0, (2 * place_count - FEWEST_PLACES) * sizeof *known_stacks);
  place_count = FEWEST_PLACES;
  site_count = 0;
  blind_count = 0;
  tsl_callers_after_fork();
}
