#include "slab/slab.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/probe.h"
#include "memory/kept.h"
#include "slab/canary.h"
#include "slab/secure.h"

static uintptr_t slab_end(const struct tsl_slab *slab) {
  return tsl_unit_address(tsl_slab_unit(slab)) + tsl_sizeclasses[slab->class].slab_bytes;
}

uint32_t tsl_slab_refaults;

// Clears the bytes that the canaries of earlier blocks used.
static void granules_clear(const struct tsl_slab *slab) {
  if (!TSL_SECURE) return;
  uintptr_t start = tsl_unit_address(tsl_slab_unit(slab));
  memset(tsl_granule_at(start), 0, (slab_end(slab) - start) >> TSL_GRANULE_LOG2);
}

struct tsl_slab *tsl_slab_open(tsl_unit unit, unsigned class, uint32_t life) {
  struct tsl_slab *slab = tsl_slab_at(unit);
  unsigned capacity = tsl_sizeclasses[class].capacity;
  unsigned words = (capacity + 63) / 64;
  for (unsigned w = 0; w < words; w++) slab->free[w] = tsl_low_bits(capacity - w * 64);
  slab->summary = tsl_low_bits(words);
  slab->out = 0;
  slab->class = (uint8_t)(class);
  slab->listed = false;
  slab->has_given = false;
  slab->purged_out = 0;
  slab->sparse_ms = 0;
  slab->life = life;
  slab->guarded = tsl_secure_guard(slab_end(slab));
  granules_clear(slab);
  tsl_invariant(tsl_slab_valid(slab));
  return slab;
}

void tsl_slab_clear_remote(struct tsl_slab *slab) {
  unsigned words = (tsl_sizeclasses[slab->class].capacity + 63u) / 64;
  for (unsigned w = 0; w < words; w++) tsl_store_relaxed(&slab->remote[w], 0);
  tsl_store_relaxed(&slab->remote_summary, 0);
  tsl_store_relaxed(&slab->left, 0);
  tsl_store_relaxed(&slab->sealed, 0);
}

bool tsl_slab_close(struct tsl_slab *slab) {
  if (slab->guarded && !tsl_secure_unguard(slab_end(slab))) return false;
  if (slab->remote_summary != 0) tsl_slab_clear_remote(slab);
  return true;
}

void tsl_slab_wipe(struct tsl_slab *slab) {
  uintptr_t start = tsl_unit_address(tsl_slab_unit(slab));
  size_t bytes = slab_end(slab) - start;
  tsl_secure_wipe((void *)start, bytes - (slab->guarded ? TSL_GUARD_BYTES : 0));
}

struct tsl_handful tsl_slab_take(struct tsl_slab *slab) {
  unsigned word = tsl_secure_pick(slab->summary);
  struct tsl_handful handful = {slab->free[word], 0};
  if (TSL_SECURE) handful.blocks = UINT64_C(1) << tsl_secure_pick(handful.blocks);
  size_t offset = (size_t)word * 64 * tsl_sizeclasses[slab->class].bytes;
  handful.base = tsl_unit_address(tsl_slab_unit(slab)) + offset;
  tsl_store_relaxed(&slab->free[word], slab->free[word] & ~handful.blocks);
  if (slab->free[word] == 0) slab->summary &= ~(UINT64_C(1) << word);
  slab->out += tsl_bit_count(handful.blocks);
  if (slab->has_given) tsl_add_relaxed(&tsl_slab_refaults, 1);
  slab->has_given = false;
  tsl_store_relaxed(&slab->purged_out, 0);
  tsl_store_relaxed(&slab->sparse_ms, 0);
  tsl_invariant(tsl_slab_valid(slab));
  return handful;
}

typedef uint64_t free_word(const struct tsl_slab *slab, unsigned word);

static uint64_t owner_word(const struct tsl_slab *slab, unsigned word) {
  return tsl_load_relaxed(&slab->free[word]);
}

