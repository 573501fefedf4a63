#include "alloc/helper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/warn.h"
#include "epoch/scope.h"
#include "memory/limit.h"
#include "memory/purge.h"
#include "os/os.h"
#include "os/pressure.h"
#include "state/change.h"
#include "state/outside.h"
#include "tell/process.h"
#include "tell/request.h"
#include "upkeep/pool.h"
#include "upkeep/remains.h"
#include "upkeep/rounds.h"

// In a process of a single thread a second one is felt: unshare and setns refuse, and the C library
// begins to lock. So there it takes more.
enum { MUCH_FOR_ONE_BYTES = 32 << 20 };

enum {
  STACK_BYTES = 64 * 1024,
  HELPER_STEP_MS = 1,
  REMAINS_PACE = 8,      // half a millisecond for each that passed, four at most; HE2 pays
  QUIET_WINDOWS = 10,    // of `purge_delay_ms`, without anything to give, before it ends
  COUNT_AGAIN_MS = 100,  // from one look at the number of threads to the next
  LOOK_MS = 1000,        // from one look at pressure to the next; at most, between two at requests
  TRY_AGAIN_MS = 60000,  // after the system refused a thread
  PRICE = 100,           // of each millisecond that it works, in milliseconds that must pass
  LOW_PRICE = 10,        // the same near the soft limit, and while the program rests:
  RESTS_SHARE = 10,      // it uses less than one in so many milliseconds,
  REST_LOOK_MS = 100,    // as found once in this time
  SAVED_UP_MS = 20000,   // at most, when it did not work for a while
  MOST_DEBT_MS = 10000,  // a step that takes longer is owed up to here
};

static uint32_t lives;          // [remote] 1 from an attempt to start it until it ends
static uint64_t try_next_ms;    // [remote] no attempt before this, because one was refused
static uint64_t count_next_ms;  // [remote] the threads are not counted before this
static uint64_t paid_ns;        // [helper] up to this time its work is paid for
static uint64_t paid_for_ns;    // [helper] what its thread had used of a processor as it paid last
static struct {
  uint64_t ms, used_ns;  // when it was looked at last, and what the program had used then
  bool rests;
} program;                       // [helper]
static uint64_t look_next_ms;    // [helper] pressure is not looked at before this
static uint32_t process;         // [const] that may start one: not the child of a vfork
static uint32_t warned;          // [remote]
static bool (*make_home)(void);  // [const] for the calling thread

// Whether the process has other threads than the calling one and a helper (`mine`: 1, or 0 when
// there is none). Not asked too often: it takes a system call.
static bool has_threads(unsigned mine) {
  uint64_t now_ms = tsl_os_now_ms();
  if (mine == 0 && now_ms < tsl_load_relaxed(&count_next_ms)) return false;
  tsl_store_relaxed(&count_next_ms, now_ms + COUNT_AGAIN_MS);
  return tsl_os_threads() > 1 + mine;
}

// Whether so much is idle, or will be in a moment, that the process should have a helper.
static bool is_wanted(unsigned mine, size_t more_bytes) {
  uint64_t wanted = tsl_option(helper);
  if (wanted != TSL_HELPER_AUTO) return wanted == TSL_HELPER_ALWAYS;
  size_t idle = tsl_purge_returnable_bytes() + more_bytes;
  if (idle >= MUCH_FOR_ONE_BYTES) return true;
  if (tsl_limit_is_near()) return idle >= TSL_PURGE_NEAR_BYTES;
  return idle >= TSL_PURGE_MUCH_BYTES && has_threads(mine);
}

// `own_ns` is what the helper's thread has used, as asked a moment ago.
static uint64_t program_used_ns(uint64_t own_ns) {
  uint64_t all_ns = tsl_os_process_used_ns();
  return all_ns < own_ns ? 0 : all_ns - own_ns;
}

static void program_look(bool rests, uint64_t used_ns) {
  program.ms = tsl_os_now_ms();
  program.used_ns = used_ns;
  program.rests = rests;
}

// Whether the program's own threads used less than a tenth of one processor, when last looked at.
static bool program_rests(uint64_t own_ns) {
  uint64_t passed_ms = tsl_os_now_ms() - program.ms;
  if (passed_ms < REST_LOOK_MS) return program.rests;
  uint64_t used_ns = program_used_ns(own_ns);
  uint64_t more_ns = used_ns < program.used_ns ? 0 : used_ns - program.used_ns;
  program_look(more_ns * RESTS_SHARE < passed_ms * 1000000, used_ns);
  return program.rests;
}

