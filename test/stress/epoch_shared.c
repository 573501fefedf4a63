// epoch_shared: many threads in one epoch, which is closed in the middle of their work, and the
// next one opened.
//
//   stress_epoch_shared [--seed N] [--operations N] [--threads N] [--places own|shared]
//
// Each thread enters the epoch of the day, allocates, hands blocks to the others through mailboxes,
// frees what it finds there, leaves and enters again. Every block is verified before its end, and
// ends once. In the end every epoch is over, and as many objects were freed as allocated. Blocks
// lie in the epoch's own memory, or in the shared epoch of its label: there are many labels.
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tslab.h>
#include <unistd.h>

#include "mailbox.h"

enum {
  THREADS = 64,
  BLOCKS = 150,
  MAILBOXES = 128,
  EPOCHS = 1 << 20,
  SMALL_LOG2 = 11,
  LARGE_LOG2 = 18,
  MOST_DEPTH = 4,
  LABELS = 12,  // more than a thread remembers parts of (TSL_HOME_PARTS)
};

struct day {
  tslab_epoch epoch;
  tslab_epoch place;  // where its blocks lie
};

struct worker {
  struct shadow blocks[BLOCKS];
  tslab_scope scopes[MOST_DEPTH];
  const struct day *days[MOST_DEPTH];
  int depth;
  struct random random;
  pthread_t thread;
  unsigned long long allocated, freed, refused;
};

static struct worker workers[THREADS];
static struct mailbox mailboxes[MAILBOXES];
static const struct day outside = {TSLAB_DEFAULT, TSLAB_DEFAULT};
static struct day days[EPOCHS];
static size_t day_count;
static const struct day *_Atomic today;
static atomic_llong operations_left;
static atomic_llong day_ends_at;  // of operations_left
static atomic_bool stopped;

static struct arguments {
  uint64_t seed;
  long long operations;
  int threads;
  bool shares;
} arguments = {.operations = 10000000, .threads = 8};

static void block_make(struct worker *worker, struct shadow *block) {
  struct random *random = &worker->random;
  size_t size = random_size(random, random_below(random, 64) == 0 ? LARGE_LOG2 : SMALL_LOG2);
  size_t way = random_below(random, 16);
  const struct day *day = worker->days[worker->depth - 1];
  void *made = way == 0   ? allocator_aligned_alloc(256, size)
               : way == 1 ? allocator_calloc(1, size)
                          : allocator_malloc(size);
  CHECK_THAT(shadow_take(block, made, size, random_next(random)), "size %zu gave NULL", size);
  worker->allocated++;
  if (way < 4) CHECK_EQ(tslab_epoch_of(made), day->place);
  if (way == 4) CHECK_EQ(tslab_epoch_current(), day->epoch);
}

static void block_drop(struct worker *worker, struct shadow *block) {
  if (block->block == NULL) return;
  shadow_drop(block);
  worker->freed++;
}

// Stays where it is when the epoch of the day ends at this moment.
static bool enter(struct worker *worker, const struct day *day) {
  int error = tslab_scope_enter(&worker->scopes[worker->depth], day->epoch);
  CHECK_THAT(error == 0 || error == ECANCELED || error == ESTALE, "error %d", error);
  if (error != 0) worker->refused++;
  if (error != 0) return false;
  worker->days[worker->depth++] = day;
  return true;
}

static void leave(struct worker *worker) {
  CHECK_EQ(tslab_scope_leave(&worker->scopes[--worker->depth]), 0);
}

static void move(struct worker *worker) {
  if (worker->depth == 0) {
    if (!enter(worker, atomic_load(&today))) sched_yield();
    return;
  }
  size_t way = random_below(&worker->random, 8);
  if (way >= 3 || worker->depth == MOST_DEPTH)
    leave(worker);
  else
    enter(worker, way == 0 ? &outside : atomic_load(&today));
}

