// Uses of objects after their epoch was released, with option `release:poison`: each is reported,
// with the label and the size. Without the option the same reads go unnoticed.
//
// Run without arguments, the program starts itself for each case and each setting. With the name of
// a case it makes that mistake.
#include <setjmp.h>

#include "../child.h"
#include "epochs.h"

enum { FILL = 0x5A, HELD_BACK = 64 };

struct object {
  char *block;
  size_t bytes;
};

static struct object object_of(size_t bytes, size_t first_cell_bytes) {
  tslab_epoch_options options = {
      .size = sizeof options, .place = TSLAB_PLACE_OWN, .first_cell_bytes = first_cell_bytes};
  tslab_epoch epoch = tslab_epoch_open("ends early", &options);
  struct object object = {tslab_epoch_malloc(epoch, bytes), bytes};
  CHECK(object.block != NULL && tslab_epoch_malloc(epoch, bytes) != NULL);
  memset(object.block, FILL, bytes);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  return object;
}

// The class of 64 bytes; in the secure build there is a canary behind them.
#define SMALL (TSL_SECURE ? "; 80 bytes" : "; 64 bytes")

static volatile char seen;

static void read_of(struct object object) { seen = object.block[object.bytes - 1]; }
static void write_of(struct object object) { *(volatile char *)object.block = 1; }

// The report says when the epoch ended, by a clock that moves in steps of some milliseconds.
enum { WAITED_MS = 20, CLOCK_MS = 10, LONGEST_MS = 300000 };

static void wait_for_a_while(void) { CHECK_EQ(usleep(WAITED_MS * 1000), 0); }

static void read_cell(void) {
  struct object object = object_of(64, 0);
  wait_for_a_while();
  read_of(object);
}
static void read_slab(void) { read_of(object_of(64, TSLAB_NO_CELLS)); }
static void read_medium(void) { read_of(object_of(20000, TSLAB_NO_CELLS)); }
static void read_large(void) { read_of(object_of(300 * KIB, 0)); }
static void write_cell(void) { write_of(object_of(64, 0)); }
static void write_slab(void) { write_of(object_of(64, TSLAB_NO_CELLS)); }
static void write_large(void) { write_of(object_of(300 * KIB, 0)); }
static void free_cell(void) { free(object_of(64, 0).block); }
static void free_slab(void) { free(object_of(64, TSLAB_NO_CELLS).block); }
static void free_medium(void) { free(object_of(20000, TSLAB_NO_CELLS).block); }
static void free_large(void) { free(object_of(300 * KIB, 0).block); }
static void realloc_cell(void) { CHECK(realloc(object_of(64, 0).block, 5000) != NULL); }

// It was freed before the release.
static void read_freed(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_OWN};
  tslab_epoch epoch = tslab_epoch_open("ends early", &options);
  struct object object = {tslab_epoch_malloc(epoch, 64), 64};
  free(object.block);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  read_of(object);
}

static void read_survivor(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_OWN};
  tslab_epoch epoch = tslab_epoch_open("ends early", &options);
  struct object object = {tslab_epoch_malloc(epoch, 64), 64};
  CHECK_EQ(tslab_epoch_close(epoch).objects, 1);
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  read_of(object);
}

static void read_child(void) {
  tslab_epoch parent = epoch_open(NULL);
  tslab_epoch_options options = {.size = sizeof options, .parent = parent};
  tslab_epoch child = tslab_epoch_open("ends early", &options);
  struct object object = {tslab_epoch_malloc(child, 64), 64};
  CHECK_EQ(tslab_epoch_release(parent), 0);
  read_of(object);
}

// The epoch goes on, and an object of its next round lives.
static struct object object_before_reset(size_t bytes, size_t first_cell_bytes) {
  tslab_epoch_options options = {
      .size = sizeof options, .place = TSLAB_PLACE_OWN, .first_cell_bytes = first_cell_bytes};
  tslab_epoch epoch = tslab_epoch_open("ends early", &options);
  struct object object = {tslab_epoch_malloc(epoch, bytes), bytes};
  CHECK(object.block != NULL);
  memset(object.block, FILL, bytes);
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  char *next = tslab_epoch_malloc(epoch, bytes);
  CHECK(next != NULL);
  memset(next, FILL, bytes);
  return object;
}

static void read_before_reset(void) {
  struct object object = object_before_reset(64, 0);
  wait_for_a_while();
  read_of(object);
}
static void write_before_reset(void) { write_of(object_before_reset(64, TSLAB_NO_CELLS)); }
static void free_before_reset(void) { free(object_before_reset(300 * KIB, 0).block); }

// One object is kept, and the other lies in another cell.
static void free_beside_kept(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_OWN};
  tslab_epoch epoch = tslab_epoch_open("ends early", &options);
  CHECK_EQ(tslab_epoch_keep(tslab_epoch_malloc(epoch, 64)), 0);
  char *block = NULL;
  for (size_t bytes = 0; bytes < 128 * KIB; bytes += 64) block = tslab_epoch_malloc(epoch, 64);
  CHECK_EQ(tslab_epoch_reset(epoch), 0);
  free(block);
}

// The epoch is released while its thread is inside.
static void read_left(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_OWN};
  tslab_epoch epoch = tslab_epoch_open("ends early", &options);
  tslab_scope scope;
  scope_enter(&scope, epoch);
  struct object object = {malloc(64), 64};
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  read_of(object);  // not yet
  CHECK(tslab_epoch_of(object.block) == epoch);
  scope_leave(&scope, TSLAB_DEFAULT);
  free(object.block);
}