// What the block's thread wrote to it comes before its free: a late write would make a page that
// has gone back resident again.
static uint64_t tender_word(const struct tsl_slab *slab, unsigned word) {
  uint64_t remote = tsl_load_acquire(&slab->remote[word]);  // pairs: remote-free
  return remote | tsl_load_acquire(&slab->free[word]);      // pairs: tend-free
}

// Whether the blocks [first, last] are free.
static bool blocks_are_free(const struct tsl_slab *slab, unsigned first, unsigned last,
                            free_word *word_of) {
  for (unsigned word = first / 64; word <= last / 64; word++) {
    unsigned from = word == first / 64 ? first % 64 : 0, to = word == last / 64 ? last % 64 : 63;
    uint64_t wanted = tsl_low_bits(to - from + 1) << from;
    if ((word_of(slab, word) & wanted) != wanted) return false;
  }
  return true;
}

// Whether no block that is out lies in the page.
static bool page_is_dead_by(const struct tsl_slab *slab, size_t offset, size_t page_bytes,
                            free_word *word_of) {
  const struct tsl_sizeclass *sizeclass = &tsl_sizeclasses[slab->class];
  unsigned first = (unsigned)(offset / sizeclass->bytes);
  unsigned last = (unsigned)((offset + page_bytes - 1) / sizeclass->bytes);
  unsigned end = sizeclass->capacity - 1u;
  return first > end || blocks_are_free(slab, first, last < end ? last : end, word_of);
}

static bool slab_page_is_dead(const void *slab, size_t offset, size_t page_bytes) {
  return page_is_dead_by(slab, offset, page_bytes, owner_word);
}

static bool page_is_dead_to_tender(const void *slab, size_t offset, size_t page_bytes) {
  return page_is_dead_by(slab, offset, page_bytes, tender_word);
}

static struct tsl_purged slab_purge(struct tsl_slab *slab, uint32_t out,
                                    bool (*is_dead)(const void *, size_t, size_t)) {
  uintptr_t start = tsl_unit_address(tsl_slab_unit(slab));
  size_t bytes = slab_end(slab) - start - (slab->guarded ? TSL_GUARD_BYTES : 0);
  tsl_store_relaxed(&slab->purged_out, out == 0 ? 1 : out);
  struct tsl_purged purged = tsl_purge_dead(start, bytes, is_dead, slab);
  slab->has_given |= purged.bytes != 0;
  return purged;
}

struct tsl_purged tsl_slab_purge(struct tsl_slab *slab, uint32_t out) {
  return slab_purge(slab, out, slab_page_is_dead);
}

struct tsl_purged tsl_slab_purge_tended(struct tsl_slab *slab, uint32_t out) {
  return slab_purge(slab, out, page_is_dead_to_tender);
}

unsigned tsl_slab_free_blocks(const struct tsl_slab *slab) {
  unsigned words = (tsl_sizeclasses[slab->class].capacity + 63u) / 64, blocks = 0;
  for (unsigned w = 0; w < words; w++) blocks += tsl_bit_count(tender_word(slab, w));
  return blocks;
}

const void *tsl_slab_first(const struct tsl_slab *slab, unsigned word, uint64_t blocks) {
  size_t index = word * 64 + tsl_lowest_bit(blocks);
  size_t bytes = tsl_sizeclasses[slab->class].bytes;
  return (void *)(tsl_unit_address(tsl_slab_unit(slab)) + index * bytes);
}

bool tsl_slab_hold(struct tsl_slab *slab) {
  int32_t left = tsl_load_relaxed(&slab->left);
  while (left > 0) {
    if (tsl_cas_acquire(&slab->left, &left, left + 1)) return true;  // pairs: seal
  }
  return false;
}

enum tsl_remote tsl_slab_count_down(struct tsl_slab *slab) {
  int32_t left = tsl_sub_acq_rel(&slab->left, 1);  // pairs: seal
  return left == 1 ? TSL_REMOTE_EMPTY : TSL_REMOTE_DONE;
}

