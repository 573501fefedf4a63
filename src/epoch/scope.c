#include "epoch/scope.h"

#include <errno.h>

#include "base/lock.h"
#include "epoch/large_list.h"
#include "epoch/open.h"
#include "heap/hold.h"
#include "heap/loose.h"
#include "heap/mixed.h"
#include "heap/part.h"
#include "heap/warm.h"
#include "os/os.h"
#include "state/change.h"
#include "state/misuse.h"
#include "state/owner.h"
#include "tell/epochs.h"
#include "tell/heaps.h"
#include "tell/points.h"
#include "tell/sample.h"
#include "tell/watch.h"
#include "upkeep/reports.h"
#include "upkeep/tick.h"

enum {
  UNTOLD_PART = 64,    // at most one in so many of a part's scopes is unreported
  UNTOLD_VISITS = 16,  // or so many, where some are visits
  MOST_LEAVES = 1024,  // scopes, or frees from outside, from one report to the next
  FREES_GROW = 4,  // so many times more of them after each report, where they do not come seldom
  TICK_MS = 50,    // from one tick to the next of a thread that has warm parts
  SELDOM_MS = 10,  // between two reports: the thread leaves few scopes, and reports more often
};

bool tsl_scope_fences;

void tsl_scope_init(void) { tsl_scope_fences = !tsl_os_barrier_init(); }

void tsl_scope_barrier(void) {
  tsl_fence_seq_cst();  // pairs: scope-depth
  if (!tsl_scope_fences) tsl_os_barrier();
}

void tsl_scope_await_frees(const struct tsl_part *part) {
  while (tsl_load_acquire(&part->frees) != 0) {  // pairs: scope-depth
    tsl_lock_waits();                            // F4
    tsl_os_yield();
  }
}

// Before the list is ended, who closes the epoch has yet to walk it, and finds the part there. The
// thread may have allocated large blocks after the release had freed those on the list: they end
// with its part.
bool tsl_scope_end_part(struct tsl_part *part, struct tsl_survivors *survivors) {
  struct tsl_epoch *epoch = tsl_epoch_at(part->heap.epoch);
  if (tsl_load_acquire(&epoch->heaps) != TSL_EPOCH_ENDED) return false;  // pairs: epoch-heaps
  if (!tsl_part_claim_seal(part)) return false;
  uint64_t word = tsl_load_acquire(&epoch->word);  // pairs: epoch-word
  if (tsl_epoch_state(word) == TSL_EPOCH_RELEASED && !tsl_epochs_wait) {
    if (tsl_load_relaxed(&epoch->large_blocks) != 0) tsl_large_list_release(part->heap.epoch);
    tsl_part_release(part);
  } else {
    tsl_part_seal(part, survivors);
  }
  return true;
}

static uint32_t next_pace(struct tsl_part *part, uint64_t now_ms, uint32_t least) {
  bool is_seldom = now_ms - part->left_ms >= SELDOM_MS;
  uint64_t pace = is_seldom ? part->leave_pace / 2 : part->leave_pace * UINT64_C(2);
  part->left_ms = now_ms;
  part->scopes += part->leave_pace;
  if (pace > part->scopes / UNTOLD_PART) pace = part->scopes / UNTOLD_PART;
  if (pace > MOST_LEAVES) pace = MOST_LEAVES;
  if (pace < least && !is_seldom) pace = least;
  return pace == 0 ? 1 : (uint32_t)pace;
}

// Each of its first scopes is told, however fast they come: no look at the clock.
static bool is_part_young(const struct tsl_part *part) {
  return part->leave_pace == 1 && part->scopes < UNTOLD_PART - 1;
}

// A part of which each scope is told looks at no clock here; its thread counts at ticks.
static void follow_points(struct tsl_heap *heap, const struct tsl_part *part) {
  if (!is_part_young(part)) tsl_points_count(heap->home, 0);
  tsl_heap_follow_samples(heap);
}

static void scope_tell(struct tsl_heap *heap, uint32_t least) {
  tsl_assert(tsl_owner_is_me(heap));
  if (tsl_heap_is_home(heap)) return;
  struct tsl_part *part = tsl_part_of(heap);
  tsl_loose_leave(heap);
  if (tsl_report_is_on()) {
    if (least == 1 && is_part_young(part)) {
      part->scopes++;
    } else {
      part->leave_pace = next_pace(part, tsl_os_now_ms(), least);
    }
    tsl_report_left(heap);
    if (least == 1) tsl_watch_look(part);
    if (tsl_watch_waits() && tsl_sample_watch_waits()) tsl_sample_follow();
    if (tsl_points_are_on()) follow_points(heap, part);
  }
  heap->leaves = part->leave_pace;
}

