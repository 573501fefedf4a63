// asker: a server of which an operator asks questions. It says "loaded" when its pool holds all
// rows. It does what the lines of its input say, and answers each with "done":
//   grow   its cache grows by 40 MiB
//   thin   of the rows that its pool holds, 3 of 4 are freed
//   drop   its cache is empty again
// Meanwhile its requests leave an object each behind.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tslab.h>
#include <unistd.h>

enum { ROW_BYTES = 1000, ROWS = 20000, ENTRY_BYTES = 4000, ENTRIES = 10000, LEFT_BYTES = 2000 };

static void *rows[ROWS], *entries[ENTRIES];
static atomic_int loaded, ended;

// What is done with a result keeps a call from becoming a jump, which no stack would show.
static void *filled(size_t bytes) {
  void *block = malloc(bytes);
  if (block == NULL) abort();
  return memset(block, 1, bytes);
}

__attribute__((noinline)) static void *load_row(void) {
  void *row = filled(ROW_BYTES);
  return memset(row, 2, 1);
}

static void *pool_main(void *unused) {
  for (unsigned i = 0; i < ROWS; i++) rows[i] = load_row();
  atomic_store(&loaded, 1);
  while (!atomic_load(&ended)) usleep(1000);
  return unused;
}

__attribute__((noinline)) static void *upload(void) {
  void *passing = filled(ENTRY_BYTES);
  void *left = filled(LEFT_BYTES);
  free(passing);
  return memset(left, 2, 1);
}

static void *request_main(void *unused) {
  while (!atomic_load(&ended)) {
    tslab_epoch request = tslab_epoch_open("GET /upload", NULL);
    tslab_scope here;
    if (tslab_scope_enter(&here, request) == 0) {
      upload();
      tslab_scope_leave(&here);
    }
    tslab_epoch_close(request);
    usleep(1000);
  }
  return unused;
}

__attribute__((noinline)) static void fill_cache(void) {
  for (unsigned i = 0; i < ENTRIES; i++) entries[i] = filled(ENTRY_BYTES);
}

static void drop_cache(void) {
  for (unsigned i = 0; i < ENTRIES; i++) free(entries[i]);
}

static void thin_rows(void) {
  for (unsigned i = 0; i < ROWS; i++) {
    if (i % 4 != 0) free(rows[i]);
  }
}

int main(void) {
  pthread_t pool, requests;
  if (pthread_create(&pool, NULL, pool_main, NULL) != 0) return 2;
  if (pthread_create(&requests, NULL, request_main, NULL) != 0) return 2;
  while (!atomic_load(&loaded)) usleep(1000);
  puts("loaded");
  fflush(stdout);
  char line[16];
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strcmp(line, "grow\n") == 0) fill_cache();
    if (strcmp(line, "thin\n") == 0) thin_rows();
    if (strcmp(line, "drop\n") == 0) drop_cache();
    puts("done");
    fflush(stdout);
  }
  atomic_store(&ended, 1);
  pthread_join(pool, NULL);
  pthread_join(requests, NULL);
  return 0;
}
