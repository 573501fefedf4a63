#include "tell/points.h"

#include "base/options.h"
#include "base/random.h"
#include "state/owner.h"

enum {
  PASSED = 64,     // points of other classes cost as much as one that is sampled
  WINDOW_MS = 50,  // the least time over which the rate of points is measured

  // Of what is watched a thread is to take few samples, so that these and the frees of their blocks
  // lie in few requests: one sample where there would be CALM_PART if somebody had asked, and
  // HURRIED_TIMES as many as then after a request to hurry.
  CALM_PART = 25,
  HURRIED_TIMES = 4,
  CALM_WINDOW_MS = 1000,
  CALM_FIRST = 64,  // `times`, before any rate is known
  CALM_FALL = 4,    // to such a part `times` falls at most from one window to the next
};

uint64_t tsl_points_mean;

static double distance_draw(uint64_t *seed) {
  return -tsl_log(1 - tsl_random_uniform(tsl_random_next(seed)));
}

uint64_t *tsl_points_seed(struct tsl_home *home) {
  struct tsl_points *points = &home->own->points;
  if (tsl_unlikely(points->seed == 0)) {
    points->seed = tsl_os_random() | 1;
    points->distance = distance_draw(&points->seed);
  }
  return &points->seed;
}

static uint64_t mean_of(const struct tsl_heap *heap) {
  uint64_t mean = tsl_load_relaxed(&tsl_points_mean);
  return mean != 0 ? mean : tsl_watch_mean(heap);
}

uint64_t tsl_points_apart(const struct tsl_heap *heap) {
  uint32_t times = heap->home->own->points.times;
  return mean_of(heap) * (times == 0 ? 1 : times);
}

// Each look takes the next `bytes` of the thread's line, whoever allocates them and whether they
// are allocated at all: what lies behind is as random as before.
static size_t within(struct tsl_home *home, double mean, size_t bytes) {
  uint64_t *seed = tsl_points_seed(home);
  struct tsl_points *points = &home->own->points;
  double length = (double)bytes / mean, distance = points->distance;
  points->distance = distance - length;
  if (tsl_likely(distance >= length)) return SIZE_MAX;
  points->distance = distance_draw(seed);
  size_t before = (size_t)(distance * mean);
  return before < bytes ? before : bytes - 1;  // the product is rounded
}

size_t tsl_points_within(struct tsl_heap *heap, size_t bytes) {
  tsl_assert(tsl_owner_is_me(heap));
  if (tsl_unlikely(heap->sample_apart == 0)) return SIZE_MAX;  // nothing of it is sampled
  return within(heap->home, (double)heap->sample_apart, bytes);
}

// Which of the next `most` blocks holds the next point, from 1 on; 0: none.
uint32_t tsl_points_next(struct tsl_heap *heap, unsigned class, uint32_t most) {
  size_t bytes = tsl_sizeclasses[class].bytes;
  size_t distance = tsl_points_within(heap, bytes * most);
  return distance == SIZE_MAX ? 0 : (uint32_t)(distance / bytes) + 1;
}

uint32_t tsl_points_until(struct tsl_heap *heap, unsigned class, uint32_t most) {
  tsl_assert(tsl_owner_is_me(heap));
  uint64_t bit = UINT64_C(1) << class % 64;
  uint32_t point = class < TSL_CLASSES ? tsl_points_next(heap, class, most) : 0;
  heap->store->sampled_hot &= ~bit;
  if (point == 0) return most;
  heap->store->sampled_hot |= bit;
  return point;
}

// The empty store is never written.
uint64_t tsl_points_take_cut(struct tsl_heap *heap, unsigned class) {
  tsl_assert(tsl_owner_is_me(heap));
  uint64_t bit = UINT64_C(1) << class % 64;
  if ((heap->store->sampled_cold & bit) == 0) return 0;
  heap->store->sampled_cold &= ~bit;
  return heap->sample_apart;
}

static bool somebody_asked(void) { return tsl_load_relaxed(&tsl_points_mean) != 0; }

static enum tsl_points_pace pace_at(uint64_t now_ms) {
  if (somebody_asked()) return TSL_POINTS_ASKED;
  bool hurries = now_ms < tsl_load_relaxed(&tsl_watch_hurries_until_ms);
  return hurries ? TSL_POINTS_HURRIED : TSL_POINTS_CALM;
}

// How many times as far apart points are to be drawn where `points` are reached, and so many are
// wanted, in thousandths; where 0 are, any number is.
static uint32_t times_for(uint64_t points, uint64_t wanted) {
  if (wanted == 0 || points == 0) return 1;
  return (uint32_t)((points * 1000 + wanted - 1) / wanted);
}