enum tsl_remote tsl_slab_count_down_by(struct tsl_slab *slab, uint32_t count) {
  int32_t left = tsl_sub_acq_rel(&slab->left, (int32_t)count);  // pairs: seal
  return left == (int32_t)count ? TSL_REMOTE_EMPTY : TSL_REMOTE_DONE;
}

// S5, of a free that comes after the seal.
enum tsl_remote tsl_slab_put_sealed(struct tsl_slab *slab, unsigned word, uint64_t bit) {
  if (tsl_load_relaxed(&slab->sealed) == 0) return TSL_REMOTE_TWICE;
  if ((tsl_or_relaxed(&slab->free[word], bit) & bit) != 0) return TSL_REMOTE_TWICE;
  return TSL_REMOTE_LATE;
}

// Returns the blocks that were free already.
static uint64_t slab_collect_word(struct tsl_slab *slab, unsigned word) {
  uint64_t blocks = tsl_exchange_acquire(&slab->remote[word], 0);  // pairs: remote-free
  uint64_t twice = slab->free[word] & blocks;
  slab->out -= tsl_bit_count(blocks & ~twice);
  tsl_store_relaxed(&slab->free[word], slab->free[word] | blocks);
  slab->summary |= UINT64_C(1) << word;
  return twice;
}

const void *tsl_slab_collect(struct tsl_slab *slab) {
  const void *first = NULL;
  uint64_t words = tsl_exchange_acq_rel(&slab->remote_summary, 0);  // pairs: remote-summary
  for (; words != 0; words &= words - 1) {
    unsigned word = tsl_lowest_bit(words);
    uint64_t twice = slab_collect_word(slab, word);
    if (tsl_unlikely(twice != 0)) first = tsl_slab_first(slab, word, twice);
  }
  tsl_invariant(tsl_slab_valid(slab));
  return first;
}

void tsl_slab_recount(struct tsl_slab *slab) {
  unsigned capacity = tsl_sizeclasses[slab->class].capacity;
  slab->out = capacity;
  for (unsigned w = 0; w * 64 < capacity; w++) {
    slab->out -= tsl_bit_count(slab->free[w]);
    if (slab->free[w] != 0) slab->summary |= UINT64_C(1) << w;
  }
}

// Takes the remote bits of one word for good. True when a free set the word's first bit but has not
// set its bit of the summary yet.
static bool slab_seal_word(struct tsl_slab *slab, unsigned word, uint64_t summary,
                           const void **first) {
  uint64_t blocks = tsl_exchange_acq_rel(&slab->remote[word], ~UINT64_C(0));  // pairs: seal
  uint64_t twice = tsl_or_relaxed(&slab->free[word], blocks) & blocks;
  if (tsl_unlikely(twice != 0)) *first = tsl_slab_first(slab, word, twice);
  slab->out -= tsl_bit_count(blocks & ~twice);
  return blocks != 0 && (summary >> word & 1) == 0;
}

// S5, of the sealer.
struct tsl_sealed tsl_slab_seal(struct tsl_slab *slab, uint32_t holds) {
  unsigned words = (tsl_sizeclasses[slab->class].capacity + 63u) / 64;
  tsl_store_relaxed(&slab->sealed, 1);
  uint64_t summary = tsl_exchange_acq_rel(&slab->remote_summary, ~UINT64_C(0));  // pairs: seal
  uint32_t between = summary != 0;  // the freer whose push the closed stack refuses
  const void *twice = NULL;
  for (unsigned w = 0; w < words; w++) between += slab_seal_word(slab, w, summary, &twice);
  uint32_t out = slab->out;
  int32_t left = (int32_t)(out + between + holds);
  bool empty = tsl_add_acq_rel(&slab->left, left) + left == 0;  // pairs: seal
  return (struct tsl_sealed){out, empty, twice};
}