void tsl_scope_tell(struct tsl_heap *heap) { scope_tell(heap, 1); }

int tsl_scope_leave_told(struct tslab_scope *scope) {
  tsl_scope_tell(tsl_heap_current);
  return tsl_scope_leave_quietly(scope, tsl_heap_current);
}

void tsl_scope_tell_visit(struct tsl_heap *heap) { scope_tell(heap, UNTOLD_VISITS); }

static uint32_t next_free_pace(struct tsl_part *part, uint64_t now_ms) {
  bool is_seldom = now_ms - part->freed_ms >= SELDOM_MS;
  uint32_t pace = is_seldom ? part->free_pace / 2 : part->free_pace * FREES_GROW;
  part->freed_ms = now_ms;
  if (pace > MOST_LEAVES) pace = MOST_LEAVES;
  return pace == 0 ? 1 : pace;
}

void tsl_scope_tell_free(struct tsl_part *part) {
  part->free_pace = next_free_pace(part, tsl_os_now_ms());
  part->untold = part->free_pace;
  tsl_busy_begin();
  tsl_loose_leave(&part->heap);
  tsl_busy_end();
  if (tsl_report_is_on()) tsl_report_heap(&part->heap);
}

void tsl_scope_tell_shared(struct tsl_heap *heap) {
  tsl_scope_tell_visit(heap);
  tsl_scope_lower_shared(heap);
}

int tsl_scope_misused(const struct tslab_scope *scope) {
  tsl_misuse_scope(scope);
  return EPERM;
}

// What a part that stays warm was charged for is taken off untold (charge.h).
static void tell_held(uint32_t slot) {
  tsl_report_held(slot, tsl_load_relaxed(&tsl_epoch_at(slot)->held_bytes));
}

// For a part that the close passes over: it has returned, with the survivors that it counted. The
// epoch is held: its seal may let it retire.
static void end_left_part(struct tsl_part *part) {
  struct tsl_survivors ignored = {0};
  uint32_t slot = part->heap.epoch;
  bool is_sealed = tsl_load_relaxed(&part->sealing) != TSL_PART_UNSEALED;
  if (is_sealed || !tsl_epoch_hold(slot)) return;
  if (tsl_scope_end_part(part, &ignored)) {
    tsl_sub_acq_rel(&tsl_epoch_at(slot)->unsealed, 1);  // pairs: unsealed
    tell_held(slot);
  }
  tsl_report_ends(tsl_heap_current->home);
  tsl_epoch_drain(slot, 1);
}

void tsl_scope_leave_ended(struct tsl_heap *heap) { end_left_part(tsl_part_of(heap)); }

static uint32_t shared_bit(uint32_t slot) { return 1u << slot % TSL_HOME_PARTS; }

// A thread of many labels comes to each seldom: the cell that it has at hand there serves the next
// label, where nothing lives in it. Only parts of shared epochs: any other may be being sealed by
// another thread.
static void leave_behind(struct tsl_home *home, uint32_t slot) {
  uint32_t *last = tsl_scope_last_part(home, slot), number = *last, bit = shared_bit(slot);
  if ((home->own->shared_parts & bit) == 0) return;
  home->own->shared_parts &= ~bit;
  *last = 0;
  if (tsl_heap_at(number)->depth == 0) tsl_part_visit_inside(tsl_heap_at(number), tsl_mixed_rest);
}

// The list of a shared epoch has the parts of all threads that ever came: too many to walk.
static uint32_t find_shared(const struct tsl_home *home, uint32_t slot) {
  uint32_t first = tsl_load_acquire(&tsl_epoch_at(slot)->heaps);  // pairs: epoch-heaps
  bool is_first = tsl_epoch_names_heap(first) && tsl_heap_at(first)->home == home;
  return is_first ? first : tsl_part_find_shared(home, slot);
}

static uint32_t remember_shared(struct tsl_home *home, uint32_t slot) {
  uint32_t number = find_shared(home, slot);
  *tsl_scope_last_part(home, slot) = number;
  if (number != 0) home->own->shared_parts |= shared_bit(slot);
  return number;
}

