// Mistakes with epochs: frees that come too late, twice or in the middle are reported, calls in the
// wrong state refused.
//
// Run without arguments, the program starts itself once for each case and each setting of on_error.
// With the name of a case it makes that mistake, having printed the pointer or the epoch that the
// message must name.
#include <semaphore.h>

#include "../child.h"
#include "epochs.h"

// Without the C library's buffers: they would be the next object at the address of a late free.
static void pointer_announce(const void *pointer) {
  char line[32];
  int length = snprintf(line, sizeof line, "%p\n", pointer);
  CHECK_EQ(write(STDOUT_FILENO, line, (size_t)length), length);
}

static void text_announce(const char *text) {
  CHECK_EQ(write(STDOUT_FILENO, text, strlen(text)), strlen(text));
}

static void epoch_announce(tslab_epoch epoch) {
  char line[32];
  snprintf(line, sizeof line, "epoch %llu\n", (unsigned long long)epoch);
  text_announce(line);
}

static void mistaken_free(void *pointer) {
  pointer_announce(pointer);
  free(pointer);
}

static tslab_epoch labelled_open(const char *label) {
  tslab_epoch epoch = tslab_epoch_open(label, NULL);
  CHECK_NE(epoch, TSLAB_NO_EPOCH);
  return epoch;
}

static void *mistaken_leave(void *scope) {
  pointer_announce(scope);
  CHECK_EQ(tslab_scope_leave(scope), EPERM);
  return NULL;
}

// Mistakes with scopes; nothing changes.
static void scope_order(void) {
  tslab_epoch request = labelled_open("request"), query = labelled_open("query");
  tslab_scope outer, inner;
  scope_enter(&outer, request);
  scope_enter(&inner, query);
  mistaken_leave(&outer);
  scope_leave(&inner, request);
  scope_leave(&outer, TSLAB_DEFAULT);
}

static void scope_same_epoch(void) {
  tslab_epoch request = labelled_open("request");
  tslab_scope outer, inner;
  scope_enter(&outer, request);
  scope_enter(&inner, request);
  mistaken_leave(&outer);
  scope_leave(&inner, request);
  scope_leave(&outer, TSLAB_DEFAULT);
}

static void scope_twice(void) {
  tslab_scope outer, inner;
  scope_enter(&outer, labelled_open("request"));
  scope_enter(&inner, labelled_open("query"));
  tslab_epoch request = outer.epoch;
  scope_leave(&inner, request);
  mistaken_leave(&inner);
  scope_leave(&outer, TSLAB_DEFAULT);
}

static void scope_of_an_epoch_that_is_over(void) {
  tslab_scope scope;
  tslab_epoch query = labelled_open("query");
  scope_enter(&scope, query);
  scope_leave(&scope, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_close(query).error, 0);
  mistaken_leave(&scope);
}

static void scope_never(void) {
  tslab_scope scope;
  tslab_free(tslab_malloc(1));  // options are read with the first allocation
  memset(&scope, 0xa5, sizeof scope);
  mistaken_leave(&scope);
}

static void scope_thread(void) {
  tslab_scope scope;
  scope_enter(&scope, labelled_open("request"));
  thread_run(mistaken_leave, &scope);
  scope_leave(&scope, TSLAB_DEFAULT);
}

static tslab_epoch labelled_child_open(const char *label, tslab_epoch parent) {
  tslab_epoch_options options = {.size = sizeof options, .parent = parent};
  tslab_epoch epoch = tslab_epoch_open(label, &options);
  CHECK_NE(epoch, TSLAB_NO_EPOCH);
  return epoch;
}

static void *forget_run(void *epochs) {
  static tslab_scope scopes[3];
  for (unsigned i = 0; i < 3; i++) scope_enter(&scopes[i], ((const tslab_epoch *)epochs)[i / 2]);
  return NULL;
}

// Each is said once, and nothing else changes.
static void scope_forgotten(void) {
  tslab_epoch epochs[] = {labelled_open("request"), labelled_open("request")};
  epoch_announce(epochs[1]);
  for (unsigned i = 0; i < 3; i++) thread_run(forget_run, epochs);
  CHECK_EQ(tslab_epoch_release(epochs[0]), 0);
  CHECK_EQ(tslab_epoch_release(epochs[1]), 0);
}