// From outside or inside, for one allocation: an epoch that has ended says so.
static void block_make_elsewhere(struct worker *worker, struct shadow *block) {
  size_t size = random_size(&worker->random, SMALL_LOG2);
  const struct day *day = atomic_load(&today);
  errno = 0;
  void *made = tslab_epoch_malloc(day->epoch, size);
  CHECK_THAT(made != NULL || errno == ECANCELED || errno == ESTALE, "errno %d", errno);
  if (made == NULL) return;
  shadow_take(block, made, size, random_next(&worker->random));
  worker->allocated++;
  CHECK_EQ(tslab_epoch_of(made), day->place);
}

static void operation(struct worker *worker) {
  struct shadow *block = &worker->blocks[random_below(&worker->random, BLOCKS)];
  size_t way = random_below(&worker->random, 100);
  if (way < 2) {
    move(worker);
  } else if (block->block == NULL) {
    if (way < 5)
      block_make_elsewhere(worker, block);
    else if (worker->depth != 0)
      block_make(worker, block);
    else
      move(worker);
  } else if (way < 50) {
    mailbox_exchange(&mailboxes[random_below(&worker->random, MAILBOXES)], block);
  } else {
    block_drop(worker, block);
  }
}

static void *worker_run(void *data) {
  struct worker *worker = data;
  enum { SHARE = 64 };
  while (atomic_fetch_sub_explicit(&operations_left, SHARE, memory_order_relaxed) > 0) {
    for (int i = 0; i < SHARE; i++) operation(worker);
    if (atomic_load(&operations_left) < atomic_load(&day_ends_at)) sched_yield();
  }
  atomic_store(&stopped, true);
  for (int i = 0; i < BLOCKS; i++) block_drop(worker, &worker->blocks[i]);
  while (worker->depth != 0 && random_below(&worker->random, 4) != 0) leave(worker);
  return NULL;
}

static void day_begin(struct random *random) {
  const char label[] = {(char)('a' + random_below(random, LABELS)), 0};
  static const size_t first_cells[] = {0, 0, 16 * KIB, TSLAB_NO_CELLS};
  tslab_epoch_options options = {
      .size = sizeof options,
      .threads = (unsigned)random_below(random, 16),
      .first_cell_bytes = first_cells[random_below(random, 4)],
      .purge = (enum tslab_purge)(random_below(random, 64) == 0 ? TSLAB_PURGE_NOW : 0),
  };
  options.place = TSLAB_PLACE_OWN;
  if (arguments.shares)
    options = (tslab_epoch_options){
        .size = sizeof options, .purge = options.purge, .place = TSLAB_PLACE_SHARED};
  tslab_epoch epoch = tslab_epoch_open(label, &options);
  CHECK_THAT(epoch != TSLAB_NO_EPOCH, "errno %d", errno);
  CHECK_THAT(day_count < EPOCHS, "epoch %zu", day_count);
  tslab_epoch_stats stats = {.size = sizeof stats};
  CHECK_EQ(tslab_epoch_get_stats(epoch, &stats), 0);
  CHECK_EQ(stats.place == epoch, !arguments.shares);
  days[day_count] = (struct day){epoch, stats.place};
  atomic_store(&today, &days[day_count++]);
}

// Closes the epoch of the day before or after the next one is opened.
static void day_end(struct random *random) {
  tslab_epoch ending = atomic_load(&today)->epoch;
  bool first = random_below(random, 8) != 0;
  if (first) day_begin(random);
  tslab_survivors left = tslab_epoch_close(ending);
  CHECK_EQ(left.error, 0);
  CHECK_THAT(!arguments.shares || left.objects == 0, "%zu objects", left.objects);
  CHECK_THAT(left.pages * 4096 >= left.bytes && left.bytes >= left.objects * 16,
             "%zu objects, %zu bytes, %zu pages", left.objects, left.bytes, left.pages);
  if (!first) day_begin(random);
}

static void *closer_run(void *data) {
  struct random *random = data;
  while (!atomic_load(&stopped)) {
    long long until = atomic_load(&operations_left) - (long long)random_size(random, 14) - 64;
    atomic_store(&day_ends_at, until);
    while (atomic_load(&operations_left) > until && !atomic_load(&stopped)) sched_yield();
    day_end(random);
  }
  return NULL;
}

