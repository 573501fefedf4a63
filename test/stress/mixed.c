// mixed: a seeded run of many threads that allocate by every function, hand blocks to each other,
// start and end.
//
//   stress_mixed [--seed N] [--seconds N] [--operations N] [--threads N] [--signals]
//
// Each thread sits at a desk with blocks of its own; when it ends, another one takes the desk over,
// blocks and all. A mailbox holds one block: whoever comes by leaves his and takes what is there.
// Every block is verified before its end.
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>

#include "mailbox.h"

enum {
  DESKS = 64,
  BLOCKS = 400,
  MAILBOXES = 256,
  SHIFT_OPERATIONS = 20000,
  SIZE_LOG2 = 22,
  SMALL_LOG2 = 12,
};

struct desk {
  struct shadow blocks[BLOCKS];
  struct random random;
  pthread_t thread;
};

static struct desk desks[DESKS];
static struct mailbox mailboxes[MAILBOXES];
static atomic_ullong operations_left = ULLONG_MAX;
static atomic_bool stopped;

static struct arguments {
  uint64_t seed;
  unsigned long long seconds, operations;
  int threads, signals;
} arguments = {.seconds = 5, .operations = ULLONG_MAX, .threads = 6};

// Most blocks are small, as in programs; the large ones still make most of the bytes.
static size_t size_choose(struct random *random) {
  return random_size(random, random_below(random, 8) == 0 ? SIZE_LOG2 : SMALL_LOG2);
}

static void *zeroed_allocate(size_t size) {
  unsigned char *block = allocator_calloc(1, size);
  size_t step = size <= SHADOW_WHOLE ? 1 : SHADOW_STEP;
  for (size_t offset = 0; block != NULL && offset < size; offset += step)
    CHECK_THAT(block[offset] == 0, "calloc of %zu bytes, offset %zu", size, offset);
  return block;
}

static void *aligned_allocate(struct random *random, size_t size) {
  size_t alignment = (size_t)16 << random_below(random, random_below(random, 16) == 0 ? 17 : 8);
  void *block = NULL;
  if (random_next(random) & 1)
    block = allocator_aligned_alloc(alignment, size);
  else
    CHECK_EQ(allocator_posix_memalign(&block, alignment, size), 0);
  CHECK_THAT(((uintptr_t)block & (alignment - 1)) == 0, "alignment %zu, size %zu gave %p",
             alignment, size, block);
  return block;
}

static void block_make(struct shadow *block, struct random *random) {
  size_t size = size_choose(random), way = random_below(random, 20);
  void *made;
  if (way < 12)
    made = allocator_malloc(size);
  else if (way < 15)
    made = zeroed_allocate(size);
  else if (way < 18)
    made = aligned_allocate(random, size);
  else if (way < 19)
    made = allocator_realloc(NULL, size);
  else
    made = allocator_reallocarray(NULL, size, 1);
  CHECK_THAT(shadow_take(block, made, size, random_next(random)), "size %zu gave NULL", size);
}

static void operation(struct desk *desk) {
  struct shadow *block = &desk->blocks[random_below(&desk->random, BLOCKS)];
  size_t way = random_below(&desk->random, 100);
  if (block->block == NULL) {
    block_make(block, &desk->random);
  } else if (way < 60) {
    shadow_drop(block);
  } else if (way < 72) {
    size_t size = 1 + size_choose(&desk->random);
    CHECK_THAT(shadow_resize(block, size), "resize to %zu", size);
  } else if (way < 99) {
    mailbox_exchange(&mailboxes[random_below(&desk->random, MAILBOXES)], block);
  } else if (random_below(&desk->random, 200) == 0) {
    allocator_trim(0);
  }
}

// A shift's length is random, so that threads end at any moment of the others' work.
static void *shift_work(void *data) {
  struct desk *desk = data;
  size_t operations = random_below(&desk->random, SHIFT_OPERATIONS);
  for (size_t done = 0; done < operations && !atomic_load(&stopped); done++) {
    if (atomic_fetch_sub_explicit(&operations_left, 1, memory_order_relaxed) == 0) {
      atomic_store(&stopped, true);
      break;
    }
    operation(desk);
  }
  return NULL;
}

static void shift_start(struct desk *desk) {
  CHECK_EQ(pthread_create(&desk->thread, NULL, shift_work, desk), 0);
}

static void all_shifts_run(void) {
  uint64_t end = process_now_ns() + arguments.seconds * 1000000000u;
  for (int i = 0; i < arguments.threads; i++) shift_start(&desks[i]);
  for (int i = 0;; i = (i + 1) % arguments.threads) {
    CHECK_EQ(pthread_join(desks[i].thread, NULL), 0);
    desks[i].thread = 0;
    if (process_now_ns() > end) atomic_store(&stopped, true);
    if (atomic_load(&stopped)) break;
    shift_start(&desks[i]);
  }
  for (int i = 0; i < arguments.threads; i++)
    if (desks[i].thread != 0) CHECK_EQ(pthread_join(desks[i].thread, NULL), 0);
}

static void all_blocks_drop(void) {
  for (int i = 0; i < arguments.threads; i++)
    for (int block = 0; block < BLOCKS; block++) shadow_drop(&desks[i].blocks[block]);
  for (int i = 0; i < MAILBOXES; i++) shadow_drop(&mailboxes[i].block);
}

static void on_alarm(int number) { (void)number; }

// Interrupts every system call and every instruction in turn: no handler of ours runs, and none is
// needed.
static void signals_start(void) {
  struct sigaction action = {.sa_handler = on_alarm};
  struct itimerval every = {{0, 200}, {0, 200}};
  CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
  CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void arguments_read(int count, char **values) {
  arguments.seed = process_now_ns();
  for (int i = 1; i < count; i++) {
    unsigned long long number = i + 1 < count ? strtoull(values[i + 1], NULL, 0) : 0;
    if (strcmp(values[i], "--signals") == 0) {
      arguments.signals = 1;
      continue;
    }
    if (strcmp(values[i], "--seed") == 0) arguments.seed = number;
    if (strcmp(values[i], "--seconds") == 0) arguments.seconds = number;
    if (strcmp(values[i], "--operations") == 0) arguments.operations = number;
    if (strcmp(values[i], "--threads") == 0) arguments.threads = (int)number;
    i++;
  }
  CHECK(arguments.threads >= 1 && arguments.threads <= DESKS);
}

int main(int count, char **values) {
  arguments_read(count, values);
  check_context_set("repeat with --seed %llu", (unsigned long long)arguments.seed);
  atomic_store(&operations_left, arguments.operations);
  struct random random = {arguments.seed};
  for (int i = 0; i < DESKS; i++) desks[i].random.state = random_next(&random);
  if (arguments.signals) signals_start();
  all_shifts_run();
  all_blocks_drop();
  return 0;
}