// WA6: the same by what was counted in so long a time.
static uint32_t times_by(const struct tsl_points *counted, uint64_t ms) {
  uint64_t asked = (uint64_t)tsl_option(sample_rate) * ms;
  if (counted->pace == TSL_POINTS_ASKED) return times_for(counted->count, asked);
  uint64_t cost = (uint64_t)counted->count + counted->cost_of_passed;
  uint32_t by_cost = times_for(cost, asked * HURRIED_TIMES);
  if (counted->pace == TSL_POINTS_HURRIED) return by_cost;
  uint32_t by_samples = times_for(counted->count, asked / CALM_PART);
  return by_samples > by_cost ? by_samples : by_cost;
}

static void set_times(struct tsl_points *counted, uint32_t times) {
  if (times != counted->times) counted->version++;
  counted->times = times;
}

static void window_begin(struct tsl_points *counted, uint64_t now_ms) {
  counted->since_ms = now_ms;
  counted->count = 0;
  counted->cost_of_passed = 0;
}

// Of few samples a window may hold none by chance.
static void window_end(struct tsl_points *counted, uint64_t ms) {
  uint32_t times = times_by(counted, ms);
  uint32_t least = counted->pace == TSL_POINTS_CALM ? counted->times / CALM_FALL : 0;
  set_times(counted, times > least ? times : least);
}

static void pace_begin(struct tsl_points *counted, enum tsl_points_pace pace, uint64_t now_ms) {
  counted->pace = pace;
  bool is_bounded = pace == TSL_POINTS_CALM && tsl_option(sample_rate) != 0;
  set_times(counted, is_bounded ? CALM_FIRST : 1);
  window_begin(counted, now_ms);
}

// Where nobody asked, the distance grows before the window is over.
void tsl_points_count(struct tsl_home *home, uint32_t points) {
  tsl_assert(tsl_owner_is_me(&home->heap));
  struct tsl_points *counted = &home->own->points;
  uint64_t now_ms = tsl_os_now_ms(), passed_ms = now_ms - counted->since_ms;
  enum tsl_points_pace pace = pace_at(now_ms);
  uint64_t window_ms = pace == TSL_POINTS_CALM ? CALM_WINDOW_MS : WINDOW_MS;
  if (pace != counted->pace) return pace_begin(counted, pace, now_ms);
  if (passed_ms >= window_ms) {
    window_end(counted, passed_ms);
    window_begin(counted, now_ms);
  }
  counted->count += points;
  uint32_t at_once = pace == TSL_POINTS_ASKED ? 0 : times_by(counted, 2 * window_ms);
  if (at_once > counted->times) set_times(counted, at_once);
}

// So many points of the mean lie where one is reached that was drawn `apart` bytes apart.
static uint32_t points_within(const struct tsl_heap *heap, uint64_t apart) {
  uint64_t mean = mean_of(heap);
  return mean == 0 || apart < mean ? 1 : (uint32_t)(apart / mean);
}

bool tsl_points_take(struct tsl_heap *heap, unsigned class, uint64_t apart) {
  tsl_assert(tsl_owner_is_me(heap));
  if (!tsl_points_are_on()) return false;
  if (somebody_asked() || tsl_watch_has(heap, class)) return true;  // WA2
  struct tsl_points *counted = &heap->home->own->points;
  if (++counted->passed % PASSED != 0) return false;
  counted->cost_of_passed += points_within(heap, apart);
  tsl_points_count(heap->home, 0);
  return false;
}

// Of the blocks that hold a point one in `one_of` is sampled. On average it stands for as many
// samples as the finest mean would take of such blocks.
static uint32_t stand_for(struct tsl_home *home, size_t bytes, double apart, uint32_t one_of) {
  double chance = tsl_chance_within((double)bytes / apart);
  double samples = one_of * tsl_chance_within((double)bytes / TSL_POINTS_FINEST) / chance;
  if (samples >= UINT32_MAX) return UINT32_MAX;
  uint32_t whole = (uint32_t)samples;
  double uniform = tsl_random_uniform(tsl_random_next(tsl_points_seed(home)));
  return whole + (uniform < samples - whole);
}

uint32_t tsl_points_reached(struct tsl_heap *heap, size_t bytes, uint64_t apart) {
  tsl_assert(tsl_owner_is_me(heap));
  tsl_points_count(heap->home, points_within(heap, apart));
  return stand_for(heap->home, bytes, (double)apart, 1);
}

// One of `times` points is taken, since so many of them are reached. The mean stays: with a larger
// one a block of many means would be as likely as before to hold a point.
uint32_t tsl_points_of_large(struct tsl_heap *heap, size_t bytes) {
  tsl_assert(tsl_owner_is_me(heap));
  struct tsl_home *home = heap->home;
  uint64_t mean = mean_of(heap);
  if (mean == 0 || within(home, (double)mean, bytes) == SIZE_MAX) return 0;
  if (!tsl_points_take(heap, TSL_CLASSES, mean)) return 0;
  tsl_points_count(home, 1);
  uint32_t times = home->own->points.times;
  if (times > 1 && tsl_random_next(tsl_points_seed(home)) % times != 0) return 0;
  return stand_for(home, bytes, (double)mean, times > 1 ? times : 1);
}
