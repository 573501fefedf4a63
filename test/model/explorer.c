#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model.h"
#include "step.h"
#include "thread.h"
#include "tracked.h"

enum { MOST_DEPTH = 4096, MOST_ADDRESSES = 4096, FIRST_VISITED_LOG2 = 16 };

// One way on from a state.
struct choice {
  int thread;
  bool delay;
};

struct frame {
  struct tracked_state state;
  struct model_thread threads[MODEL_THREADS];
  struct choice choices[2 * MODEL_THREADS];
  unsigned count, next;
};

// Who used an address, as a mask of threads; X2.
struct use {
  uintptr_t address;
  uint8_t readers, writers;
};

struct visited {
  uint64_t *hashes;  // 0: empty place
  size_t count, size;
};

// Lies in memory that is not tracked.
struct explorer {
  const struct model_scenario *scenario;
  struct frame frames[MOST_DEPTH];
  unsigned depth;
  struct use uses[MOST_ADDRESSES];
  struct visited visited;
  struct model_result result;
  bool active;
  bool learned;  // an address turned out to be shared: what was explored does not count
  unsigned long long learns_until;  // so many transitions are taken then, to learn of others
};

static struct explorer *explorer;

bool model_stops_everywhere;

static const char op_names[][8] = {"load", "store", "change", "compare", "fence"};

static const char *short_site(const char *site) {
  const char *end = strstr(site, "/src/");
  return end != NULL ? end + 5 : site;
}

static void print_step(unsigned number, const struct frame *frame) {
  struct choice choice = frame->choices[frame->next - 1];
  const struct model_thread *thread = &frame->threads[choice.thread];
  const char *what = thread->stop == MODEL_AT_LOADED  ? "the store before becomes visible"
                     : thread->stop == MODEL_AT_AWAIT ? ""
                                                      : op_names[thread->op];
  dprintf(STDERR_FILENO, "  %3u  %*s%c  %s %s%s\n", number, 4 * choice.thread, "",
          'A' + choice.thread, short_site(thread->site), what, choice.delay ? ", delayed" : "");
}

// Which thread went on, and the operation it then began with.
static void print_schedule(void) {
  for (unsigned i = 0; i < explorer->depth; i++) print_step(i, &explorer->frames[i]);
  if (model_thread_running() < 0) return;
  const char *site = model_thread_at(model_thread_running())->site;
  dprintf(STDERR_FILENO, "  after the operation at %s\n", short_site(site));
}

void model_fail(const char *format, ...) {
  va_list list;
  va_start(list, format);
  dprintf(STDERR_FILENO, "violation: ");
  vdprintf(STDERR_FILENO, format, list);
  dprintf(STDERR_FILENO, "\n");
  va_end(list);
  if (explorer != NULL && explorer->active) print_schedule();
  _exit(EXIT_FAILURE);
}

void model_abort(void) { model_fail("the allocator stopped the program"); }

static struct use *find_use(uintptr_t address) {
  for (uintptr_t at = address * UINT64_C(0x9E3779B97F4A7C15) >> 40;; at++) {
    struct use *use = &explorer->uses[at % MOST_ADDRESSES];
    if (use->address == address) return use;
    if (use->address != 0) continue;
    use->address = address;
    return use;
  }
}

static bool is_shared(const struct use *use) {
  uint8_t all = use->readers | use->writers;
  return use->writers != 0 && (all & (all - 1)) != 0;
}

// Whether the running thread must stop here.
static bool note_use(uintptr_t address, enum model_op op) {
  struct use *use = find_use(address);
  bool before = model_stops_everywhere || is_shared(use);
  uint8_t mask = (uint8_t)(1 << model_thread_running());
  if (op == MODEL_LOAD) use->readers |= mask;
  if (op != MODEL_LOAD) use->writers |= mask;
  if (before || !is_shared(use)) return before;
  if (!explorer->learned) explorer->learns_until = 2 * explorer->result.transitions;
  explorer->learned = true;
  explorer->result.learned++;
  return true;
}

