// soft_limit: a program that would keep 1 GiB idle, under a soft limit of 256 MiB (option
// `soft_limit`, which the environment sets). After each phase at most 5 % more is resident than the
// limit. Where more than that is live, it may be a tenth more than is live: records, and what slabs
// that are less than three quarters free keep between live blocks.
#include <malloc.h>

#include "shadow.h"

enum { LISTS = 16, PATIENCE_MS = 20000, LOOK_MS = 20, SKIPPED = 77 };

#define LIMIT (256 * MIB)
#define MUCH GIB

struct link {
  struct link *next;
  size_t size;
};

// Blocks in no particular order: each goes to any of the lists.
static struct link *lists[LISTS];
static size_t live_bytes;

static void block_add(struct random *random, size_t size) {
  if (size < sizeof(struct link)) size = sizeof(struct link);
  struct link *link = malloc(size);
  CHECK(link != NULL);
  size = malloc_usable_size(link);
  memset(link, 0x5a, size);
  unsigned list = (unsigned)random_below(random, LISTS);
  *link = (struct link){lists[list], size};
  lists[list] = link;
  live_bytes += size;
}

static void list_free(struct link **list, size_t most) {
  for (size_t freed = 0; *list != NULL && freed < most;) {
    struct link *link = *list;
    *list = link->next;
    freed += link->size;
    live_bytes -= link->size;
    free(link);
  }
}

static void all_free(void) {
  for (unsigned i = 0; i < LISTS; i++) list_free(&lists[i], SIZE_MAX);
  CHECK_EQ(live_bytes, 0);
}

static size_t most_resident(void) {
  size_t held = LIMIT + LIMIT / 20, beyond = live_bytes + live_bytes / 10;
  return beyond > held ? beyond : held;
}

// Exact, unlike what /proc/self/statm says on some kernels.
static size_t resident_bytes(void) { return process_file_bytes("/proc/self/smaps_rollup", "Rss:"); }

static void check_held(const char *phase) {
  size_t resident = resident_bytes();
  CHECK_THAT(resident <= most_resident(), "%s: %zu KiB are resident, %zu KiB live", phase,
             resident / KIB, live_bytes / KIB);
}

// The helper, or the thread's own slow paths, get there in their time; the bound is for a machine
// that does not come to run them.
static void check_held_soon(const char *phase) {
  for (int ms = 0; ms < PATIENCE_MS && resident_bytes() > most_resident(); ms += LOOK_MS)
    usleep(LOOK_MS * 1000);
  check_held(phase);
}

static void grow_to(struct random *random, size_t bytes, size_t size, int log2) {
  while (live_bytes < bytes) block_add(random, size != 0 ? size : random_size(random, log2));
}

// Frees from each list, its newest blocks first, until so much is live.
static void shrink_to(size_t bytes) {
  size_t each = live_bytes > bytes ? (live_bytes - bytes) / LISTS : 0;
  for (unsigned i = 0; i < LISTS; i++) list_free(&lists[i], each);
}

static void phases(struct random *random, const char *name, int log2) {
  check_context_set("%s", name);
  grow_to(random, MUCH, 0, log2);
  shrink_to(MUCH / 2);
  check_held_soon("half freed");
  shrink_to(LIMIT / 4);
  check_held_soon("most freed");
  grow_to(random, LIMIT / 2, 0, log2);
  check_held_soon("grown again");
  all_free();
  check_held_soon("all freed");
}

// Slabs stay because of a block here and there: only the pages between these go back.
static void survivors_are_held(struct random *random) {
  check_context_set("survivors");
  grow_to(random, MUCH, 4 * KIB, 0);
  for (unsigned i = 1; i < LISTS; i++) list_free(&lists[i], SIZE_MAX);
  check_held_soon("one list in 16 is left");
  all_free();
}

// Blocks of whole units go back in the call that frees them, and with the call that takes others.
static void units_are_held_at_once(struct random *random, size_t size) {
  check_context_set("blocks of %zu bytes", size);
  grow_to(random, MUCH, size, 0);
  check_held("grown");
  shrink_to(MUCH / 2);
  check_held("half freed");
  shrink_to(LIMIT / 4);
  check_held("most freed");
  grow_to(random, LIMIT / 2, 3 * size, 0);
  check_held("of another size");
  all_free();
  check_held("all freed");
}

int main(void) {
  struct random random = {17};
  if (process_file_bytes("/proc/meminfo", "MemAvailable:") < MUCH + MUCH / 2) return SKIPPED;
  units_are_held_at_once(&random, 64 * KIB);
  units_are_held_at_once(&random, MIB);
  phases(&random, "up to 1 MiB", 20);
  phases(&random, "up to 1 KiB", 10);
  survivors_are_held(&random);
  return 0;
}