static void *forget_default_run(void *unused) {
  static tslab_scope scope;
  (void)unused;
  CHECK_EQ(tslab_scope_default(&scope), 0);
  return NULL;
}

static void scope_forgotten_default(void) {
  text_announce("a thread ended in the default epoch");
  thread_run(forget_default_run, NULL);
}

static int close_it(tslab_epoch epoch) { return tslab_epoch_close(epoch).error; }

static void end_inside(int (*end)(tslab_epoch)) {
  for (unsigned i = 0; i < 3; i++) {
    tslab_epoch request = labelled_open("request");
    tslab_epoch query = labelled_child_open("query", labelled_child_open("part", request));
    tslab_scope scope;
    scope_enter(&scope, query);
    if (i == 0) epoch_announce(query);
    CHECK_EQ(end(request), 0);
    scope_leave(&scope, TSLAB_DEFAULT);
  }
}

static void close_inside(void) { end_inside(close_it); }
static void release_inside(void) { end_inside(tslab_epoch_release); }

static void too_many_open(void) {
  tslab_epoch first = labelled_open("request");
  epoch_announce(first);
  for (unsigned i = 1; i < (1 << 16) + 10; i++) labelled_open(i % 4 == 0 ? "query" : "request");
}

static tslab_epoch slabs_open(void) {
  tslab_epoch_options options = {.size = sizeof options, .first_cell_bytes = TSLAB_NO_CELLS};
  return epoch_open(&options);
}

static void late_of(tslab_epoch epoch, size_t size) {
  void *block = tslab_epoch_malloc(epoch, size), *other = tslab_epoch_malloc(epoch, size);
  CHECK(block != NULL && other != NULL);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  mistaken_free(block);
}

static void late_cell(void) { late_of(epoch_open(NULL), 64); }
static void late_slab(void) { late_of(slabs_open(), 64); }
static void late_medium(void) { late_of(epoch_open(NULL), 20000); }
static void late_large(void) { late_of(epoch_open(NULL), 100 * KIB); }
static void late_huge(void) { late_of(epoch_open(NULL), 200 * MIB); }

// The thread is there before the release: the C library's allocations for it come first.
static sem_t late_released;

static void *late_thread_run(void *block) {
  sem_wait(&late_released);
  mistaken_free(block);
  return NULL;
}

static void late_by_thread_of(size_t size) {
  tslab_epoch epoch = epoch_open(NULL);
  void *block = tslab_epoch_malloc(epoch, size);
  pthread_t thread;
  CHECK_EQ(sem_init(&late_released, 0, 0), 0);
  CHECK_EQ(pthread_create(&thread, NULL, late_thread_run, block), 0);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  sem_post(&late_released);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void late_by_thread(void) { late_by_thread_of(64); }
static void late_large_by_thread(void) { late_by_thread_of(100 * KIB); }

static void late_after_closed(void) {
  tslab_epoch epoch = epoch_open(NULL);
  void *block = tslab_epoch_malloc(epoch, 64);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 1);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  mistaken_free(block);
}

static void twice_of(tslab_epoch epoch, size_t size) {
  tslab_scope scope;
  scope_enter(&scope, epoch);
  void *block = malloc(size);
  free(block);
  mistaken_free(block);
  scope_leave(&scope, TSLAB_DEFAULT);
}

static void twice_cell(void) { twice_of(epoch_open(NULL), 64); }
static void twice_slab(void) { twice_of(slabs_open(), 64); }
static void twice_large(void) { twice_of(epoch_open(NULL), 100 * KIB); }

static void twice_outside(void) {
  tslab_epoch epoch = epoch_open(NULL);
  void *block = tslab_epoch_malloc(epoch, 64);
  free(block);
  mistaken_free(block);
}

// One that shares a place in which this thread has slabs.
static tslab_epoch shared_slabs_open(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  tslab_epoch epoch = epoch_open(&options);
  tslab_scope scope;
  scope_enter(&scope, epoch);
  for (unsigned i = 0; i < 10000; i++) free(malloc(64));
  scope_leave(&scope, TSLAB_DEFAULT);
  return epoch;
}

static void twice_outside_shared(void) {
  void *block = tslab_epoch_malloc(shared_slabs_open(), 64);
  free(block);
  mistaken_free(block);
}

