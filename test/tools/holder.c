// holder: holds memory in every way that there is, says what of it lives by its own count, and
// waits until its input ends.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tslab.h>

enum {
  SMALL_BLOCKS = 100000,
  LARGE_BLOCKS = 12,
  LARGE_BYTES = 3 << 20,
  PAGES = 3000,
  REFILLS = 4000,
  REST_MS = 300,
  OPEN_EPOCHS = 2
};

static void *default_blocks[SMALL_BLOCKS], *tenant_blocks[SMALL_BLOCKS];
static size_t live_bytes, live_objects;

// In TSLAB_DEFAULT too. Writes to the first `touched` bytes.
static void *keep(tslab_epoch epoch, size_t bytes, size_t touched) {
  void *block = tslab_epoch_malloc(epoch, bytes);
  if (block == NULL) abort();
  memset(block, 1, touched);
  live_bytes += tslab_usable_size(block);
  live_objects++;
  return block;
}

static void drop(void *block) {
  live_bytes -= tslab_usable_size(block);
  live_objects--;
  tslab_free(block);
}

static size_t some_bytes(int i) { return (size_t)(i % 40) * 16 + 1; }

// Of blocks of two epochs, each second one: a thread of its own frees them.
static void *drop_half(void *unused) {
  for (int i = 0; i < SMALL_BLOCKS; i += 2) {
    drop(default_blocks[i]);
    drop(tenant_blocks[i]);
  }
  return unused;
}

static void fill_default(void) {
  for (int i = 0; i < SMALL_BLOCKS; i++)
    default_blocks[i] = keep(TSLAB_DEFAULT, some_bytes(i), some_bytes(i));
  for (int i = 0; i < LARGE_BLOCKS; i++) keep(TSLAB_DEFAULT, LARGE_BYTES, LARGE_BYTES / 2);
}

static void fill_tenant(tslab_epoch tenant, tslab_epoch task) {
  for (int i = 0; i < SMALL_BLOCKS; i++)
    tenant_blocks[i] = keep(tenant, some_bytes(i), some_bytes(i));
  for (int i = 0; i < LARGE_BLOCKS; i++) keep(task, LARGE_BYTES, LARGE_BYTES / 2);
}

// Small, short epochs come to share their label's memory.
static void serve_page(void) {
  tslab_epoch page = tslab_epoch_open("GET /page", NULL);
  keep(page, 128, 128);
  for (int i = 0; i < 9; i++) tslab_free(tslab_epoch_malloc(page, 100));
  tslab_epoch_close(page);
}

static void upload(void) {
  tslab_epoch epoch = tslab_epoch_open("upload", NULL);
  for (int i = 0; i < 1000; i++) keep(epoch, 1000, 1000);
  keep(epoch, LARGE_BYTES, LARGE_BYTES);
  tslab_epoch_close(epoch);
}

// The process tells of itself every few refills; the first of them begin the time that it must have
// lived for.
static void tell(void) {
  struct timespec rest = {0, REST_MS * 1000000L};
  for (size_t i = 0; i < 2 * REFILLS; i++) {
    keep(TSLAB_DEFAULT, 16, 16);
    if (i == REFILLS) nanosleep(&rest, NULL);
  }
}

int main(void) {
  tslab_epoch tenant = tslab_epoch_open("tenant", NULL);
  tslab_epoch_options options = {.size = sizeof options, .parent = tenant};
  tslab_epoch task = tslab_epoch_open("task", &options);
  fill_default();
  fill_tenant(tenant, task);
  upload();
  for (int i = 0; i < PAGES; i++) serve_page();
  pthread_t thread;
  if (pthread_create(&thread, NULL, drop_half, NULL) != 0) return 2;
  pthread_join(thread, NULL);
  tell();
  printf("{\"live_bytes\": %zu, \"live_objects\": %zu, \"epochs_open\": %d}\n", live_bytes,
         live_objects, OPEN_EPOCHS);
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}
