// epoch_random: a seeded walk over the interface of epochs, by threads that come and go, held
// against a shadow that knows what is open, what lies where, and what must be refused.
//
//   stress_epoch_random [--seed N] [--seconds N] [--operations N] [--threads N]
//
// It runs so many seconds at least, and so many operations.
//
// Some epochs have memory of their own and options, some have none and take over what others left
// warm, and some lie in the memory of their label or of their parent. Of those the shadow knows
// every object, but their figures are their place's, and only closes end them.
//
// Each epoch of the shadow has a gate. Who uses it goes through as one of many, also for as long as
// a scope is open; who asserts exact figures, opens or releases takes it alone. Gates are only ever
// tried, so nobody waits. Closing needs no more than any use: it happens in the middle of others'.
#include <pthread.h>

#include "places.h"

enum {
  DESKS = 16,
  BLOCKS = 200,
  MAILBOXES = 64,
  DEPTH = 5,
  SHIFT_OPERATIONS = 8000,
  SMALL_LOG2 = 12,
  LARGE_LOG2 = 20,
};

struct block {
  struct shadow shadow;
  struct place *place;
  tslab_epoch id, site;  // its epoch, and the one in whose memory it lies
  unsigned long resets;
  bool kept;
};

static struct desk {
  struct block blocks[BLOCKS];
  tslab_scope scopes[DEPTH];
  struct place *inside[DEPTH];
  int depth;
  tslab_deferred call;  // in `call_place`, where this desk has one
  struct place *call_place;
  struct random random;
  pthread_t thread;
} desks[DESKS];

static struct mailbox {
  atomic_bool taken;
  struct block block;
} mailboxes[MAILBOXES];

static const char sharing_label[] = "shares";

static atomic_ulong opens, closes, releases, resets, inspections, refusals, told, spares;
static atomic_ulong cancels, limits_set, overs_wanted, overs_told, names, guests, operations;

static struct arguments {
  uint64_t seed, seconds, operations;
  int threads;
} arguments = {.seconds = 5, .threads = 4};

// Whether the library's answer fits what was true before or is true now.
static void answer_check(const struct place *place, int before, int error) {
  if (error == 0) CHECK_THAT(before == OPEN || before == CLOSING, "state %d", before);
  if (error != 0) atomic_fetch_add(&refusals, 1);
  if (error == ECANCELED || error == ESTALE)
    CHECK_THAT(place->state != OPEN, "error %d, but open", error);
  else
    CHECK_THAT(error == 0 || (error == ENOMEM && is_limited(place)), "error %d", error);
}

static void limit_told(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                       size_t wanted_bytes, void *context) {
  (void)epoch, (void)limit, (void)held_bytes, (void)context;
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  void *block = allocator_malloc(wanted_bytes % 1000);
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  allocator_free(block);
  atomic_fetch_add(&told, 1);
}

static void over_told(tslab_epoch epoch, void *context) {
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  CHECK(context == places);
  stale_check(epoch);
  allocator_free(allocator_malloc(100));
  atomic_fetch_add(&overs_told, 1);
}

static tslab_epoch_options options_choose(struct random *random) {
  static const size_t cells[] = {0, 0, 0, 16 * KIB, 64 * KIB, TSLAB_NO_CELLS};
  tslab_epoch_options options = {
      .size = sizeof options,
      .first_cell_bytes = cells[random_below(random, 6)],
      .threads = (unsigned)random_below(random, 10),
      .purge = (enum tslab_purge)(random_below(random, 8) == 0 ? random_below(random, 3) : 0),
      .on_limit = limit_told,
  };
  bool is_plain = random_below(random, 2) == 0;  // as most programs open them
  if (is_plain) return (tslab_epoch_options){.size = sizeof options};
  if (random_below(random, 4) == 0) options.hard_limit_bytes = 64 * KIB << random_below(random, 6);
  if (random_below(random, 4) == 0) options.soft_limit_bytes = 64 * KIB << random_below(random, 4);
  return options;
}

// It inherits nothing from the epoch that had its slot before.
static void new_check(tslab_epoch id) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  CHECK_EQ(tslab_epoch_get_stats(id, &stats), 0);
  CHECK(stats.held_bytes == 0 && stats.live_objects == 0 && stats.live_bytes == 0);
  CHECK(stats.peak_bytes == 0 && stats.allocated_objects == 0 && stats.allocated_bytes == 0);
  CHECK(stats.threads == 0 && stats.scopes == 0 && stats.children == 0 && stats.closed_ms == 0);
}