static void twice_threads_shared(void) {
  void *block = tslab_epoch_malloc(shared_slabs_open(), 64);
  thread_run(thread_free_run, block);
  mistaken_free(block);
}

static void twice_outside_slab(void) {
  tslab_epoch epoch = slabs_open();
  void *block = tslab_epoch_malloc(epoch, 64);
  free(block);
  mistaken_free(block);
}

static void twice_threads(void) {
  tslab_epoch epoch = epoch_open(NULL);
  void *block = tslab_epoch_malloc(epoch, 64);
  thread_run(thread_free_run, block);
  mistaken_free(block);
}

static void twice_closed_of(tslab_epoch epoch) {
  void *block = tslab_epoch_malloc(epoch, 64), *other = tslab_epoch_malloc(epoch, 64);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 2);
  free(block);
  mistaken_free(block);
  closed_check(epoch);
  free(other);
  stale_check(epoch);
}

static void twice_closed_cell(void) { twice_closed_of(epoch_open(NULL)); }
static void twice_closed_slab(void) { twice_closed_of(slabs_open()); }

static void interior_of(tslab_epoch epoch, size_t size, size_t offset, bool is_inside) {
  tslab_scope scope;
  scope_enter(&scope, epoch);
  char *block = malloc(size);
  memset(block, 1, size);
  if (!is_inside) scope_leave(&scope, TSLAB_DEFAULT);
  mistaken_free(block + offset);
  if (is_inside) scope_leave(&scope, TSLAB_DEFAULT);
  free(block);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
  stale_check(epoch);
}

static void interior_cell(void) { interior_of(epoch_open(NULL), 64, 16, true); }
static void interior_odd(void) { interior_of(epoch_open(NULL), 64, 1, true); }
static void interior_outside(void) { interior_of(epoch_open(NULL), 64, 48, false); }
static void interior_slab(void) { interior_of(slabs_open(), 64, 16, false); }
static void interior_shared(void) { interior_of(shared_slabs_open(), 64, 16, false); }

// Where a cell's next block would lie; a slab finds that out when it collects what others freed.
static void interior_next(void) {
  if (TSL_SECURE) return interior_outside();
  interior_of(epoch_open(NULL), 64, 1024, false);
}

static void interior_large(void) { interior_of(epoch_open(NULL), 100 * KIB, 4096, true); }

// The last block of an epoch that was closed is freed again.
static void drained_of(tslab_epoch epoch, size_t size) {
  void *block = tslab_epoch_malloc(epoch, size);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 1);
  free(block);
  stale_check(epoch);
  mistaken_free(block);
}

static void drained_cell(void) { drained_of(epoch_open(NULL), 64); }
static void drained_slab(void) { drained_of(slabs_open(), 64); }
static void drained_large(void) { drained_of(epoch_open(NULL), 100 * KIB); }

static void late_realloc(void) {
  tslab_epoch epoch = epoch_open(NULL);
  void *block = tslab_epoch_malloc(epoch, 64);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  pointer_announce(block);
  CHECK(realloc(block, 1000) == NULL);
}

