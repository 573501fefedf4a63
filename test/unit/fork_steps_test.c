// What a fork takes is a thread between any two instructions. Here one thread is stepped through an
// operation, and at each step another thread forks: the child goes on without the first.
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <ucontext.h>

#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "base/options.h"
#include "epoch/orphans.h"
#include "epochs.h"
#include "memory/kept.h"
#include "memory/segment.h"
#include "pattern.h"
#include "state.h"
#include "threads.h"
#include "upkeep/remains.h"

#if defined(__x86_64__)
enum { KEPT = 20, CHILD_SECONDS = 20 };

static void *kept[KEPT];
static bool is_soak;       // a fork at each step
static size_t steps;       // [stepped thread] taken so far
static size_t fork_steps;  // [stepped thread] the step of the next fork
static uint32_t over;      // [remote] the operation has ended
static sem_t may_fork, may_go_on;
static tslab_epoch epoch;
static void *survivors[KEPT];
static tslab_rotation rotation = {.label = "turns", .every_requests = 1};

// The processor traps behind each instruction while this flag is set; the kernel clears it for the
// handler.
static void step_on(void) {
  __asm__ volatile(
      "lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
      "lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}
static void step_off(void) {
  __asm__ volatile(
      "lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
      "lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}

// A check that only reads is one step: the handler makes the call and returns from it.
static void step_over_check(greg_t *registers) {
  if (registers[REG_RIP] != (greg_t)(uintptr_t)tsl_segment_valid) return;
  const greg_t *stack = (const greg_t *)registers[REG_RSP];
  registers[REG_RAX] = tsl_segment_valid((struct tsl_segment *)registers[REG_RDI]);
  registers[REG_RIP] = *stack;
  registers[REG_RSP] += (greg_t)sizeof *stack;
}

// Between two forks lies a sixtieth of the way so far: all steps of a long operation are for the
// soak.
static void on_step(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info;
  step_over_check(((ucontext_t *)context)->uc_mcontext.gregs);
  if (++steps < fork_steps) return;
  fork_steps = is_soak ? 0 : steps + 1 + steps / 60;
  CHECK_EQ(sem_post(&may_fork), 0);
  while (sem_wait(&may_go_on) != 0) CHECK_EQ(errno, EINTR);
}

static void check_segments(void) {
  size_t end = tsl_divide_up(tsl_region.units, TSL_SEGMENT_UNITS);
  for (size_t i = tsl_region.first_unit / TSL_SEGMENT_UNITS; i < end; i++) {
    CHECK(tsl_segment_valid(tsl_segment_at(i)));
    CHECK_EQ(tsl_segment_at(i)->lock.holder, 0);
  }
}

static void check_kept(void) {
  for (unsigned i = 0; i < KEPT; i++) CHECK(pattern_is(kept[i], i * 500, i, i * 500));
}

// Zero where it must be, and nobody else's.
static void alloc_all_sizes(void) {
  static const size_t sizes[] = {0, 16, 64, 64, 1000, 5000, 30000, 70000, 300000};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  void *blocks[SIZES];
  for (unsigned i = 0; i < SIZES; i++) {
    blocks[i] = tsl_calloc(1, sizes[i]);
    CHECK(blocks[i] != NULL && pattern_is_zero(blocks[i], sizes[i]));
    pattern_write(blocks[i], sizes[i], i);
  }
  for (unsigned i = 0; i < SIZES; i++) {
    CHECK(pattern_is(blocks[i], sizes[i], i, sizes[i]));
    tsl_fast_free(blocks[i]);
  }
}

static void live_an_epoch(void) {
  tslab_epoch own = epochs_open();
  tslab_scope scope;
  epochs_enter(&scope, own);
  void *block = tslab_malloc(100), *big = tslab_malloc(100000);
  epochs_leave(&scope);
  epochs_close(own, 2);
  tslab_free(block);
  tslab_free(big);
  CHECK(epochs_is_over(own));
}

// The shared ones never end; one that shares ends without its blocks.
static int release_one(tslab_epoch found, void *unused) {
  (void)unused;
  int error = tslab_epoch_release(found);
  bool shares_memory = error == EPERM || error == ENOTSUP;
  CHECK(error == 0 || error == ESTALE || error == EBUSY || shares_memory);
  return 0;
}

static char sharing[] = "a";  // a label

// Two of a label lie in the same shared one, whoever was opening that.
static void live_shared(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  tslab_epoch both[2];
  for (unsigned i = 0; i < 2; i++) {
    both[i] = tslab_epoch_open(sharing, &options);
    CHECK_NE(epochs_stats(both[i]).place, both[i]);
    tslab_free(epochs_alloc(both[i], 100));
  }
  CHECK_EQ(epochs_stats(both[0]).place, epochs_stats(both[1]).place);
}

static void *spared;  // its thread was calling tslab_epoch_keep

static void live_on(void) {
  check_segments();
  check_kept();
  if (spared != NULL) tslab_free(spared);
  alloc_all_sizes();
  CHECK(tslab_rotation_current(&rotation) != TSLAB_NO_EPOCH);
  tslab_rotation_end(&rotation);
  live_an_epoch();
  live_shared();
  CHECK_EQ(tslab_epochs_each(release_one, NULL), 0);
  CHECK(spared == NULL || !tsl_kept_has(spared));  // KE1
  tsl_trim(0);
  alloc_all_sizes();
  check_segments();
  CHECK(!tsl_orphans_wait);
}

static void fork_here(void) {
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(CHILD_SECONDS);
    tsl_options.stats = 0;  // a file for each child would take most of the time
    live_on();
    _exit(EXIT_SUCCESS);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

struct stepped {
  void (*prepare)(void), (*operation)(void);
};

static void *step_through(void *argument) {
  const struct stepped *stepped = argument;
  // The first time is longer, by much that is none of the operation's.
  for (int i = 0; i < 2; i++) {
    if (stepped->prepare != NULL) stepped->prepare();
    if (i == 0) stepped->operation();
  }
  step_on();
  stepped->operation();
  step_off();
  tsl_store_release(&over, 1);
  CHECK_EQ(sem_post(&may_fork), 0);
  return NULL;
}

static void keep_some(void) {
  for (unsigned i = 0; i < KEPT; i++) {
    kept[i] = tsl_fast_malloc(i * 500);
    CHECK(kept[i] != NULL);
    pattern_write(kept[i], i * 500, i);
  }
}

static void fork_at_each_step(const struct stepped *stepped) {
  pthread_t thread;
  struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
  CHECK_EQ(sigaction(SIGTRAP, &action, NULL), 0);
  keep_some();
  tsl_options.helper = TSL_HELPER_NEVER;  // its birth blocks the signal of a step, which then kills
  CHECK(sem_init(&may_fork, 0, 0) == 0 && sem_init(&may_go_on, 0, 0) == 0);
  CHECK_EQ(pthread_create(&thread, NULL, step_through, (void *)stepped), 0);
  for (;;) {
    CHECK_EQ(sem_wait(&may_fork), 0);
    if (tsl_load_acquire(&over) != 0) break;
    fork_here();
    CHECK_EQ(sem_post(&may_go_on), 0);
  }
  CHECK_EQ(pthread_join(thread, NULL), 0);
  check_kept();
  CHECK_GE(steps, 10);
}

static void run(const struct stepped *stepped) {
  is_soak = getenv("FORK_AT_EACH_STEP") != NULL;
  fork_at_each_step(stepped);
}

static void small_blocks(void) {
  static const size_t sizes[] = {16, 64, 1000, 5000, 30000};
  void *blocks[5];
  for (unsigned i = 0; i < 5; i++) blocks[i] = tsl_fast_malloc(sizes[i]);
  for (unsigned i = 0; i < 5; i++) tsl_fast_free(blocks[i]);
}
static void in_small_blocks(void) { run(&(struct stepped){NULL, small_blocks}); }

static void large_blocks(void) {
  void *first = tsl_fast_malloc(100000), *second = tsl_fast_malloc((size_t)40 << 20);
  CHECK(first != NULL && second != NULL);
  tsl_fast_free(first);
  tsl_fast_free(tsl_realloc(second, (size_t)45 << 20));
}
static void in_large_blocks(void) { run(&(struct stepped){NULL, large_blocks}); }

static void trim(void) { tsl_trim(0); }
static void leave_dirty_units(void) {
  alloc_all_sizes();
  large_blocks();
}
static void in_trim(void) { run(&(struct stepped){leave_dirty_units, trim}); }

static void open_epoch(void) { epoch = epochs_open(); }
static void large_in_epoch(void) {
  void *first = tslab_epoch_malloc(epoch, 150000), *second = tslab_epoch_malloc(epoch, 200000);
  tslab_free(tslab_realloc(first, 70000));
  tslab_free(second);
  epochs_close(epoch, 0);
}
static void in_large_blocks_of_epochs(void) { run(&(struct stepped){open_epoch, large_in_epoch}); }

static void fill_epoch(size_t first_cell_bytes) {
  tslab_scope scope;
  epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  epochs_enter(&scope, epoch);
  for (unsigned i = 0; i < KEPT; i++) survivors[i] = tslab_malloc(i * 60);
  for (unsigned i = 0; i < KEPT; i += 2) tslab_free(survivors[i]);
  epochs_leave(&scope);
}
static void fill_cells(void) { fill_epoch(0); }
static void fill_slabs(void) { fill_epoch(TSLAB_NO_CELLS); }

static void close_and_free(void) {
  epochs_close(epoch, KEPT / 2);
  for (unsigned i = 1; i < KEPT; i += 2) tslab_free(survivors[i]);
  CHECK(epochs_is_over(epoch));
}
static void release(void) { CHECK_EQ(tslab_epoch_release(epoch), 0); }

static void in_a_close_of_cells(void) { run(&(struct stepped){fill_cells, close_and_free}); }
static void in_a_close_of_slabs(void) { run(&(struct stepped){fill_slabs, close_and_free}); }
static void in_a_release_of_cells(void) { run(&(struct stepped){fill_cells, release}); }
static void in_a_release_of_slabs(void) { run(&(struct stepped){fill_slabs, release}); }
static void in_filling_cells(void) { run(&(struct stepped){NULL, fill_cells}); }
static void in_filling_slabs(void) { run(&(struct stepped){NULL, fill_slabs}); }

// The bits have memory already, by a block in another epoch.
static void open_to_keep(size_t first_cell_bytes) {
  open_epoch();
  CHECK_EQ(tslab_epoch_keep(epochs_alloc(epoch, 100)), 0);
  epoch = EPOCHS_OPEN(.first_cell_bytes = first_cell_bytes);
  spared = epochs_alloc(epoch, 100);
}
static void open_cells_to_keep(void) { open_to_keep(0); }
static void open_slabs_to_keep(void) { open_to_keep(TSLAB_NO_CELLS); }
static void keep_block(void) { CHECK_EQ(tslab_epoch_keep(spared), 0); }
static void in_keeping_in_a_cell(void) { run(&(struct stepped){open_cells_to_keep, keep_block}); }
static void in_keeping_in_a_slab(void) { run(&(struct stepped){open_slabs_to_keep, keep_block}); }

static void turn_rotation(void) { CHECK(tslab_rotation_advance(&rotation) != TSLAB_NO_EPOCH); }
static void in_a_turn(void) { run(&(struct stepped){turn_rotation, turn_rotation}); }

// The child ends the epoch (release_one): the end passes the lock of who was cancelling.
static tslab_deferred calls[3];
static void leave_kept(void *block) { CHECK(pattern_is(block, 9500, 19, 9500)); }
static void register_calls(void) {
  open_epoch();
  for (unsigned i = 0; i < 3; i++) calls[i] = tslab_deferred_add(epoch, leave_kept, kept[KEPT - 1]);
}
static void cancel_calls(void) {
  CHECK(tslab_deferred_cancel(calls[1]) && tslab_deferred_cancel(calls[2]));
}
static void in_a_cancel(void) { run(&(struct stepped){register_calls, cancel_calls}); }

static int visit(void *block, size_t bytes, void *unused) {
  (void)block, (void)bytes, (void)unused;
  return 0;
}
static void look_at_blocks(void) { CHECK_EQ(tslab_epoch_blocks_each(epoch, visit, NULL), 0); }
static void in_a_look_at_blocks(void) { run(&(struct stepped){fill_slabs, look_at_blocks}); }

// Dead pages of what outlived its epoch go back.
static void close_sparse(void) {
  tsl_options.purge_delay_ms = 0;
  fill_slabs();
  epochs_close(epoch, KEPT / 2);
  for (unsigned i = 1; i < KEPT - 2; i += 2) tslab_free(survivors[i]);
}
static void give_remains_back(void) {
  for (unsigned i = 0; i < 3; i++) {
    usleep(5000);
    tsl_remains_step(1);
  }
}
static void in_giving_remains_back(void) {
  run(&(struct stepped){close_sparse, give_remains_back});
}

// Outside of its scopes a thread allocates and frees in its own heap.
static void visit_epoch(void) {
  tslab_free(survivors[KEPT - 1]);
  survivors[KEPT - 1] = tslab_epoch_malloc(epoch, 100);
  CHECK(survivors[KEPT - 1] != NULL);
}
static void in_a_visit_of_cells(void) { run(&(struct stepped){fill_cells, visit_epoch}); }
static void in_a_visit_of_slabs(void) { run(&(struct stepped){fill_slabs, visit_epoch}); }

// In slabs of a shared epoch they use the thread's bins there.
static void fill_shared_slabs(void) {
  tslab_scope scope;
  epoch = EPOCHS_OPEN(.place = TSLAB_PLACE_SHARED);
  epochs_enter(&scope, epoch);
  for (unsigned i = 0; i < 10000; i++) tslab_free(tslab_malloc(100));
  CHECK(TSL_SECURE || tsl_heap_has_store(tsl_heap_current));
  for (unsigned i = 0; i < KEPT; i++) survivors[i] = tslab_malloc(100);
  epochs_leave(&scope);
}
static void in_a_free_from_outside(void) { run(&(struct stepped){fill_shared_slabs, visit_epoch}); }

// Each time another label: the first epoch that shares opens the shared one.
static const tslab_epoch_options shares = {.size = sizeof shares, .place = TSLAB_PLACE_SHARED};
static void open_sharing(void) { epoch = tslab_epoch_open(sharing, &shares); }
static void next_label(void) { sharing[0]++; }
static void in_beginning_to_share(void) { run(&(struct stepped){next_label, open_sharing}); }

int main(void) {
  RUN(in_small_blocks);
  RUN(in_large_blocks);
  RUN(in_trim);
  RUN(in_large_blocks_of_epochs);
  RUN(in_filling_cells);
  RUN(in_filling_slabs);
  RUN(in_keeping_in_a_cell);
  RUN(in_keeping_in_a_slab);
  RUN(in_a_close_of_cells);
  RUN(in_a_close_of_slabs);
  RUN(in_a_release_of_cells);
  RUN(in_a_release_of_slabs);
  RUN(in_a_turn);
  RUN(in_a_cancel);
  RUN(in_a_look_at_blocks);
  RUN(in_giving_remains_back);
  RUN(in_a_visit_of_cells);
  RUN(in_a_visit_of_slabs);
  RUN(in_a_free_from_outside);
  RUN(in_beginning_to_share);
  return test_status();
}
#else
int main(void) { check_skip("written for x86-64"); }
#endif
