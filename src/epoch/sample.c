#include "epoch/sample.h"

#include <string.h>

#include "base/lock.h"
#include "base/options.h"
#include "base/probe.h"
#include "base/random.h"
#include "base/stack.h"
#include "epoch/epoch.h"
#include "epoch/mixed.h"
#include "epoch/rows.h"
#include "memory/record.h"
#include "os/callers.h"
#include "os/os.h"

enum {
  SITE_SLOTS = 2 * TSL_MOST_SITES,
  MOST_BLIND = TSL_MOST_SITES / 2,
  ROW_BITS = 17,           // of a sample's number; the rest counts the forks
  LEAST_MEAN = 4096,       // bytes; below, samples would be most of the memory
  HANDFUL = 64,            // blocks, at most
  WINDOW_MS = 50,          // that points are counted for at least, to know their rate
  CHECKED = 64,            // of so many stacks that are recalled one is unwound all the same
  OUTERMOST = 3,           // frames of the C library below main, which have no frame pointers
  BLIND = UINT32_MAX,      // in place of a site: frame pointers do not tell who called
  ASKED_OFF = UINT32_MAX,  // control: nothing is to be sampled
};
_Static_assert(TSL_MOST_SAMPLES < 1 << ROW_BITS, "a row fits a sample's number");

// What is known of a call stack.
struct known {
  uint64_t hash;
  uint32_t site;  // row in sites, or BLIND; 0: nothing is known
};

uint64_t tsl_sample_mean;
static uint64_t weight_mean;              // [remote] the first mean other than 0
static struct tsl_lock lock;              // sites
static struct known known[SITE_SLOTS];    // [lock:sites] by open addressing
static uint32_t site_count, blind_count;  // [lock:sites]
static uint32_t links[TSL_MOST_SAMPLES];  // [remote] of free rows of samples; row 0 is nobody's
static struct tsl_stack free_rows;        // [remote]
static uint32_t last_row;                 // [remote]
static uint32_t forks;  // [const between forks] how many lie between us and the first

#define PUT(row, field, value) tsl_store_relaxed(&(row)->field, (value))

static uint32_t *link_of(uint32_t row) { return &links[row]; }

// ---- Points

static uint64_t *seed_of(struct tsl_heap *home) {
  uint64_t *seed = &home->store->sample_seed;
  if (tsl_unlikely(*seed == 0)) *seed = tsl_os_random() | 1;
  return seed;
}

static double mean_bytes(void) { return (double)tsl_load_relaxed(&tsl_sample_mean); }

// A point lies that near with probability 1 - exp(-bytes / mean), which is at most bytes / mean:
// most draws end before the logarithm.
static size_t within(struct tsl_heap *home, double mean, size_t bytes) {
  double uniform = tsl_random_uniform(tsl_random_next(seed_of(home)));
  if (uniform * mean >= (double)bytes) return SIZE_MAX;
  double distance = -mean * tsl_log(1 - uniform);
  return distance < (double)bytes ? (size_t)distance : SIZE_MAX;
}

void tsl_sample_follow_times(struct tsl_heap *heap) {
  uint32_t times = heap->home->store->sample_times;
  if (tsl_likely(heap->sample_times == times)) return;
  heap->sample_times = times;
  tsl_mixed_redraw(heap);
  tsl_heap_redraw(heap);
}

size_t tsl_sample_within(struct tsl_heap *heap, size_t bytes) {
  return within(heap->home, mean_bytes() * tsl_sample_times(heap), bytes);
}

// Which of the next `most` blocks holds the next point, from 1 on; 0: none.
static uint32_t next_point(struct tsl_heap *heap, unsigned class, uint32_t most) {
  size_t bytes = tsl_sizeclasses[class].bytes;
  size_t distance = tsl_sample_within(heap, bytes * most);
  return distance == SIZE_MAX ? 0 : (uint32_t)(distance / bytes) + 1;
}

uint32_t tsl_sample_until(struct tsl_heap *heap, unsigned class, uint32_t most) {
  uint64_t bit = UINT64_C(1) << class % 64;
  uint32_t point = class < TSL_CLASSES ? next_point(heap, class, most) : 0;
  heap->store->sampled_hot &= ~bit;
  if (point == 0) return most;
  heap->store->sampled_hot |= bit;
  return point;
}