// An epoch becomes a guest of a parent to which its thread came several times (enum tslab_place).
static tslab_epoch open_sharing(const struct place *parent, struct random *random,
                                bool *lies_elsewhere) {
  enum { TIMES = 8 };
  tslab_epoch_options options = {.size = sizeof options, .parent = parent->id};
  if (parent == &places[0] && random_below(random, 2) == 0) options.place = TSLAB_PLACE_SHARED;
  for (int i = 0; i < TIMES && parent != &places[0]; i++)
    tslab_epoch_close(tslab_epoch_open(sharing_label, &options));
  tslab_epoch id = tslab_epoch_open(sharing_label, &options);
  tslab_epoch_stats stats = {.size = sizeof stats};
  bool is_known = id != TSLAB_NO_EPOCH && tslab_epoch_get_stats(id, &stats) == 0;
  *lies_elsewhere = is_known && stats.place != id;
  if (*lies_elsewhere) atomic_fetch_add(parent->id == 0 ? &names : &guests, 1);
  return id;
}

static tslab_epoch open_own(const tslab_epoch_options *options) {
  return tslab_epoch_open(options->parent == TSLAB_DEFAULT ? "top" : "below", options);
}

// The place is the caller's alone, and free.
static void open_below(struct place *place, struct place *parent, struct random *random) {
  tslab_epoch_options options = options_choose(random);
  bool shares = random_below(random, 4) == 0, lies_elsewhere = false;
  options.parent = parent->id;
  errno = 0;
  tslab_epoch id = shares ? open_sharing(parent, random, &lies_elsewhere) : open_own(&options);
  if (id == TSLAB_NO_EPOCH) {
    CHECK_THAT(parent->state != OPEN && (errno == ECANCELED || errno == ESTALE), "errno %d", errno);
    return;
  }
  CHECK_NE(id, place->id);
  if (random_below(random, 8) == 0) new_check(id);
  CHECK_EQ(tslab_epoch_set_user(id, place), 0);
  if (random_below(random, 4) == 0) {
    CHECK_EQ(tslab_epoch_on_over(id, over_told, places), 0);
    atomic_fetch_add(&overs_wanted, 1);
  }
  place->id = id;
  place->parent = options.parent;
  place->limited = !shares && options.hard_limit_bytes != 0;
  place->shares = shares;
  place->lies_elsewhere = lies_elsewhere;
  place->live = place->deferred = place->deferred_runs = place->kept = place->spared = 0;
  place->state = OPEN;
  atomic_fetch_add(&opens, 1);
}

static void open_one(struct desk *desk) {
  struct place *place = place_choose(&desk->random), *parent = place_choose(&desk->random);
  if (place == &places[0] || place == parent || !gate_take(&place->gate)) return;
  if (is_drained(place)) {
    over_check(place);
    CHECK_EQ(place->deferred, place->deferred_runs);
    place->state = GONE;
    place->parent = 0;
  }
  if (parent->parent != 0 || random_next(&desk->random) & 1) parent = &places[0];
  if (place->state == GONE && gate_enter(&parent->gate)) {
    if (parent->state != GONE) open_below(place, parent, &desk->random);
    gate_leave(&parent->gate);
  }
  gate_give(&place->gate);
}

static tslab_epoch inside_id(const struct desk *desk) {
  return desk->depth == 0 ? TSLAB_DEFAULT : desk->inside[desk->depth - 1]->id;
}

static void enter(struct desk *desk) {
  struct place *place = place_choose(&desk->random);
  if (desk->depth == DEPTH || !gate_enter(&place->gate)) return;
  int before = place->state;
  int error = tslab_scope_enter(&desk->scopes[desk->depth], place->id);
  answer_check(place, before, error);
  if (error == 0)
    desk->inside[desk->depth++] = place;
  else
    gate_leave(&place->gate);
  CHECK_EQ(tslab_epoch_current(), inside_id(desk));
}

static void leave(struct desk *desk) {
  if (desk->depth == 0) return;
  tslab_scope *scope = &desk->scopes[--desk->depth];
  struct place *place = desk->inside[desk->depth];
  CHECK_EQ(tslab_scope_leave(scope), 0);
  CHECK_EQ(tslab_epoch_current(), inside_id(desk));
  gate_leave(&place->gate);
}