// HE2: milliseconds to wait after a step, for it and for the rest before it.
static uint64_t helper_pay(uint64_t own_ns) {
  const uint64_t ms = 1000000;
  uint64_t now_ns = tsl_os_now_ms() * ms, saved_ns = SAVED_UP_MS * ms;
  uint64_t least_ns = now_ns > saved_ns ? now_ns - saved_ns : 0;
  uint64_t most_ns = now_ns + MOST_DEBT_MS * ms;
  uint64_t price = program_rests(own_ns) || tsl_limit_is_near() ? LOW_PRICE : PRICE;
  if (paid_ns < least_ns) paid_ns = least_ns;
  paid_ns += (own_ns - paid_for_ns) * price;
  paid_for_ns = own_ns;
  if (paid_ns > most_ns) paid_ns = most_ns;
  return paid_ns > now_ns ? (paid_ns - now_ns) / ms : 0;
}

// HE3
static void helper_look(void) {
  uint64_t now_ms = tsl_os_now_ms();
  if (now_ms < look_next_ms) return;
  look_next_ms = now_ms + LOOK_MS;
  bool is_worth = tsl_purge_returnable_bytes() >= TSL_PURGE_NEAR_BYTES;
  tsl_limit_set_pressed(is_worth && tsl_pressure_is_high());
}

// True while there is more to give back.
static bool helper_step(void) {
  tsl_pool_look();
  tsl_remains_step(REMAINS_PACE);
  bool visits = tsl_rounds_step(), surplus = tsl_purge_step();
  if (tsl_report_is_on()) tsl_report_idle();
  return visits || surplus || tsl_remains_wait();
}

// A window that ends later than it could is memory that goes back later.
static uint64_t wake_ms(void) {
  uint64_t rounds_ms = tsl_rounds_due_ms(), window_ms = tsl_purge_window_end_ms();
  return rounds_ms < window_ms ? rounds_ms : window_ms;
}

static uint64_t pause_ms(bool more, uint64_t began_ms) {
  uint64_t due_ms = wake_ms(), most_ms = tsl_limit_delay_ms() + HELPER_STEP_MS;
  if (more || due_ms <= began_ms) return HELPER_STEP_MS;
  return due_ms - began_ms < most_ms ? due_ms - began_ms : most_ms;
}

// Looks at requests and at pressure meanwhile, which may shorten the pause, but not what is owed.
// Returns whether the program, or somebody from outside, asked for memory meanwhile.
static bool helper_rest(uint64_t owed_ms, bool more) {
  uint64_t began_ms = tsl_os_now_ms();
  bool was_asked = false;
  for (uint64_t passed_ms = 0;;) {
    uint64_t ms = pause_ms(more, began_ms);
    if (ms < owed_ms) ms = owed_ms;
    if (passed_ms >= ms) return was_asked;
    uint64_t part_ms = ms - passed_ms < LOOK_MS ? ms - passed_ms : LOOK_MS;
    was_asked |= tsl_purge_help(part_ms);
    passed_ms += part_ms;
    was_asked |= tsl_request_follow();
    helper_look();
  }
}

static uint64_t most_quiet_ms(void) {
  return QUIET_WINDOWS * (tsl_limit_delay_ms() + HELPER_STEP_MS);
}

// Steps once a millisecond while there is memory to give back; otherwise when the next round is
// due, and once per `purge_delay_ms` at least. Pays for its steps and for the rests between them,
// but not for what it was asked to do. Returns when it is no longer wanted, and nothing was
// left to give, and no slab waited, for QUIET_WINDOWS.
static void helper_work(void) {
  paid_for_ns = tsl_os_used_ns();
  for (uint64_t quiet_ms = 0; quiet_ms < most_quiet_ms() || is_wanted(1, 0);) {
    if (tsl_option(helper) == TSL_HELPER_NEVER) return;
    bool more = helper_step();
    uint64_t owed_ms = helper_pay(tsl_os_used_ns());
    uint64_t pause = pause_ms(more, tsl_os_now_ms());
    quiet_ms = more || tsl_rounds_wait() ? 0 : quiet_ms + pause;  // what it owes is no quiet
    if (helper_rest(owed_ms, more)) paid_for_ns = tsl_os_used_ns();
  }
}