// A handful that was cut has drawn already. The empty store is never written.
static uint32_t point_in_handful(struct tsl_heap *heap, unsigned class) {
  uint64_t bit = UINT64_C(1) << class % 64;
  if ((heap->store->sampled_cold & bit) == 0) return next_point(heap, class, HANDFUL);
  heap->store->sampled_cold &= ~bit;
  return 1;
}

// How many points stand for one sample, as the last window tells.
static uint32_t times_of(uint32_t points, uint64_t passed_ms) {
  uint64_t wanted = (uint64_t)tsl_option(sample_rate) * passed_ms;
  if (wanted == 0 || points == 0) return 1;
  return (uint32_t)(((uint64_t)points * 1000 + wanted - 1) / wanted);
}

// So many points were reached. What one stands for is known before it is drawn, so that no sum over
// samples is biased.
static void count_points(struct tsl_heap *home, uint32_t points) {
  struct tsl_store *store = home->store;
  uint64_t now_ms = tsl_os_now_ms(), passed_ms = now_ms - store->points_since_ms;
  if (passed_ms >= WINDOW_MS) {
    store->sample_times = times_of(store->points, passed_ms);
    store->points_since_ms = now_ms;
    store->points = 0;
  }
  store->points += points;
}

void tsl_sample_look(struct tsl_heap *home) {
  count_points(home, 0);
  tsl_sample_follow_times(home);
}

// Of the points of large blocks, which hold many, none is left out. For how many the one that was
// reached stands; 0: it is passed over.
static uint32_t choose(struct tsl_heap *home) {
  count_points(home, 1);
  uint32_t times = home->store->sample_times;
  if (times <= 1) return 1;
  return tsl_random_next(seed_of(home)) % times == 0 ? times : 0;
}

// With q = exp(-n / (times * mean)) a block of n bytes holds a drawn point with probability 1 - q,
// and is to be sampled with (1 - q^times) / times, as if all points were drawn and one of `times`
// was taken. The quotient is the mean of q^0, q^1 and so on below q^times, where q^i is the chance
// that no point lies in `i` of `times` parts of the block.
static bool is_taken(struct tsl_heap *home, size_t bytes, uint32_t times) {
  if (times == 1) return true;
  size_t part = bytes * (tsl_random_next(seed_of(home)) % times) / times;
  return within(home, mean_bytes(), part) == SIZE_MAX;
}

// ---- Sites: who allocates what. A stack that the frame pointers tell is compared once with what
// the unwinder says; from then on they are enough to know it. Where the two differ, what the
// unwinder said before is recalled.

struct call {
  uintptr_t frames[TSL_SITE_FRAMES];
  unsigned depth;
};

// FNV-1a, word by word.
static uint64_t hash_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(1099511628211);
  return hash ^ hash >> 29;
}

static uint64_t hash_call(const struct call *call, uint32_t label, unsigned class) {
  uint64_t hash = hash_word(UINT64_C(14695981039346656037), (uint64_t)label << 32 | class);
  for (unsigned i = 0; i < call->depth; i++) hash = hash_word(hash, call->frames[i]);
  return hash | 1;
}

static struct known *find_locked(uint64_t hash) {
  size_t at = hash % SITE_SLOTS;
  while (known[at].hash != 0 && known[at].hash != hash) at = (at + 1) % SITE_SLOTS;
  return &known[at];
}

// BLIND when it is not known, and could not be noted as such.
static uint32_t find_site(uint64_t hash) {
  tsl_lock_acquire(&lock);
  uint32_t site = find_locked(hash)->site;
  if (site == 0 && blind_count == MOST_BLIND) site = BLIND;
  tsl_lock_release(&lock);
  return site;
}

static void set_blind(uint64_t hash) {
  tsl_lock_acquire(&lock);
  struct known *found = find_locked(hash);
  if (found->hash == 0 && blind_count < MOST_BLIND) {
    *found = (struct known){hash, BLIND};
    blind_count++;
  }
  tsl_lock_release(&lock);
}

static void write_site(struct tsl_sites_row *row, const struct call *call, uint32_t label,
                       unsigned class) {
  for (unsigned i = 0; i < TSL_SITE_FRAMES; i++)
    PUT(row, frames[i], i < call->depth ? call->frames[i] : 0);
  PUT(row, label, label);
  PUT(row, class, class);
  tsl_store_release(&row->depth, call->depth);  // pairs: mirror
}