static size_t size_choose(struct random *random) {
  return random_size(random, random_below(random, 16) == 0 ? LARGE_LOG2 : SMALL_LOG2);
}

static void *plain_allocate(struct random *random, size_t size) {
  switch (random_below(random, 5)) {
    case 0: return allocator_calloc(1, size);
    case 1: return allocator_aligned_alloc((size_t)16 << random_below(random, 10), size);
    case 2: return allocator_realloc(NULL, size);
    default: return allocator_malloc(size);
  }
}

static void *explicit_allocate(struct random *random, tslab_epoch id, size_t size) {
  switch (random_below(random, 5)) {
    case 0: return tslab_epoch_calloc(id, 1, size);
    case 1: return tslab_epoch_aligned_alloc(id, (size_t)16 << random_below(random, 10), size);
    case 2: return tslab_epoch_realloc(id, NULL, size);
    default: return tslab_epoch_malloc(id, size);
  }
}

// In the epoch that the thread is in, or in another one by its name. Counted before it is made, so
// that no count is ever too low.
static void make(struct desk *desk, struct block *block) {
  struct random *random = &desk->random;
  bool plain = desk->depth != 0 && random_below(random, 4) != 0;
  struct place *place = plain ? desk->inside[desk->depth - 1] : place_choose(random);
  size_t size = size_choose(random);
  if (!gate_enter(&place->gate)) return;
  int before = plain ? OPEN : place->state;
  atomic_fetch_add(&place->live, 1);
  errno = 0;
  void *made = plain ? plain_allocate(random, size) : explicit_allocate(random, place->id, size);
  answer_check(place, before, made == NULL ? errno : 0);
  if (shadow_take(&block->shadow, made, size, random_next(random))) {
    block->place = place;
    block->id = place->id;
    block->site = tslab_epoch_of(made);
    block->resets = place->resets;
    block->kept = false;
    CHECK(may_lie_in(place, block->site));
  } else {
    CHECK_NE(errno, 0);
    atomic_fetch_sub(&place->live, 1);
  }
  gate_leave(&place->gate);
}

// What is kept has outlived its epoch, or a reset, and counts as long as its epoch goes on. So has
// what a guest allocated outside of epochs, after its host was closed.
static bool outlives(const struct block *block) {
  return block->kept || (block->site == TSLAB_DEFAULT && block->id != TSLAB_DEFAULT);
}

static void outlived_drop(struct block *block) {
  struct place *place = block->place;
  CHECK_EQ(tslab_epoch_of(block->shadow.block), block->site);
  shadow_drop(&block->shadow);
  if (!block->kept) return;
  if (place->id == block->id && place->state != GONE) atomic_fetch_sub(&place->spared, 1);
  atomic_fetch_add(&spares, 1);
}

// False when somebody has its epoch alone, or it ended with its epoch or by a reset.
static bool block_hold(struct block *block) {
  if (block->shadow.block == NULL || !gate_enter(&block->place->gate)) return false;
  bool is_last = block->place->id == block->id && block->resets == block->place->resets;
  if (is_last && block->place->state != GONE) return true;
  if (outlives(block)) outlived_drop(block);
  gate_leave(&block->place->gate);
  block->shadow.block = NULL;
  return false;
}

// The block is kept no more, and its place is held.
static void block_forget(struct block *block) {
  if (block->kept) atomic_fetch_sub(&block->place->kept, 1);
  block->kept = false;
}

static void drop(struct block *block) {
  if (!block_hold(block)) return;
  CHECK_EQ(tslab_epoch_of(block->shadow.block), block->site);
  shadow_drop(&block->shadow);
  block_forget(block);
  atomic_fetch_sub(&block->place->live, 1);
  gate_leave(&block->place->gate);
}

// In an epoch without a parent, which would end what its child's end has spared.
static void keep(struct block *block) {
  if (!block_hold(block)) return;
  struct place *place = block->place;
  bool is_on_top = place != &places[0] && place->parent == 0;
  if (is_on_top && !place->shares) {
    CHECK_EQ(tslab_epoch_keep(block->shadow.block), 0);
    if (!block->kept) atomic_fetch_add(&place->kept, 1);
    block->kept = true;
  }
  gate_leave(&place->gate);
}