static void check_place(struct model_thread *thread, const volatile void *address, enum model_op op,
                        const char *site) {
  const char *why = model_misplaced((uintptr_t)address, (int)op);
  if (why == NULL) return;
  thread->site = site;
  model_fail("%s", why);
}

void model_step(const volatile void *address, enum model_op op, const char *site) {
  if (explorer == NULL || model_thread_running() < 0) return;
  struct model_thread *thread = model_thread_at(model_thread_running());
  if (op != MODEL_LOAD || (uintptr_t)thread->delayed == (uintptr_t)address) model_fence(site);
  if (note_use((uintptr_t)address, op)) model_thread_stop(MODEL_AT_STEP, op, address, site);
  if (op != MODEL_COMPARE) check_place(thread, address, op, site);
}

void model_changed(const volatile void *address, const char *site) {
  if (explorer == NULL || model_thread_running() < 0) return;
  check_place(model_thread_at(model_thread_running()), address, MODEL_CHANGE, site);
}

static void make_visible(struct model_thread *thread) {
  if (thread->delayed != NULL) *thread->delayed = thread->delayed_value;
  thread->delayed = NULL;
}

void model_loaded(void) {
  if (explorer == NULL || model_thread_running() < 0) return;
  struct model_thread *thread = model_thread_at(model_thread_running());
  if (thread->delayed == NULL) return;
  model_thread_stop(MODEL_AT_LOADED, MODEL_LOAD, thread->delayed, thread->site);
  make_visible(thread);
}

bool model_delays(volatile void *address, uint64_t value) {
  if (explorer == NULL || model_thread_running() < 0) return false;
  struct model_thread *thread = model_thread_at(model_thread_running());
  if (!thread->delay) return false;
  thread->delay = false;
  thread->delayed = (uint32_t *)(uintptr_t)address;
  thread->delayed_value = (uint32_t)value;
  return true;
}

void model_fence(const char *site) {
  if (explorer == NULL || model_thread_running() < 0) return;
  struct model_thread *thread = model_thread_at(model_thread_running());
  if (thread->delayed == NULL) return;
  model_thread_stop(MODEL_AT_LOADED, MODEL_FENCE, thread->delayed, site);
  make_visible(thread);
}

void model_barrier(const char *site) {
  if (explorer == NULL || model_thread_running() < 0) return;
  model_thread_stop(MODEL_AT_STEP, MODEL_FENCE, NULL, site);
  for (int i = 0; i < MODEL_THREADS; i++) make_visible(model_thread_at(i));
}

void model_await(uint32_t *flag) {
  struct model_thread *thread = model_thread_at(model_thread_running());
  model_fence("await");
  note_use((uintptr_t)flag, MODEL_LOAD);
  thread->awaited = flag;
  model_thread_stop(MODEL_AT_AWAIT, MODEL_LOAD, flag, "await");
}

void model_set(uint32_t *flag) {
  model_step(flag, MODEL_STORE, "set");
  *flag = 1;
}

static void visited_add_new(struct visited *visited, uint64_t hash) {
  size_t at = hash & (visited->size - 1);
  while (visited->hashes[at] != 0) at = (at + 1) & (visited->size - 1);
  visited->hashes[at] = hash;
  visited->count++;
}

static void visited_grow(struct visited *visited) {
  struct visited larger = {NULL, 0, visited->size * 2};
  larger.hashes = calloc(larger.size, sizeof *larger.hashes);
  if (larger.hashes == NULL) abort();
  for (size_t i = 0; i < visited->size; i++) {
    if (visited->hashes[i] != 0) visited_add_new(&larger, visited->hashes[i]);
  }
  free(visited->hashes);
  *visited = larger;
}

// False when the state was there before.
static bool visited_add(struct visited *visited, uint64_t hash) {
  hash |= hash == 0;
  for (size_t at = hash & (visited->size - 1); visited->hashes[at] != 0;
       at = (at + 1) & (visited->size - 1)) {
    if (visited->hashes[at] == hash) return false;
  }
  visited_add_new(visited, hash);
  if (visited->count * 2 > visited->size) visited_grow(visited);
  return true;
}