// The thread's heap in an epoch, 0 when it has none yet, TSL_EPOCH_ENDED when it can get none.
static uint32_t find_heap(uint32_t slot, struct tsl_home *home) {
  uint32_t number = *tsl_scope_last_part(home, slot);
  if (tsl_scope_is_part_of(number, slot)) return number;
  leave_behind(home, slot);
  if (tsl_epoch_is_shared(tsl_epoch_at(slot))) return remember_shared(home, slot);
  number = tsl_load_acquire(&tsl_epoch_at(slot)->heaps);  // pairs: epoch-heaps
  while (tsl_epoch_names_heap(number) && tsl_heap_at(number)->home != home)
    number = tsl_load_relaxed(&tsl_part_at(number)->epoch_next);
  if (number != TSL_EPOCH_ENDED) *tsl_scope_last_part(home, slot) = number;
  return number;
}

struct tsl_heap *tsl_scope_heap_slow(uint32_t place) {
  uint32_t number = find_heap(place, tsl_heap_current->home);
  return tsl_epoch_names_heap(number) ? tsl_heap_at(number) : NULL;
}

static void give_back(struct tsl_part *part) {
  tsl_report_sealed(part);
  if (part->heap.cells != 0) return tsl_warm_return(part);
  tsl_part_give(part);
}

static struct tsl_part *take_part(uint32_t slot) {
  struct tsl_home *home = tsl_heap_current->home;
  struct tsl_part *part = tsl_warm_take(home, slot);
  return part != NULL ? part : tsl_part_take(home, slot);
}

// Adds a part to the list of an epoch that the thread holds.
static int list_part(struct tsl_epoch *epoch, struct tsl_part *part) {
  uint32_t head = tsl_load_relaxed(&epoch->heaps);
  do {
    if (head == TSL_EPOCH_ENDED) return ECANCELED;
    tsl_store_relaxed(&part->epoch_next, head);
    tsl_store_relaxed(&part->holds, 2);
  } while (!tsl_cas_release(&epoch->heaps, &head, part->heap.number));  // pairs: epoch-heaps
  return 0;
}

// The epoch is held first: one that nobody holds may retire, and its slot get another one.
static int try_join(tslab_epoch id, uint32_t slot, struct tsl_heap **joined) {
  if (!tsl_epoch_hold(slot)) return ECANCELED;
  int error = tsl_likely(tsl_epoch_is_open(id)) ? 0 : tsl_epoch_check(id);
  struct tsl_part *part = error == 0 ? take_part(slot) : NULL;
  if (error == 0) error = part == NULL ? ENOMEM : list_part(tsl_epoch_at(slot), part);
  if (error == 0) return *joined = &part->heap, 0;
  if (part != NULL) {
    give_back(part);
    tell_held(slot);
  }
  tsl_epoch_drain(slot, 1);
  return error;
}

// A thread whose parts are warm takes no memory, and so passes no refill. Most epochs are joined
// soon after they are opened. What the tick calls may end this one, as other threads may.
static void tick_if_late(struct tsl_home *home, uint32_t slot) {
  uint64_t now_ms = tsl_load_relaxed(&tsl_epoch_at(slot)->opened_ms);
  if (now_ms >= home->told_ms + TICK_MS) tsl_home_tick(home);
}

// Gives the thread a heap in the epoch.
static int join(tslab_epoch id, uint32_t slot, struct tsl_heap **joined) {
  struct tsl_home *home = tsl_heap_current->home;
  bool has_warm = tsl_load_relaxed(&home->own->warm_count) != 0;
  if (has_warm) tsl_report_start();
  struct tsl_change change = tsl_change_begin(home);
  int error = try_join(id, slot, joined);
  bool is_shared = error == 0 && tsl_epoch_is_shared(tsl_epoch_at(slot));
  if (is_shared) tsl_part_share(tsl_part_of(*joined));
  tsl_change_end(change);
  if (has_warm) tick_if_late(home, slot);
  return error;
}

// By the place of the epoch.
static int find_or_join(tslab_epoch id, uint32_t slot, struct tsl_heap **heap) {
  uint32_t number = find_heap(slot, tsl_heap_current->home);
  if (number == TSL_EPOCH_ENDED) return ECANCELED;
  if (number == 0) return join(id, slot, heap);
  // A list that ends meanwhile may lead to that of another epoch.
  if (tsl_load_relaxed(&tsl_heap_at(number)->epoch) != slot) return ECANCELED;
  *heap = tsl_heap_at(number);
  return 0;
}

static enum tsl_epoch_state state_of(uint32_t slot) {
  return tsl_epoch_state(tsl_load_acquire(&tsl_epoch_at(slot)->word));  // pairs: epoch-word
}

// PL3. One that was released is no way up: its guests are about to end.
static uint32_t host_now(uint32_t host) {
  while (host != 0 && state_of(host) == TSL_EPOCH_CLOSED)
    host = tsl_epoch_host_below(tsl_load_relaxed(&tsl_epoch_at(host)->parent));
  return host;
}