// A thread that freed while the helper was about to end saw it live, and called none: each side
// stores one word and then loads the other's, and the barrier is for both.
static bool is_called_back(void) {
  tsl_limit_set_pressed(false);
  look_next_ms = 0;
  tsl_purge_set_helper(false);
  tsl_store_release(&lives, 0);  // pairs: helper-lives
  tsl_scope_barrier();
  if (tsl_option(helper) == TSL_HELPER_NEVER) return false;
  if (!is_wanted(1, 0) && !tsl_rounds_are_missing()) return false;
  return tsl_exchange_acquire(&lives, 1) == 0;  // pairs: helper-lives
}

static void *helper_run(void *nothing) {
  tsl_os_name_thread("tslab-helper");
  program_look(false, program_used_ns(tsl_os_used_ns()));
  do {
    tsl_purge_set_helper(true);
    helper_work();
  } while (is_called_back());
  return nothing;
}

// glibc takes the thread's variables from its stack: where they are large, the small stack is
// refused, and the system's size taken.
static int helper_create_with(pthread_attr_t *attributes) {
  pthread_t thread;
  size_t usual_bytes;
  long least = sysconf(_SC_THREAD_STACK_MIN);
  pthread_attr_getstacksize(attributes, &usual_bytes);
  pthread_attr_setstacksize(attributes, STACK_BYTES + (size_t)(least < 0 ? 0 : least));
  int error = pthread_create(&thread, attributes, helper_run, NULL);
  if (error != EINVAL) return error;
  pthread_attr_setstacksize(attributes, usual_bytes);
  return pthread_create(&thread, attributes, helper_run, NULL);
}

// The program's handlers run on its own threads, but for those of what a thread itself does: a
// system call that a sandbox catches would end the process if SIGSYS were blocked.
static sigset_t signals_of_others(void) {
  static const int own[] = {SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  sigset_t signals;
  sigfillset(&signals);
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&signals, own[i]);
  return signals;
}

// What the C library allocates for a thread lies in the default epoch.
static int helper_create(void) {
  pthread_attr_t attributes;
  sigset_t blocked = signals_of_others(), before;
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  struct tsl_outside outside = tsl_outside_begin();
  int error = helper_create_with(&attributes);
  tsl_outside_end(outside);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static void helper_refused(void) {
  tsl_store_relaxed(&try_next_ms, tsl_os_now_ms() + TRY_AGAIN_MS);
  tsl_store_relaxed(&lives, 0);
  if (tsl_option(verbose) == 0 || tsl_exchange_relaxed(&warned, 1) != 0) return;
  tsl_warn(
      "the system refuses a thread that gives memory back; look at `ulimit -u` and the cgroup's "
      "pids.max, or set option `helper` to never");
}

// A thread that has only freed so far gets one.
static bool has_home(void) { return tsl_heap_current != &tsl_home_empty.heap || make_home(); }

// A thread may be made here: nothing of the allocator is in the hands of this one, and it has a
// home for what the C library allocates.
static bool may_create(void) {
  if (tsl_locks_held != 0 || !has_home()) return false;
  const struct tsl_home *home = tsl_heap_current->home;
  return !tsl_change_is_on(home) && !home->unwinding;
}

static void helper_start(size_t more_bytes) {
  if (tsl_load_relaxed(&lives) != 0 || tsl_os_now_ms() < tsl_load_relaxed(&try_next_ms)) return;
  if (!is_wanted(0, more_bytes) || tsl_os_process() != process) return;
  int saved = errno;
  bool is_mine = may_create() && tsl_exchange_acquire(&lives, 1) == 0;  // HE1; pairs: helper-lives
  if (is_mine && helper_create() != 0) helper_refused();
  errno = saved;
}

void tsl_helper_init(bool (*thread_join)(void)) {
  make_home = thread_join;
  process = tsl_os_process();
  tsl_purge_helper_missing = helper_start;
}

void tsl_helper_after_fork(void) {
  process = tsl_os_process();
  tsl_purge_set_helper(false);
  tsl_limit_set_pressed(false);
  look_next_ms = 0;
  tsl_store_relaxed(&lives, 0);
  tsl_store_relaxed(&try_next_ms, 0);
  tsl_store_relaxed(&count_next_ms, 0);
}