// The block lies elsewhere now; what it held is verified, and its place corrected.
static void block_moved(struct block *block, struct place *other, void *moved, size_t size) {
  struct shadow *shadow = &block->shadow, old = *shadow;
  size_t kept = size < old.size ? size : old.size, step = shadow_step(&old);
  old.block = moved;
  for (size_t offset = 0; offset + sizeof(uint64_t) <= kept; offset += step)
    shadow_word_check(&old, offset);
  shadow_take(shadow, moved, size, old.seed + 1);
  tslab_epoch now = tslab_epoch_of(moved);
  if (now == block->site) return;
  CHECK(may_lie_in(other, now));
  block_forget(block);
  atomic_fetch_sub(&block->place->live, 1);
  atomic_fetch_add(&other->live, 1);
  block->place = other;
  block->id = other->id;
  block->site = now;
  block->resets = other->resets;
}

// Plain realloc keeps it in its epoch unless that has ended.
static void resize(struct desk *desk, struct block *block) {
  size_t size = 1 + size_choose(&desk->random);
  if (!block_hold(block)) return;
  struct place *place = block->place;
  shadow_check(&block->shadow);
  void *moved = block->shadow.block;
  bool may_stay = random_next(&desk->random) & 1;
  if (!may_stay || !tslab_resize_in_place(moved, size)) moved = allocator_realloc(moved, size);
  CHECK_THAT(moved != NULL || (errno == ENOMEM && is_limited(place)), "size %zu", size);
  if (moved != NULL) block_moved(block, &places[0], moved, size);
  CHECK(block->place == place || place->state != OPEN || place->shares);
  gate_leave(&place->gate);
}

static void resize_to(struct desk *desk, struct block *block) {
  size_t size = 1 + size_choose(&desk->random);
  struct place *to = place_choose(&desk->random), *place = block->place;
  if (!gate_enter(&to->gate)) return;
  if (block_hold(block)) {
    int before = to->state;
    bool same = to == place;
    shadow_check(&block->shadow);
    if (!same) atomic_fetch_add(&to->live, 1);
    errno = 0;
    void *moved = tslab_epoch_realloc(to->id, block->shadow.block, size);
    int error = moved == NULL ? errno : 0;
    if (moved != block->shadow.block) answer_check(to, before, error);
    if (moved != NULL && moved != block->shadow.block) block_forget(block);
    if (moved != NULL) block_moved(block, to, moved, size);
    if (!same) atomic_fetch_sub(&to->live, 1);
    gate_leave(&place->gate);
  }
  gate_leave(&to->gate);
}

static void deferred_run(void *argument) {
  struct place *place = argument;
  void *block = allocator_malloc(100);
  CHECK(tslab_epoch_of(block) != place->id || is_vague(place));  // it may be inside a guest
  allocator_free(block);
  atomic_fetch_add(&place->deferred_runs, 1);
}

// Sometimes a call that this desk can cancel.
static void defer(struct desk *desk) {
  struct place *place = place_choose(&desk->random);
  bool is_mine = desk->call_place == NULL && (random_next(&desk->random) & 1);
  if (place == &places[0] || !gate_enter(&place->gate)) return;
  int before = place->state;
  atomic_fetch_add(&place->deferred, 1);
  errno = 0;
  if (is_mine) desk->call = tslab_deferred_add(place->id, deferred_run, place);
  int refused = is_mine && desk->call.number == 0 ? errno : 0;
  int error = is_mine ? refused : tslab_epoch_defer(place->id, deferred_run, place);
  answer_check(place, before, error);
  if (error != 0) atomic_fetch_sub(&place->deferred, 1);
  if (error == 0 && is_mine) desk->call_place = place;
  gate_leave(&place->gate);
}

// The call runs once, unless it is cancelled: then it never does. A place may have another epoch by
// then, whose calls it is none of.
static void cancel(struct desk *desk) {
  struct place *place = desk->call_place;
  if (place == NULL || !gate_enter(&place->gate)) return;
  if (tslab_deferred_cancel(desk->call)) {
    CHECK(place->state != GONE && place->id == desk->call.epoch);
    atomic_fetch_sub(&place->deferred, 1);
    atomic_fetch_add(&cancels, 1);
  }
  desk->call_place = NULL;
  gate_leave(&place->gate);
}