static int host_error(uint32_t host) {
  enum tsl_epoch_state state = state_of(host);
  if (state == TSL_EPOCH_OPEN) return 0;
  return state == TSL_EPOCH_RESETTING ? EBUSY : state == TSL_EPOCH_CLOSED ? EAGAIN : ECANCELED;
}

// Enters a guest by the thread's heap in its host: both must be open. The guest's own word comes
// last: where that is open, no ancestor was over when its state was looked at, and its slot is
// still its own. EAGAIN: the host was closed meanwhile.
static int enter_hosted(struct tslab_scope *scope, tslab_epoch id, struct tsl_heap *heap,
                        uint32_t host) {
  tsl_scope_raise(heap);
  int error = host_error(host);
  if (error == 0) return tsl_scope_begin(scope, id, heap);
  tsl_scope_leave_heap(heap);
  return error;
}

// The host may end while its list is walked, or joined.
static int find_in_host(tslab_epoch id, uint32_t host, struct tsl_heap **heap) {
  int error = host == 0 ? 0 : find_or_join(id, host, heap);
  return error == ECANCELED && host_error(host) == EAGAIN ? EAGAIN : error;
}

static int try_guest(struct tslab_scope *scope, tslab_epoch id, uint32_t host) {
  struct tsl_heap *heap = &tsl_heap_current->home->heap;
  int ended = host_error(host), error = tsl_epoch_check(id);
  if (error == 0) error = ended;
  if (error == 0) error = find_in_host(id, host, &heap);
  return error == 0 ? enter_hosted(scope, id, heap, host) : error;
}

TSL_NOINLINE static int enter_guest(struct tslab_scope *scope, tslab_epoch id, uint32_t host) {
  int error;
  do {
    host = host_now(host);
    error = try_guest(scope, id, host);
  } while (error == EAGAIN);
  if (error == 0 && host != 0) tsl_watch_take_in(host);
  int own = error == 0 ? 0 : tsl_epoch_check(id);
  return own != 0 ? own : error;
}

TSL_NOINLINE static int enter_declared(struct tslab_scope *scope, tslab_epoch id) {
  struct tsl_heap *heap;
  int error = tsl_likely(tsl_epoch_is_open(id)) ? 0 : tsl_epoch_check(id);
  if (error != 0) return error;
  const struct tsl_epoch *epoch = tsl_epoch_at(tsl_epoch_slot(id));
  uint32_t host = tsl_load_relaxed(&epoch->host);
  if (host != 0) return enter_guest(scope, id, host);
  error = find_or_join(id, tsl_load_relaxed(&epoch->place), &heap);
  return error == 0 ? tsl_scope_enter_heap(scope, id, heap) : error;
}

int tsl_scope_enter_slow(struct tslab_scope *scope, tslab_epoch id) {
  if (id != TSLAB_DEFAULT) return enter_declared(scope, id);
  return tsl_scope_enter_heap(scope, id, &tsl_heap_current->home->heap);
}

int tsl_scope_refuse(struct tsl_heap *heap, tslab_epoch id) {
  tsl_scope_leave_heap(heap);
  int error = tsl_epoch_check(id);
  return error == 0 ? EBUSY : error;  // a reset came to its end
}

// The home becomes current first: a part that is sealed here may serve another epoch at once. All
// scopes of a part end as one, because it can only be sealed at depth 0.
void tsl_scope_leave_all(struct tsl_home *home) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  tslab_epoch current = tsl_heap_current->name;
  tsl_heap_current = &home->heap;
  if (home->heap.depth != 0) tsl_misuse_forgotten(&home->heap, current);
  home->heap.depth = 0;
  home->heap.name = TSLAB_DEFAULT;
  for (uint32_t number = home->family; number != 0; number = tsl_part_at(number)->family_next) {
    struct tsl_heap *heap = tsl_heap_at(number);
    if (heap->depth == 0) continue;
    tsl_misuse_forgotten(heap, current);
    tsl_store_relaxed(&heap->depth, 1);
    tsl_report_left(heap);
    tsl_scope_leave_heap(heap);
  }
}

void tsl_scope_after_fork(void) {
  for (uint32_t number = 1; number <= tsl_region.last_heap; number++) {
    struct tsl_heap *heap = tsl_heap_at(number);
    if (heap->number == 0 || heap->epoch == 0) continue;
    if (!tsl_change_is_on(heap->home)) end_left_part(tsl_part_of(heap));
  }
}