static void visited_clear(struct visited *visited) {
  memset(visited->hashes, 0, visited->size * sizeof *visited->hashes);
  visited->count = 0;
}

static bool may_delay(const struct model_thread *thread) {
  const struct model_scenario *scenario = explorer->scenario;
  uintptr_t address = (uintptr_t)thread->address;
  if (thread->stop != MODEL_AT_STEP || thread->op != MODEL_STORE) return false;
  return (scenario->delays_depth && model_is_depth(address)) ||
         (scenario->delays_changing && model_is_changing(address));
}

// Puts the state on the path; false at its end.
static bool path_push(void) {
  if (explorer->depth == MOST_DEPTH) model_fail("a path of more than %d steps", MOST_DEPTH);
  struct frame *frame = &explorer->frames[explorer->depth];
  bool ended = true;
  frame->count = 0;
  frame->next = 0;
  for (int i = 0; i < MODEL_THREADS; i++) {
    const struct model_thread *thread = model_thread_at(i);
    frame->threads[i] = *thread;
    if (thread->stop != MODEL_ENDED) ended = false;
    if (!model_thread_is_ready(i)) continue;
    frame->choices[frame->count++] = (struct choice){i, false};
    if (may_delay(thread)) frame->choices[frame->count++] = (struct choice){i, true};
  }
  if (frame->count == 0 && !ended) model_fail("every thread waits");
  if (ended) return false;
  tracked_save(&frame->state);
  explorer->depth++;
  return true;
}

static void finish(void) {
  explorer->result.ends++;
  if (explorer->scenario->finish != NULL) explorer->scenario->finish();
  model_account();
}

static void take_step(struct choice choice) {
  model_thread_at(choice.thread)->delay = choice.delay;
  model_thread_run(choice.thread);
  explorer->result.transitions++;
}

static bool is_over(void) {
  if (explorer->depth == 0) return true;
  return explorer->learned && explorer->result.transitions >= explorer->learns_until;
}

static void explore_once(void) {
  bool elsewhere = false;
  visited_clear(&explorer->visited);
  explorer->depth = 0;
  explorer->learned = false;
  explorer->result.transitions = 0;
  explorer->result.ends = 0;
  visited_add(&explorer->visited, tracked_hash());
  path_push();
  while (!is_over()) {
    struct frame *frame = &explorer->frames[explorer->depth - 1];
    if (frame->next == frame->count) {
      explorer->depth--;
      elsewhere = true;
      continue;
    }
    if (elsewhere) tracked_restore(&frame->state);
    take_step(frame->choices[frame->next++]);
    elsewhere = true;
    if (!visited_add(&explorer->visited, tracked_hash())) continue;
    if (path_push()) {
      elsewhere = false;
    } else {
      finish();
      tracked_hash();
    }
  }
}

static void prepare(const struct model_scenario *scenario) {
  model_threads_init();
  model_os.has_barrier = !scenario->no_barrier;
  model_os.barrier_works = !scenario->fails;
  model_os.purges = scenario->purges;
  scenario->prepare();
  for (int i = 0; i < MODEL_THREADS; i++) {
    if (scenario->threads[i] != NULL) model_thread_start(i, scenario->threads[i]);
  }
}

struct model_result model_explore(const struct model_scenario *scenario) {
  void *memory = mmap(NULL, sizeof *explorer, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  prepare(scenario);
  explorer = memory;
  explorer->scenario = scenario;
  explorer->visited.size = (size_t)1 << FIRST_VISITED_LOG2;
  explorer->visited.hashes = calloc(explorer->visited.size, sizeof(uint64_t));
  size_t bytes;
  void *region = model_region(&bytes);
  tracked_add(region, bytes);
  tracked_add_program();
  explorer->active = true;
  tracked_begin();
  do {
    tracked_restart();
    explore_once();
  } while (explorer->learned);
  explorer->result.states = explorer->visited.count;
  return explorer->result;
}