static const struct mistake {
  const char *name;
  void (*make)(void);
  const char *said;
  const char *size;
  bool is_silent;  // without the option
} mistakes[] = {
    {"read-cell", read_cell, "use of ", SMALL, true},
    {"read-slab", read_slab, "use of ", SMALL, true},
    {"read-medium", read_medium, "use of ", "; 20480 bytes", true},
    {"read-large", read_large, "use of ", "; 327680 bytes", false},
    {"read-freed", read_freed, "use of ", SMALL, true},
    {"read-survivor", read_survivor, "use of ", SMALL, true},
    {"read-child", read_child, "use of ", SMALL, true},
    {"read-left", read_left, "free(", SMALL, false},
    {"read-before-reset", read_before_reset, "use of ", SMALL, true},
    {"write-before-reset", write_before_reset, "use of ", SMALL, true},
    {"free-before-reset", free_before_reset, "free(", "; 327680 bytes", false},
    {"free-beside-kept", free_beside_kept, "free(", SMALL, false},
    {"write-cell", write_cell, "use of ", SMALL, true},
    {"write-slab", write_slab, "use of ", SMALL, true},
    {"write-large", write_large, "use of ", "; 327680 bytes", false},
    {"free-cell", free_cell, "free(", SMALL, false},
    {"free-slab", free_slab, "free(", SMALL, false},
    {"free-medium", free_medium, "free(", "; 20480 bytes", false},
    {"free-large", free_large, "free(", "; 327680 bytes", false},
    {"realloc-cell", realloc_cell, "use of ", SMALL, false},
};

// The program's own handler gets what is not ours.
static sigjmp_buf fault;

static volatile sig_atomic_t is_handled;

static void handler_run(int number) {
  is_handled = number == SIGSEGV;
  siglongjmp(fault, number);
}

static void null_write(void) {
  volatile char *volatile null = NULL;
  *null = 1;
}

static void own_handler_stays(void) {
  CHECK(signal(SIGSEGV, handler_run) != SIG_ERR);
  (void)object_of(64, 0);
  if (sigsetjmp(fault, 1) == 0) {
    null_write();
    CHECK(false);
  }
  CHECK(is_handled);
}

static int epoch_count(tslab_epoch epoch, void *epochs) {
  (void)epoch;
  ++*(size_t *)epochs;
  return 0;
}

// Memory that waited is of use again, and what waits is bounded.
static void memory_comes_back(void) {
  for (unsigned i = 0; i < 20 * HELD_BACK; i++) {
    struct object object = object_of(64, i % 2 == 0 ? 0 : TSLAB_NO_CELLS);
    CHECK(object.block != NULL);
  }
  size_t epochs = 0;
  tslab_epochs_each(epoch_count, &epochs);
  CHECK_EQ(epochs, HELD_BACK);
}

static void poisoned(const void *on_error) {
  setenv("TSLAB_RELEASE", "poison", 1);
  setenv("TSLAB_ON_ERROR", on_error, 1);
}

static void reused(const void *unused) {
  (void)unused;
  setenv("TSLAB_RELEASE", "reuse", 1);
  setenv("TSLAB_ON_ERROR", "abort", 1);
}

static void message_check(const struct mistake *mistake, const char *errors) {
  CHECK_THAT(strstr(errors, mistake->said) != NULL, "%s", errors);
  unsigned long long ms = 0;
  const char *ended = strstr(errors, "ended as its epoch was ");
  CHECK_THAT(ended != NULL, "%s", errors);
  CHECK_EQ(sscanf(ended, "ended as its epoch was released or reset %llu ms ago", &ms), 1);
  CHECK_THAT(ms <= LONGEST_MS, "%s", errors);
  bool has_waited = mistake->make == read_cell || mistake->make == read_before_reset;
  CHECK_THAT(!has_waited || ms + CLOCK_MS >= WAITED_MS, "%s", errors);
  CHECK_THAT(strstr(errors, mistake->size) != NULL, "%s", errors);
  CHECK_THAT(strstr(errors, "\"ends early\"") != NULL, "%s", errors);
}

static void mistake_check(const char *program, const struct mistake *mistake) {
  struct child child;
  check_context_set("%s", mistake->name);
  child_run(&child, program, mistake->name, poisoned, "abort");
  CHECK_THAT(child_ended_by(&child, SIGABRT), "status %d, %s", child.status, child.errors);
  message_check(mistake, child.errors);
  child_run(&child, program, mistake->name, poisoned, "report");
  CHECK_THAT(child_ended_well(&child), "status %d, %s", child.status, child.errors);
  message_check(mistake, child.errors);
  child_run(&child, program, mistake->name, reused, NULL);
  bool is_silent = child_ended_well(&child) && *child.errors == '\0';
  CHECK_THAT(is_silent || !mistake->is_silent, "status %d, %s", child.status, child.errors);
}

int main(int count, char **values) {
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    if (count == 1) mistake_check(values[0], &mistakes[i]);
    if (count == 1 || strcmp(values[1], mistakes[i].name) != 0) continue;
    mistakes[i].make();
    return 0;
  }
  if (count == 1) return 0;
  if (strcmp(values[1], "own-handler") == 0) own_handler_stays();
  if (strcmp(values[1], "comes-back") == 0) memory_comes_back();
  return 0;
}
