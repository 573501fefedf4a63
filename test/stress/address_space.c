// address_space: how much of it a program has, as the system counts it (VmSize), and how much of
// what `ulimit -v` leaves it can use.
//
// Run without arguments, the program starts itself once for each row, so that start-up happens
// under the row's limit too.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

#include "../child.h"
#include "shadow.h"

// The hardened build keeps a page of each slab closed, and takes its time for each block.
enum {
  USABLE_PERCENT = TSL_SECURE ? 79 : 85,
  MOST_KIB = TSL_SECURE ? 200000 : 1000000,
};

static size_t address_space_bytes(void) {
  char text[64] = "";
  int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  CHECK(file >= 0 && read(file, text, sizeof text - 1) > 0);
  close(file);
  return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static void address_space_set(size_t bytes) {
  struct rlimit limit = {bytes, RLIM_INFINITY};
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

// Blocks of one size until there are no more.
static size_t usable_bytes(size_t size) {
  size_t total = 0;
  void **last = NULL;
  errno = 0;
  for (void **block; (block = malloc(size)) != NULL; last = block, total += size) *block = last;
  CHECK_EQ(errno, ENOMEM);
  while (last != NULL) {
    void **next = *last;
    free(last);
    last = next;
  }
  return total;
}

static void share_test(size_t size, size_t percent) {
  struct rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  size_t usable = usable_bytes(size);
  CHECK_THAT(usable >= limit.rlim_cur / 100 * percent, "%zu KiB of %zu KiB in blocks of %zu",
             usable / KIB, (size_t)limit.rlim_cur / KIB, size);
}

static void *thread_run(void *block) {
  memset(block, 1, 100000);
  free(block);
  return malloc(100);
}

static void thread_test(void) {
  pthread_t thread;
  void *block;
  CHECK_EQ(pthread_create(&thread, NULL, thread_run, malloc(100000)), 0);
  CHECK_EQ(pthread_join(thread, &block), 0);
  CHECK(block != NULL);
  free(block);
}

// A limit that comes later counts what the program uses, and growth meets it.
static void lowered_test(void) {
  const size_t room = 64 * MIB;
  free(malloc(10 * MIB));
  address_space_set(address_space_bytes() + room);
  thread_test();
#ifdef __GLIBC__
  void *library = dlopen("libresolv.so.2", RTLD_NOW);
  CHECK_THAT(library != NULL, "%s", dlerror());
#endif
  CHECK_REFUSED(malloc(4096 * MIB), ENOMEM);
  CHECK_REFUSED(malloc(2 * room), ENOMEM);
  thread_test();
  free(malloc(room / 4));
  CHECK_GE(usable_bytes(10000), room / 2);
  thread_test();
  address_space_set(RLIM_INFINITY);
  void *block = malloc(200 * MIB);
  CHECK(block != NULL);
  free(block);
}

// Before the statistics file is there, and with it.
static void size_test(void) {
  free(malloc(100));
  CHECK_LE(address_space_bytes(), 64 * MIB);
  usleep(150000);
  for (int i = 0; i < 100000; i++) free(malloc((size_t)i % 9000));
  CHECK_LE(address_space_bytes(), 256 * MIB);
  size_t before = address_space_bytes();
  void *block = malloc(100 * MIB);
  CHECK(block != NULL);
  CHECK_LE(address_space_bytes() - before, 400 * MIB);
  free(block);
}

// "share SIZE PERCENT", or the name of a test.
static int row_run(const char *row) {
  size_t size, percent;
  if (sscanf(row, "share %zu %zu", &size, &percent) == 2) {
    share_test(size, percent);
  } else if (strcmp(row, "lowered") == 0) {
    lowered_test();
  } else {
    size_test();
  }
  return 0;
}

static void prepare(const void *limit_kib) {
  if (*(const size_t *)limit_kib != 0) address_space_set(*(const size_t *)limit_kib * KIB);
}

static void row_check(const char *program, const char *argument, size_t limit_kib) {
  struct child child;
  child_run(&child, program, argument, prepare, &limit_kib);
  CHECK_THAT(child_ended_well(&child), "%s %s under %zu KiB: status 0x%x: %s", program, argument,
             limit_kib, (unsigned)child.status, child.errors);
}

// The secure build adds a canary to small blocks and 64 KiB to large ones: of those of 64 KiB half
// is left.
static void share_check(const char *program, size_t size, size_t limit_kib, unsigned percent) {
  if (TSL_SECURE) percent /= 2;
  char argument[64];
  snprintf(argument, sizeof argument, "share %zu %u", size, percent);
  row_check(program, argument, limit_kib);
}

int main(int count, char **values) {
  if (count == 2) return row_run(values[1]);
  row_check(values[0], "size", 0);
  row_check(values[0], "lowered", 0);
  row_check("/bin/ls", "/", 16000);
  row_check("/bin/ls", "/", 30000);
  share_check(values[0], 64, MOST_KIB, USABLE_PERCENT);
  share_check(values[0], 65536, 1000000, USABLE_PERCENT);
  share_check(values[0], 1000, 300000, USABLE_PERCENT - 5);
  share_check(values[0], 64, 64000, USABLE_PERCENT - 10);
  share_check(values[0], 10000, 16000, 50);
  return 0;
}