static const struct mistake {
  const char *name;
  void (*make)(void);
  const char *reason;  // in the message; NULL: one of several
} mistakes[] = {
    {"scope-order", scope_order, "\"request\" is not the innermost one; this thread is in epoch"},
    {"scope-order-inner", scope_order, " \"query\"; called from 0x"},
    {"scope-same-epoch", scope_same_epoch, "\"request\" is not the innermost one"},
    {"scope-twice", scope_twice, "\"query\" was left already, or never entered; this thread is in"},
    {"scope-over", scope_of_an_epoch_that_is_over, " (over) was left already"},
    {"scope-never", scope_never, "never entered; this thread is in the default epoch"},
    {"scope-thread", scope_thread, "\"request\" was entered by another thread"},
    {"late-cell", late_cell, NULL},
    {"late-slab", late_slab, "not a block"},
    {"late-medium", late_medium, "not a block"},
    {"late-large", late_large, "not a block"},
    {"late-huge", late_huge, "not a block"},
    {"late-by-thread", late_by_thread, NULL},
    {"late-large-by-thread", late_large_by_thread, "not a block"},
    {"late-after-closed", late_after_closed, NULL},
    {"late-realloc", late_realloc, "not a block"},
    {"twice-cell", twice_cell, "free already"},
    {"twice-slab", twice_slab, "free already"},
    {"twice-large", twice_large, "not a block"},
    {"twice-outside", twice_outside, "free already"},
    {"twice-outside-slab", twice_outside_slab, "free already"},
    {"twice-outside-shared", twice_outside_shared, "free already"},
    {"twice-threads-shared", twice_threads_shared, "free already"},
    {"twice-threads", twice_threads, "free already"},
    {"twice-closed-cell", twice_closed_cell, "free already"},
    {"twice-closed-slab", twice_closed_slab, "free already"},
    {"interior-cell", interior_cell, "not the beginning"},
    {"interior-odd", interior_odd, "not the beginning"},
    {"interior-outside", interior_outside, "not the beginning"},
    {"interior-slab", interior_slab, "not the beginning"},
    {"interior-shared", interior_shared, "not the beginning"},
    {"interior-next", interior_next, "not the beginning"},
    {"interior-large", interior_large, "not the beginning"},
    {"drained-cell", drained_cell, NULL},
    // Its unit may be another slab's by then: "not a block", or "the block is free already".
    {"drained-slab", drained_slab, "block"},
    {"drained-large", drained_large, "not a block"},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

// Those that are reported only, whatever else `on_error` says.
static const struct mistake harmless[] = {
    {"scope-forgotten", scope_forgotten, " \"request\" without leaving 1 scope of epoch "},
    {"scope-forgotten-default", scope_forgotten_default,
     "without leaving 1 scope of the default epoch: each"},
    {"close-inside", close_inside, "_close of epoch 16777217 \"request\" by a thread that is in"},
    {"release-inside", release_inside, "_release of epoch 16777217 \"request\" by a thread"},
    {"too-many-open", too_many_open, "65535 epochs are open, 49152 of them \"request\"; the first"},
};
enum { HARMLESS = sizeof harmless / sizeof *harmless };

static const struct mistake *mistake_named(const char *name) {
  for (int i = 0; i < MISTAKES; i++)
    if (strcmp(mistakes[i].name, name) == 0) return &mistakes[i];
  for (int i = 0; i < HARMLESS; i++)
    if (strcmp(harmless[i].name, name) == 0) return &harmless[i];
  return NULL;
}

// After a mistake that was only reported epochs still have to work.
static void epochs_work_check(void) {
  enum { COUNT = 2000 };
  static void *blocks[COUNT];
  for (unsigned round = 0; round < 3; round++) {
    tslab_epoch epoch = epoch_open(NULL);
    for (unsigned i = 0; i < COUNT; i++) {
      blocks[i] = tslab_epoch_malloc(epoch, i % 700);
      pattern_fill(blocks[i], i % 700, i);
      CHECK_LANDS(epoch, blocks[i]);
    }
    for (unsigned i = 0; i < COUNT; i++) pattern_check(blocks[i], i % 700, i);
    for (unsigned i = 0; i < COUNT / 2; i++) free(blocks[i]);
    CHECK_EQ(tslab_epoch_close(epoch).objects, COUNT / 2);
    for (unsigned i = COUNT / 2; i < COUNT; i++) free(blocks[i]);
    stale_check(epoch);
  }
}

static int mistake_make(const char *name) {
  const struct mistake *mistake = mistake_named(name);
  if (mistake == NULL) return 2;
  mistake->make();
  epochs_work_check();
  return 0;
}

static void action_set(const void *action) {
  char setting[64];
  snprintf(setting, sizeof setting, "on_error:%s", (const char *)action);
  setenv("TSLAB_CONF", setting, 1);
}

static void no_action_set(const void *action) {
  (void)action;
  unsetenv("TSLAB_CONF");
}

// One line, "tslab: free(0x...): ...", with the pointer that the child announced, and why.
static int is_named(const struct child *child, const struct mistake *mistake) {
  const char *end = strchr(child->errors, '\n');
  return strncmp(child->errors, "tslab: ", 7) == 0 && end != NULL && end[1] == '\0' &&
         strstr(child->errors, child->output) != NULL &&
         (mistake->reason == NULL || strstr(child->errors, mistake->reason) != NULL);
}

// Of `action` only whether it is to be ignored matters where the mistake is harmless.
static int is_as_promised(const struct child *child, const struct mistake *mistake,
                          const char *action, bool is_harmless) {
  bool goes_on = is_harmless || strcmp(action, "report") == 0;
  if (strcmp(action, "ignore") == 0) return child_ended_well(child) && child->errors[0] == '\0';
  if (goes_on) return child_ended_well(child) && is_named(child, mistake);
  return child_ended_by(child, SIGABRT) && is_named(child, mistake);
}

static int failures;

static void mistake_try(const char *program, const struct mistake *mistake, const char *action,
                        bool is_harmless) {
  struct child child;
  int is_default = strcmp(action, "default") == 0;
  child_run(&child, program, mistake->name, is_default ? no_action_set : action_set, action);
  child.output[strcspn(child.output, "\n")] = '\0';
  if (is_as_promised(&child, mistake, action, is_harmless)) return;
  failures++;
  check_print("%s, on_error:%s: status 0x%x, pointer %s, stderr: %.300s\n", mistake->name, action,
              (unsigned)child.status, child.output, child.errors[0] ? child.errors : "(nothing)\n");
}

// Only the innermost scope can be left; a refused call changes nothing. Misuse is ignored here.
static void wrong_order_test(void) {
  tslab_epoch first = epoch_open(NULL), second = epoch_open(NULL);
  tslab_scope outer, inner, unused = {0};
  CHECK_EQ(tslab_scope_leave(&unused), EPERM);
  scope_enter(&outer, first);
  scope_enter(&inner, second);
  CHECK_EQ(tslab_scope_leave(&outer), EPERM);
  CHECK_EQ(tslab_scope_leave(&unused), EPERM);
  CHECK_EQ(tslab_epoch_current(), second);
  scope_leave(&inner, first);
  CHECK_EQ(tslab_scope_leave(&inner), EPERM);
  scope_leave(&outer, TSLAB_DEFAULT);
  CHECK_EQ(tslab_scope_leave(&outer), EPERM);
  CHECK_EQ(tslab_epoch_close(first).objects, 0);
  CHECK_EQ(tslab_epoch_close(second).objects, 0);
}

// The same epoch twice: the scopes still have an order.
static void wrong_order_same_test(tslab_epoch epoch) {
  tslab_scope outer, inner;
  scope_enter(&outer, epoch);
  scope_enter(&inner, epoch);
  CHECK_EQ(tslab_scope_leave(&outer), EPERM);
  CHECK_EQ(tslab_epoch_current(), epoch);
  scope_leave(&inner, epoch);
  scope_leave(&outer, TSLAB_DEFAULT);
}

static void *foreign_leave_run(void *scope) {
  CHECK_EQ(tslab_scope_leave(scope), EPERM);
  return NULL;
}

static void wrong_thread_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  tslab_scope scope;
  scope_enter(&scope, epoch);
  thread_run(foreign_leave_run, &scope);
  CHECK_EQ(tslab_epoch_current(), epoch);
  scope_leave(&scope, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
}

static void ended_ids_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  void *block = tslab_epoch_malloc(epoch, 10);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 1);
  closed_check(epoch);
  free(block);
  stale_check(epoch);
  stale_check(TSLAB_NO_EPOCH);
  for (int bit = 0; bit < 64; bit++) {
    tslab_epoch changed = epoch ^ (tslab_epoch)1 << bit;
    if (changed != TSLAB_DEFAULT) stale_check(changed);
  }
}

int main(int argc, char **argv) {
  static const char *const actions[] = {"default", "abort", "report", "ignore"};
  if (argc == 2) return mistake_make(argv[1]);
  for (int action = 0; action < 4; action++) {
    for (int i = 0; i < MISTAKES; i++) mistake_try(argv[0], &mistakes[i], actions[action], false);
    for (int i = 0; i < HARMLESS; i++) mistake_try(argv[0], &harmless[i], actions[action], true);
  }
  CHECK_THAT(failures == 0, "%d of %d outcomes differ from the tables", failures,
             4 * (MISTAKES + HARMLESS));
  CHECK_EQ(tslab_option_set("on_error", "ignore"), 0);
  wrong_order_test();
  wrong_thread_test();
  ended_ids_test();
  tslab_epoch epoch = epoch_open(NULL);
  wrong_order_same_test(epoch);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
  wrong_order_same_test(TSLAB_DEFAULT);
  return 0;
}