// Once it had a hard limit, an epoch counts as limited for good.
static void limits_change(struct desk *desk) {
  struct place *place = place_choose(&desk->random);
  size_t soft = 64 * KIB << random_below(&desk->random, 4);
  size_t hard = random_next(&desk->random) & 1 ? 0 : 64 * KIB << random_below(&desk->random, 6);
  if (place == &places[0] || !gate_enter(&place->gate)) return;
  if (place->shares) return gate_leave(&place->gate);
  int before = place->state;
  if (hard != 0 && before != GONE) place->limited = true;
  answer_check(place, before, tslab_epoch_set_limits(place->id, soft, hard));
  atomic_fetch_add(&limits_set, 1);
  gate_leave(&place->gate);
}

static bool is_inside(const struct desk *desk, const struct place *place) {
  for (int i = 0; i < desk->depth; i++)
    if (desk->inside[i] == place) return true;
  return false;
}

// In the middle of others' work, or alone, and then to the last object. Cleanups must not allocate
// in the epoch, so the closing thread leaves it first.
static void close_one(struct desk *desk, struct place *place) {
  bool alone = gate_take(&place->gate);
  if (!alone && (is_inside(desk, place) || !gate_enter(&place->gate))) return;
  int open = OPEN;
  if (atomic_compare_exchange_strong(&place->state, &open, CLOSING)) {
    bool vague = is_vague(place);
    tslab_survivors left = tslab_epoch_close(place->id);
    CHECK_EQ(left.error, 0);
    CHECK_GE(left.bytes, left.objects * 16);
    if (place->lies_elsewhere) CHECK_EQ(left.objects, 0);
    if (alone && !vague) CHECK_EQ(left.objects, place->live + place->spared);
    if (alone) CHECK_EQ(place->deferred, place->deferred_runs);
    place->state = CLOSED;
    atomic_fetch_add(&closes, 1);
  }
  if (alone)
    gate_give(&place->gate);
  else
    gate_leave(&place->gate);
}

static int block_count(void *block, size_t bytes, void *context) {
  CHECK_EQ(tslab_usable_size(block), bytes);
  ++*(long *)context;
  return 0;
}

static void figures_check(const struct place *place, const tslab_epoch_stats *stats) {
  CHECK_EQ(stats->live_objects, place->live + place->spared);
  CHECK_EQ(stats->scopes, 0);
  CHECK_GE(stats->held_bytes, stats->live_bytes);
  CHECK_GE(stats->peak_bytes, stats->held_bytes);
  CHECK_GE(stats->allocated_objects, stats->live_objects);
  CHECK_GE(stats->allocated_bytes, stats->live_bytes);
}

static void inspect_alone(struct place *place, bool walk) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  long count = 0;
  if (is_vague(place)) return;
  CHECK_EQ(tslab_epoch_get_stats(place->id, &stats), 0);
  CHECK(tslab_epoch_get_user(place->id) == place);
  CHECK_EQ(stats.parent, place->parent);
  CHECK_EQ(stats.state, place->state == OPEN ? TSLAB_OPEN : TSLAB_CLOSED);
  figures_check(place, &stats);
  if (!walk) return;
  CHECK_EQ(tslab_epoch_blocks_each(place->id, block_count, &count), 0);
  CHECK_EQ(count, place->live + place->spared);
  atomic_fetch_add(&inspections, 1);
}

// Its id is refused, unless what the end spared lives on.
static void place_ended(struct place *place) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  long spared = place->kept + place->spared, count = 0;
  if (spared == 0) over_check(place);
  int error = tslab_epoch_get_stats(place->id, &stats);
  CHECK_THAT(error == 0 || (error == ESTALE && spared == 0), "error %d", error);
  CHECK_EQ(stats.live_objects, spared);
  tslab_epoch_blocks_each(place->id, block_count, &count);
  CHECK_EQ(count, spared);
  CHECK_EQ(place->deferred, place->deferred_runs);
  place->state = GONE;
  place->parent = 0;
}

// A closed epoch without objects is kept by its children alone, which may have drained, and by a
// thread that just gives dead pages of it back.
static void release_family(struct place **family, int count) {
  struct place *parent = family[0];
  if (parent->state == GONE || parent->shares) return;
  bool is_empty = parent->state == CLOSED && parent->live == 0 && parent->spared == 0;
  int error = tslab_epoch_release(parent->id);
  CHECK_THAT(error == 0 || (error == ESTALE && is_empty), "error %d", error);
  for (int i = 0; i < count; i++) place_ended(family[i]);
  atomic_fetch_add(&releases, 1);
}