static uintptr_t word_start(const struct tsl_slab *slab, unsigned word) {
  size_t offset = (size_t)word * 64 * tsl_sizeclasses[slab->class].bytes;
  return tsl_unit_address(tsl_slab_unit(slab)) + offset;
}

static const void *word_block(const struct tsl_slab *slab, unsigned word, unsigned bit) {
  return (const void *)(word_start(slab, word) + (size_t)bit * tsl_sizeclasses[slab->class].bytes);
}

bool tsl_slab_keeps(const struct tsl_slab *slab) {
  return tsl_kept_any(word_start(slab, 0), tsl_sizeclasses[slab->class].slab_bytes);
}

static uint64_t word_live(const struct tsl_slab *slab, unsigned word) {
  unsigned capacity = tsl_sizeclasses[slab->class].capacity;
  return ~tsl_load_relaxed(&slab->free[word]) & tsl_low_bits(capacity - word * 64);
}

void tsl_slab_drop_kept(struct tsl_slab *slab) {
  unsigned capacity = tsl_sizeclasses[slab->class].capacity;
  if (!tsl_slab_keeps(slab)) return;
  for (unsigned word = 0; word * 64 < capacity; word++) {
    uint64_t free = ~word_live(slab, word) & tsl_low_bits(capacity - word * 64);
    for (; free != 0; free &= free - 1)
      tsl_kept_clear(word_block(slab, word, tsl_lowest_bit(free)));
  }
}

// A free of a kept block sets its bit in `free` first, and takes the other one off later: where
// this finds neither, the block was not kept.
static uint64_t word_unkept(const struct tsl_slab *slab, unsigned word) {
  uint64_t live = word_live(slab, word), dead = 0;
  for (; live != 0; live &= live - 1) {
    unsigned bit = tsl_lowest_bit(live);
    const void *block = word_block(slab, word, bit);
    if (!tsl_kept_has(block)) dead |= UINT64_C(1) << bit;
    tsl_kept_clear(block);
  }
  return dead;
}

static void word_wipe(const struct tsl_slab *slab, unsigned word, uint64_t dead) {
  for (; TSL_SECURE && dead != 0; dead &= dead - 1) {
    void *block = (void *)word_block(slab, word, tsl_lowest_bit(dead));
    tsl_canary_take(block);  // K2
    tsl_secure_wipe(block, tsl_sizeclasses[slab->class].bytes);
  }
}

uint32_t tsl_slab_spare(struct tsl_slab *slab, uint32_t rank) {
  uint32_t all = 0;
  tsl_store_release(&slab->sealed, rank + 1);  // pairs: kept
  tsl_slab_drop_kept(slab);
  for (unsigned word = 0; word * 64 < tsl_sizeclasses[slab->class].capacity; word++) {
    uint64_t dead = word_unkept(slab, word);
    if (dead != 0) dead &= ~tsl_or_relaxed(&slab->free[word], dead);
    word_wipe(slab, word, dead);
    all += tsl_bit_count(dead);
  }
  return all;
}

uint32_t tsl_slab_live(const struct tsl_slab *slab) {
  uint32_t all = 0;
  for (unsigned word = 0; word * 64 < tsl_sizeclasses[slab->class].capacity; word++)
    all += tsl_bit_count(word_live(slab, word));
  return all;
}

// Remote bits may be set meanwhile, but never of a block that is not out.
bool tsl_slab_valid(const struct tsl_slab *slab) {
  unsigned capacity = tsl_sizeclasses[slab->class].capacity, free = 0;
  for (unsigned w = 0; w * 64 < capacity; w++) {
    uint64_t possible = tsl_low_bits(capacity - w * 64);
    if ((slab->free[w] & ~possible) != 0) return false;
    if ((slab->free[w] != 0) != (slab->summary >> w & 1)) return false;
    free += tsl_bit_count(slab->free[w]);
  }
  return slab->out + free == capacity;
}
