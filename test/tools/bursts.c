// bursts: a server of jobs that build much, keep a little of it, and end; then there are small ones
// alone for a while, one a millisecond. With `silent` nothing is done between large jobs.
//   bursts plain|epochs JOBS [silent]
// With `epochs` each job has an epoch, and what is kept is made outside. Prints the anonymous
// resident bytes at the highest peak, and at the lowest behind it.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "resident.h"
#include "tslab.h"

enum {
  ROWS = 120000,
  KEPT = 40000,
  KEEPS_1_IN = 30,
  FEW_ROWS = 300,
  PAUSE_MS = 100,
  LAST_MS = 800
};

static void *rows[ROWS];
static void *kept[KEPT];
static bool has_epochs, is_silent;
static struct resident resident;

static uint32_t random_below(uint32_t bound) {
  static uint64_t state = 42;
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(state >> 33) % bound;
}

// What is done with a result keeps a call from becoming a jump, which no stack would show.
__attribute__((noinline)) static void *row_make(void) {
  size_t bytes = 32 + random_below(224);
  void *row = malloc(bytes);
  if (row == NULL) abort();
  return memset(row, 1, bytes);
}

__attribute__((noinline)) static int keep_row(void) {
  tslab_scope outside;
  uint32_t place = random_below(KEPT);
  if (has_epochs && tslab_scope_default(&outside) != 0) abort();
  free(kept[place]);
  kept[place] = row_make();
  if (has_epochs) tslab_scope_leave(&outside);
  return 1;
}

__attribute__((noinline)) static int build_rows(int wanted) {
  int count = 0;
  for (int i = 0; i < wanted; i++) {
    rows[i] = row_make();
    if (random_below(KEEPS_1_IN) == 0) count += keep_row();
  }
  return count;
}

__attribute__((noinline)) static int drop_rows(int wanted) {
  for (int i = 0; i < wanted; i++) free(rows[i]);
  return wanted;
}

__attribute__((noinline)) static int handle_job(int wanted) {
  int count = build_rows(wanted);
  if (wanted == ROWS) resident_look(&resident, true);
  return count + drop_rows(wanted);
}

static int serve(int wanted) {
  tslab_scope here;
  tslab_epoch job = has_epochs ? tslab_epoch_open("job", NULL) : TSLAB_DEFAULT;
  if (has_epochs && tslab_scope_enter(&here, job) != 0) abort();
  int count = handle_job(wanted);
  if (has_epochs) tslab_scope_leave(&here);
  if (has_epochs) tslab_epoch_close(job);
  return count;
}

static int serve_small(int ms) {
  int done = 0;
  for (; ms > 0; ms--) {
    if (!is_silent) done += serve(FEW_ROWS);
    usleep(1000);
  }
  return done;
}

int main(int count, char **arguments) {
  int done = 0;
  if (count < 3) return 2;
  is_silent = count > 3;
  has_epochs = strcmp(arguments[1], "epochs") == 0;
  for (int jobs = atoi(arguments[2]); jobs > 0; jobs--) done += serve(ROWS) + serve_small(PAUSE_MS);
  for (int looks = 10; looks > 0; looks--) {
    done += serve_small(LAST_MS / 10);
    resident_look(&resident, false);
  }
  resident_print(&resident);
  return done > 0 ? 0 : 1;
}