// The parent stays, empty.
static void reset_family(struct place **family, int count) {
  struct place *parent = family[0];
  if (parent->state == GONE || parent->shares) return;
  int error = tslab_epoch_reset(parent->id);
  bool is_open = parent->state == OPEN;
  CHECK_THAT(is_open ? error == 0 : error == ECANCELED || error == ESTALE, "error %d", error);
  if (!is_open) return;
  for (int i = 1; i < count; i++) place_ended(family[i]);
  CHECK_EQ(parent->deferred, parent->deferred_runs);
  parent->live = 0;
  parent->spared += parent->kept;
  parent->kept = 0;
  parent->resets++;
  inspect_alone(parent, true);
  atomic_fetch_add(&resets, 1);
}

static void family_end(struct place *place, void (*end)(struct place **family, int count)) {
  struct place *family[PLACES];
  int count;
  if (family_take(place, family, &count)) end(family, count);
  while (count-- > 0) gate_give(&family[count]->gate);
}

static void inspect(struct desk *desk) {
  struct place *place = place_choose(&desk->random);
  if (place == &places[0] || !gate_take(&place->gate)) return;
  if (is_drained(place))
    over_check(place);
  else if (place->state == OPEN || (place->state == CLOSED && place->live != 0 && !place->shares))
    inspect_alone(place, random_next(&desk->random) & 1);
  gate_give(&place->gate);
}

static void exchange(struct block *block, struct random *random) {
  struct mailbox *mailbox = &mailboxes[random_below(random, MAILBOXES)];
  if (atomic_exchange(&mailbox->taken, true)) return;
  struct block mine = *block;
  *block = mailbox->block;
  mailbox->block = mine;
  atomic_store(&mailbox->taken, false);
}

static void epochs_operation(struct desk *desk, size_t way) {
  struct place *place = &places[1 + random_below(&desk->random, PLACES - 1)];
  if (way < 8) return open_one(desk);
  if (way < 11) return close_one(desk, place);
  if (way < 13) return family_end(place, release_family);
  if (way < 14) return family_end(place, reset_family);
  if (way < 17) return inspect(desk);
  if (way < 19) return defer(desk);
  if (way < 21) return cancel(desk);
  if (way < 22) return limits_change(desk);
  if (way < 33) return enter(desk);
  leave(desk);
}

static void operation(struct desk *desk) {
  struct block *block = &desk->blocks[random_below(&desk->random, BLOCKS)];
  size_t way = random_below(&desk->random, 400);
  if (way < 46) return epochs_operation(desk, way);
  if (block->shadow.block == NULL) return make(desk, block);
  if (way < 80) return resize(desk, block);
  if (way < 110) return resize_to(desk, block);
  if (way < 120) return keep(block);
  if (way < 250) return exchange(block, &desk->random);
  drop(block);
}

// Half of the threads end inside their scopes.
static void *shift_work(void *data) {
  struct desk *desk = data;
  size_t count = random_below(&desk->random, SHIFT_OPERATIONS);
  for (size_t done = 0; done < count; done++) operation(desk);
  atomic_fetch_add(&operations, count);
  if (random_next(&desk->random) & 1)
    while (desk->depth != 0) leave(desk);
  return NULL;
}

// Only once the thread is gone has it left its scopes.
static void shift_end(struct desk *desk) {
  CHECK_EQ(pthread_join(desk->thread, NULL), 0);
  while (desk->depth != 0) gate_leave(&desk->inside[--desk->depth]->gate);
}

static void shift_start(struct desk *desk) {
  CHECK_EQ(pthread_create(&desk->thread, NULL, shift_work, desk), 0);
}

static void all_shifts_run(void) {
  uint64_t end = process_now_ns() + arguments.seconds * 1000000000u;
  for (int i = 0; i < arguments.threads; i++) shift_start(&desks[i]);
  for (int i = 0; process_now_ns() < end || operations < arguments.operations;
       i = (i + 1) % arguments.threads) {
    shift_end(&desks[i]);
    shift_start(&desks[i]);
  }
  for (int i = 0; i < arguments.threads; i++) shift_end(&desks[i]);
}

static int epoch_see(tslab_epoch epoch, void *context) {
  (void)context;
  CHECK_THAT(epoch == shared_one, "epoch 0x%llx is left", (unsigned long long)epoch);
  return 0;
}

