// address_limit: programs under `ulimit -v`, from 64 MiB up. They get memory or NULL with ENOMEM,
// never a crash, and what they free they can have again.
//
// Run without arguments, the program starts itself once for each limit, so that start-up happens
// under it too.
#include <pthread.h>
#include <sys/resource.h>

#include "../child.h"
#include "shadow.h"

enum { THREADS = 4 };

// At least this part of the limit must be usable: the rest is for the program, its libraries, and
// our own needs.
#define USABLE_PART 4

// Under a high limit the test runs in this much of it, and untouched blocks hold the rest.
#define FIELD (64 * MIB)
#define BALLAST (32 * MIB)

struct link {
  struct link *next;
  unsigned char *last;
};

static size_t chain_grow(struct link **chain, size_t size, size_t most) {
  size_t total = 0;
  while (total < most) {
    errno = 0;
    struct link *link = malloc(size);
    if (link == NULL) {
      CHECK_EQ(errno, ENOMEM);
      return total;
    }
    *link = (struct link){*chain, (unsigned char *)link + size - 1};
    *link->last = 0x77;
    *chain = link;
    total += size;
  }
  return total;
}

static void chain_free(struct link **chain, size_t links) {
  for (; *chain != NULL && links > 0; links--) {
    struct link *next = (*chain)->next;
    CHECK_EQ(*(*chain)->last, 0x77);
    free(*chain);
    *chain = next;
  }
}

// Each size gets its share after all the others have had theirs and given it back.
static void sizes_test(size_t field) {
  static const size_t sizes[] = {64, 1000, 30000, MIB, 3 * MIB, 200};
  size_t first[sizeof sizes / sizeof *sizes];
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      struct link *chain = NULL;
      size_t total = chain_grow(&chain, sizes[i], field);
      chain_free(&chain, SIZE_MAX);
      CHECK_THAT(total >= field / USABLE_PART, "%zu KiB of %zu KiB in blocks of %zu, round %d",
                 total / KIB, field / KIB, sizes[i], round);
      if (round == 0) first[i] = total;
      CHECK_THAT(total >= first[i] - first[i] / 8, "%zu KiB, at first %zu KiB, in blocks of %zu",
                 total / KIB, first[i] / KIB, sizes[i]);
    }
  }
}

static void ballast_test(size_t limit) {
  struct link *ballast = NULL;
  size_t total = chain_grow(&ballast, BALLAST, SIZE_MAX);
  CHECK_THAT(total >= limit / USABLE_PART, "%zu KiB", total / KIB);
  chain_free(&ballast, FIELD / BALLAST);
  sizes_test(FIELD);
  chain_free(&ballast, SIZE_MAX);
}

static void single_block_test(size_t limit) {
  void *block = malloc(limit / USABLE_PART);
  CHECK_THAT(block != NULL, "one block of %zu KiB", limit / USABLE_PART / KIB);
  free(block);
  CHECK_REFUSED(malloc(limit * 2), ENOMEM);
  CHECK_REFUSED(calloc(2, limit), ENOMEM);
  CHECK_REFUSED(aligned_alloc(64, limit * 2), ENOMEM);
  volatile size_t alignment = (size_t)1 << 36;  // more than compilers like to see
  CHECK_REFUSED(aligned_alloc(alignment, 100), ENOMEM);
}

// Up to a size that can be written in a moment.
static void growing_block_test(size_t limit) {
  struct shadow block;
  size_t most = limit < 256 * MIB ? limit : 256 * MIB;
  CHECK(shadow_take(&block, malloc(MIB), MIB, 1));
  while (block.size < most && shadow_resize(&block, block.size + limit / 16)) continue;
  CHECK_GE(block.size, most / USABLE_PART / 2);
  shadow_drop(&block);
}

static void *thread_run(void *data) {
  struct random random = {(uintptr_t)data};
  struct shadow blocks[64] = {{NULL, 0, 0}};
  for (int i = 0; i < 4000; i++) {
    struct shadow *block = &blocks[random_below(&random, 64)];
    if (block->block != NULL) shadow_drop(block);
    size_t size = random_size(&random, 21);
    errno = 0;
    if (!shadow_take(block, malloc(size), size, random_next(&random))) CHECK_EQ(errno, ENOMEM);
  }
  for (int i = 0; i < 64; i++) shadow_drop(&blocks[i]);
  return NULL;
}

// A limit may leave no room for another stack; the threads that do start have to get by.
static void threads_test(void) {
  pthread_t threads[THREADS];
  int started = 0;
  for (uintptr_t i = 0; i < THREADS; i++)
    if (pthread_create(&threads[started], NULL, thread_run, (void *)i) == 0) started++;
  for (int i = 0; i < started; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static int limited(size_t limit) {
  if (limit < 2 * FIELD) sizes_test(limit);
  if (limit >= 2 * FIELD) ballast_test(limit);
  single_block_test(limit);
  growing_block_test(limit);
  threads_test();
  single_block_test(limit);
  return 0;
}

static void limit_set(const void *mebibytes) {
  struct rlimit limit = {strtoul(mebibytes, NULL, 10) * MIB, RLIM_INFINITY};
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

int main(int count, char **values) {
  static const char *const mebibytes[] = {"64", "100", "256", "500", "4096"};
  if (count == 2) return limited(strtoul(values[1], NULL, 10) * MIB);
  int failures = 0;
  for (size_t i = 0; i < sizeof mebibytes / sizeof *mebibytes; i++) {
    struct child child;
    child_run(&child, values[0], mebibytes[i], limit_set, mebibytes[i]);
    if (child_ended_well(&child)) continue;
    failures++;
    check_print("limit %s MiB: status 0x%x: %s\n", mebibytes[i], (unsigned)child.status,
                child.errors);
  }
  CHECK_THAT(failures == 0, "%d limits", failures);
  return 0;
}