// The site, which may have been there. 0 when there is no room for one more.
static uint32_t add_site(uint64_t hash, const struct call *call, uint32_t label, unsigned class) {
  tsl_lock_acquire(&lock);
  struct known *found = find_locked(hash);
  uint32_t site = found->hash != 0 ? found->site : site_count + 1;
  bool is_new = found->hash == 0;
  struct tsl_sites_row *row = site < TSL_MOST_SITES ? TSL_ROW(sites, site) : NULL;
  if (is_new && row != NULL) {
    write_site(row, call, label, class);
    *found = (struct known){hash, site};
    site_count = site;
  }
  tsl_lock_release(&lock);
  return row == NULL ? 0 : site;
}

static bool agree(const struct call *fast, const struct call *exact) {
  bool is_cut = fast->depth == TSL_SITE_FRAMES;
  if (fast->depth == 0 || fast->depth > exact->depth) return false;
  if (!is_cut && exact->depth - fast->depth > OUTERMOST) return false;
  return memcmp(fast->frames, exact->frames, fast->depth * sizeof *fast->frames) == 0;
}

// The unwinder of a program that is linked statically allocates, with a lock held: what is sampled
// meanwhile has no callers.
TSL_NOINLINE static void unwind(struct tsl_heap *home, struct call *call) {
  call->depth = 0;
  if (home->unwinding) return;
  home->unwinding = true;
  call->depth = tsl_callers_unwind(2, call->frames, TSL_SITE_FRAMES);
  home->unwinding = false;
}

static bool is_checked(struct tsl_heap *home) {
  return tsl_random_next(seed_of(home)) % CHECKED == 0;
}