static void all_run(struct random *random) {
  pthread_t closer;
  CHECK_EQ(pthread_create(&closer, NULL, closer_run, random), 0);
  for (int i = 0; i < arguments.threads; i++)
    CHECK_EQ(pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]), 0);
  for (int i = 0; i < arguments.threads; i++) CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
  CHECK_EQ(pthread_join(closer, NULL), 0);
}

static int epoch_see(tslab_epoch epoch, void *context) {
  (void)context;
  tslab_epoch_stats stats = {.size = sizeof stats};
  tslab_epoch_get_stats(epoch, &stats);
  check_print("epoch 0x%llx, state %d: %zu objects, %zu bytes held, %u threads, %u scopes\n",
              (unsigned long long)epoch, (int)stats.state, stats.live_objects, stats.held_bytes,
              stats.threads, stats.scopes);
  return 0;
}

static void last_day_check(void) {
  tslab_epoch last = atomic_load(&today)->epoch;
  tslab_epoch_stats stats = {.size = sizeof stats};
  CHECK_EQ(tslab_epoch_get_stats(last, &stats), 0);
  CHECK_EQ(stats.live_objects, 0);
  CHECK_EQ(stats.live_bytes, 0);
  CHECK_EQ(stats.scopes, 0);
  tslab_survivors left = tslab_epoch_close(last);
  CHECK(left.error == 0 && left.objects == 0 && left.bytes == 0 && left.pages == 0);
}

// A thread that ended inside has left its scopes.
static void shared_check(tslab_epoch place) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  CHECK_EQ(tslab_epoch_get_stats(place, &stats), 0);
  CHECK_EQ(stats.state, TSLAB_SHARED);
  CHECK(stats.live_objects == 0 && stats.live_bytes == 0 && stats.scopes == 0);
}

// The helper may hold a slab for the moment in which its last object is freed, and then ends the
// epoch itself.
static bool is_over_soon(tslab_epoch epoch) {
  enum { ATTEMPTS = 1000 };
  tslab_epoch_stats stats = {.size = sizeof stats};
  for (int i = 0; i < ATTEMPTS; i++, usleep(1000))
    if (tslab_epoch_get_stats(epoch, &stats) == ESTALE) return true;
  return false;
}

static void end_check(void) {
  unsigned long long allocated = 0, freed = 0, refused = 0;
  for (int i = 0; i < MAILBOXES; i++) block_drop(&workers[0], &mailboxes[i].block);
  for (int i = 0; i < arguments.threads; i++) {
    allocated += workers[i].allocated;
    freed += workers[i].freed;
    refused += workers[i].refused;
  }
  CHECK_EQ(allocated, freed);
  for (size_t i = 0; i < day_count && arguments.shares; i++) shared_check(days[i].place);
  last_day_check();
  tslab_epochs_each(epoch_see, NULL);
  for (size_t i = 0; i < day_count; i++)
    CHECK_THAT(is_over_soon(days[i].epoch), "epoch %zu of %zu", i, day_count);
  check_print("%llu objects in %zu epochs, %llu times too late\n", allocated, day_count, refused);
}

static void arguments_read(int count, char **values) {
  arguments.seed = process_now_ns();
  for (int i = 1; i + 1 < count; i += 2) {
    long long number = strtoll(values[i + 1], NULL, 0);
    if (strcmp(values[i], "--seed") == 0) arguments.seed = (uint64_t)number;
    if (strcmp(values[i], "--operations") == 0) arguments.operations = number;
    if (strcmp(values[i], "--threads") == 0) arguments.threads = (int)number;
    if (strcmp(values[i], "--places") == 0) arguments.shares = strcmp(values[i + 1], "shared") == 0;
  }
  CHECK(arguments.threads >= 1 && arguments.threads <= THREADS);
}

int main(int count, char **values) {
  arguments_read(count, values);
  // What lives is counted exactly in the end: nobody may move free blocks then.
  CHECK_EQ(tslab_option_set("helper", "never"), 0);
  check_context_set("repeat with --seed %llu", (unsigned long long)arguments.seed);
  struct random random = {arguments.seed};
  for (int i = 0; i < THREADS; i++) workers[i].random.state = random_next(&random);
  atomic_store(&operations_left, arguments.operations);
  day_begin(&random);
  all_run(&random);
  end_check();
  return 0;
}