static void released_go(void) {
  enum { WAITING = 64 };
  for (int i = 0; i < WAITING; i++) {
    tslab_epoch last = tslab_epoch_open("last", NULL);
    CHECK(tslab_epoch_malloc(last, 1) != NULL);
    CHECK_EQ(tslab_epoch_release(last), 0);
  }
}

// The last ones may come from a thread of the program that allocates later.
static void overs_check(void) {
  for (int i = 0; i < STALE_TRIES && overs_told != overs_wanted; i++) {
    usleep(1000);
    allocator_free(allocator_malloc((size_t)1 << LARGE_LOG2));
  }
  CHECK_EQ(overs_told, overs_wanted);
}

static void end_check(void) {
  for (int i = 0; i < PLACES; i++) CHECK_EQ(places[i].gate.in, 0);
  for (int i = 1; i < PLACES; i++) close_one(&desks[0], &places[i]);
  for (int i = 0; i < arguments.threads; i++)
    for (int block = 0; block < BLOCKS; block++) drop(&desks[i].blocks[block]);
  for (int i = 0; i < MAILBOXES; i++) drop(&mailboxes[i].block);
  for (int i = 0; i < PLACES; i++)
    CHECK_THAT(places[i].live == 0 || places[i].state == GONE, "%d", i);
  if (releases_wait) released_go();
  for (int i = 1; i < PLACES; i++) stale_check(places[i].id);
  if (!releases_wait) tslab_epochs_each(epoch_see, NULL);
  shared_check();
  overs_check();
  check_print("%lu epochs, %lu closed, %lu released, %lu reset, %lu inspected, %lu refusals\n",
              opens, closes, releases, resets, inspections, refusals);
  check_print("%lu limits told, %lu set, %lu blocks spared, %lu calls cancelled, %lu ends told\n",
              told, limits_set, spares, cancels, overs_told);
  check_print("%lu operations, %lu epochs in memory of their label, %lu in that of their parent\n",
              operations, names, guests);
  CHECK(names != 0 && guests != 0);
  CHECK(opens != 0 && closes != 0 && releases != 0 && resets != 0 && inspections != 0 &&
        refusals != 0 && spares != 0 && cancels != 0 && limits_set != 0 && overs_told != 0 &&
        told != 0);
}

static void arguments_read(int count, char **values) {
  arguments.seed = process_now_ns();
  for (int i = 1; i + 1 < count; i += 2) {
    unsigned long long number = strtoull(values[i + 1], NULL, 0);
    if (strcmp(values[i], "--seed") == 0) arguments.seed = number;
    if (strcmp(values[i], "--seconds") == 0) arguments.seconds = number;
    if (strcmp(values[i], "--operations") == 0) arguments.operations = number;
    if (strcmp(values[i], "--threads") == 0) arguments.threads = (int)number;
  }
  CHECK(arguments.threads >= 1 && arguments.threads <= DESKS);
}

// The program counts on the end of what is opened under these two labels, and never on that of the
// third, whose epochs come to share.
static void labels_begin(void) {
  enum { ENOUGH = 64 };
  static const char *const released[] = {"top", "below"};
  for (int i = 0; i < 2; i++) CHECK_EQ(tslab_epoch_release(tslab_epoch_open(released[i], NULL)), 0);
  for (int i = 0; i < ENOUGH; i++) {
    tslab_epoch epoch = tslab_epoch_open(sharing_label, NULL);
    tslab_epoch_stats stats = {.size = sizeof stats};
    CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), 0);
    shared_one = stats.place == epoch ? TSLAB_NO_EPOCH : stats.place;
    tslab_free(tslab_epoch_malloc(epoch, 100));
    tslab_epoch_close(epoch);
  }
  CHECK_NE(shared_one, TSLAB_NO_EPOCH);
}

int main(int count, char **values) {
  char release[16];
  arguments_read(count, values);
  CHECK_EQ(tslab_option_get("release", release, sizeof release), 0);
  releases_wait = strcmp(release, "poison") == 0;
  check_context_set("repeat with --seed %llu", (unsigned long long)arguments.seed);
  struct random random = {arguments.seed};
  for (int i = 0; i < DESKS; i++) desks[i].random.state = random_next(&random);
  places[0].state = OPEN;
  for (int i = 1; i < PLACES; i++) places[i].id = TSLAB_NO_EPOCH;
  labels_begin();
  all_shifts_run();
  end_check();
  return 0;
}