// The caller's call stack; never part of the caller, so that all walks begin at the same frame.
TSL_NOINLINE static uint32_t site_of(struct tsl_heap *home, uint32_t label, unsigned class) {
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

// ---- Samples

static void count_sample(bool is_lost) {
  struct tsl_process_row *row = TSL_ROW(process, 0);
  if (row != NULL) tsl_add_relaxed(is_lost ? &row->samples_lost : &row->samples_taken, 1);
}

// Bytes that a sample of n bytes stands for, n / (1 - exp(-n / mean)), within 5 %: the first terms
// of the series, which costs nothing when nobody listens to the probe.
static uint64_t sample_weight(size_t bytes) {
  uint64_t mean = tsl_load_relaxed(&weight_mean);
  return bytes < 3 * mean ? mean + bytes / 2 + bytes * bytes / (12 * mean) : bytes;
}

static uint32_t take_row(void) {
  uint32_t row = tsl_stack_pop(&free_rows, link_of);
  if (row != 0) return row;
  row = tsl_add_relaxed(&last_row, 1) + 1;
  return row < TSL_MOST_SAMPLES ? row : 0;
}

static void write_sample(struct tsl_samples_row *row, uint32_t site, uint32_t slot,
                         const void *block, size_t bytes, uint32_t times) {
  uint64_t word = tsl_load_relaxed(&tsl_epoch_at(slot)->word);
  PUT(row, address, (uintptr_t)block);
  PUT(row, bytes, bytes);
  PUT(row, times, times);
  PUT(row, epoch, slot == 0 ? 0 : tsl_epoch_id(slot, word));
  PUT(row, sampled_ms, tsl_os_now_ms());
  tsl_store_release(&row->site, site);  // pairs: mirror
}

// Returns what is to stand with the block; 0 when the sample is lost.
static uint32_t sample_begin(struct tsl_heap *heap, const void *block, size_t bytes, unsigned class,
                             uint32_t times) {
  uint32_t slot = heap->epoch, label = slot == 0 ? 0 : tsl_epoch_at(slot)->label;
  uint32_t site = site_of(heap->home, label, class), number = site == 0 ? 0 : take_row();
  struct tsl_sites_row *origin = number == 0 ? NULL : TSL_ROW(sites, site);
  struct tsl_samples_row *row = origin == NULL ? NULL : TSL_ROW(samples, number);
  if (row == NULL) {
    if (number != 0) tsl_stack_push(&free_rows, number, link_of);
    count_sample(true);
    return 0;
  }
  count_sample(false);
  TSL_PROBE_SAMPLED(block, bytes, times * sample_weight(bytes));
  write_sample(row, site, slot, block, bytes, times);
  tsl_add_relaxed(&origin->allocations, times);
  tsl_add_relaxed(&origin->bytes, times * bytes);
  return forks << ROW_BITS | number;
}

void *tsl_sample_small(struct tsl_heap *heap, unsigned class, uint32_t times) {
  size_t bytes = tsl_sizeclasses[class].bytes;
  count_points(heap->home, times);
  void *block = is_taken(heap->home, bytes, times) ? tsl_mixed_alone(heap, class) : NULL;
  if (block == NULL) return NULL;
  tsl_cell_number number = tsl_mixed_cell_of(block);
  uint32_t sample = sample_begin(heap, block, bytes, class, times);
  tsl_store_relaxed(&tsl_cell_at(number)->sample, sample);
  return block;
}

// When the first block is passed over, those behind it have a point of their own.
void *tsl_sample_handful(struct tsl_heap *heap, unsigned class, uint32_t *place) {
  *place = point_in_handful(heap, class);
  if (*place != 1) return NULL;
  void *block = tsl_sample_small(heap, class, tsl_sample_times(heap));
  if (block != NULL) return block;
  uint32_t behind = next_point(heap, class, HANDFUL - 1);
  *place = behind == 0 ? 0 : behind + 1;
  return NULL;
}

void tsl_sample_large(struct tsl_heap *heap, void *block) {
  struct tsl_span *span = tsl_span_at(tsl_unit_of(block));
  if (within(heap->home, mean_bytes(), span->bytes) == SIZE_MAX) return;
  uint32_t times = choose(heap->home);
  if (times != 0) span->sample = sample_begin(heap, block, span->bytes, TSL_CLASSES, times);
}

// A sample of a time before a fork is nobody's.
static struct tsl_samples_row *row_of(uint32_t sample) {
  if (sample >> ROW_BITS != forks) return NULL;
  return TSL_ROW(samples, sample & ((1u << ROW_BITS) - 1));
}

void tsl_sample_end(uint32_t sample) {
  struct tsl_samples_row *row = row_of(sample);
  if (row == NULL) return;
  struct tsl_sites_row *origin = TSL_ROW(sites, tsl_load_relaxed(&row->site));
  TSL_PROBE_ENDED(tsl_load_relaxed(&row->address));
  if (origin != NULL) tsl_add_relaxed(&origin->frees, tsl_load_relaxed(&row->times));
  PUT(row, site, 0);
  tsl_stack_push(&free_rows, sample & ((1u << ROW_BITS) - 1), link_of);
}

void tsl_sample_move(uint32_t sample, const void *block) {
  struct tsl_samples_row *row = row_of(sample);
  if (row != NULL) PUT(row, address, (uintptr_t)block);
}

// ---- On and off

// The smaller the mean the more there is to do; what somebody else wrote is not trusted.
static uint64_t mean_within_bounds(uint64_t bytes) {
  return bytes != 0 && bytes < LEAST_MEAN ? LEAST_MEAN : bytes;
}

static uint64_t wanted_mean(void) {
  const struct tsl_control_row *control = TSL_ROW(control, 0);
  uint32_t asked = control == NULL ? 0 : tsl_load_relaxed(&control->sample_bytes);
  if (asked == ASKED_OFF) return 0;
  return mean_within_bounds(asked != 0 ? asked : tsl_option(sample_bytes));
}

void tsl_sample_follow(void) {
  uint64_t wanted = TSL_SECURE ? 0 : wanted_mean(), first = 0;
  if (wanted != 0 && !tsl_cas_relaxed(&weight_mean, &first, wanted) && first != 0) wanted = first;
  struct tsl_process_row *row = TSL_ROW(process, 0);
  if (row == NULL) return;
  PUT(row, sample_bytes, wanted);
  PUT(row, weight_bytes, tsl_load_relaxed(&weight_mean));
  if (tsl_load_relaxed(&tsl_sample_mean) != wanted) tsl_store_relaxed(&tsl_sample_mean, wanted);
}

// The tables of the parent's file are not the child's.
void tsl_sample_after_fork(void) {
  tsl_lock_take_over(&lock);
  if (weight_mean == 0) return;
  memset(known, 0, sizeof known);
  site_count = 0;
  blind_count = 0;
  tsl_stack_clear(&free_rows);
  last_row = 0;
  forks = (forks + 1) & (UINT32_MAX >> ROW_BITS);
  tsl_sample_mean = 0;  // until the child has a file
  tsl_callers_after_fork();
}
