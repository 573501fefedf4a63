// realloc that moves pages instead of copying them: growth stays cheap however often blocks moved
// before, and the system is left enough mappings.
#include <fcntl.h>
#include <sys/mman.h>

#include "blocks.h"

enum { STEP = 64 * 1024, EARLIER_MOVES = 1500, HEDGE = 64, LIVE = 100, ROUNDS = 2000 };
enum { MAPPINGS_EACH = TSL_SECURE ? 3 : 2 };

static size_t mappings(void) {
  static char text[65536];
  size_t lines = 0;
  int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  CHECK(file >= 0);
  for (ssize_t length; (length = read(file, text, sizeof text)) > 0;)
    for (ssize_t i = 0; i < length; i++) lines += text[i] == '\n';
  close(file);
  return lines;
}

// Takes what lies behind the block, and what is nearer to hand.
static void hem_in(const char *block, size_t bytes) {
  for (int i = 0; i < HEDGE; i++)
    if (malloc(STEP) == block + bytes) return;
}

// A block that had to leave its place.
static char *moved_block(void) {
  char *block = malloc(2 * MIB);
  block[0] = 1;
  hem_in(block, 2 * MIB);
  block = realloc(block, 3 * MIB);
  CHECK(block != NULL && block[0] == 1);
  return block;
}

// Pages that were moved are gone from where they were; what was copied is still there.
static size_t copied_bytes(const void *before, const void *after, size_t bytes) {
  unsigned char resident = 0;
  if (before == after) return 0;
  CHECK_EQ(mincore((void *)before, 1, &resident), 0);
  return (resident & 1) == 0 ? 0 : bytes;
}

// By steps of one unit from 2 MiB to 24: copied at each step that would be 4.6 GB.
static void growth_test(void) {
  size_t copied = 0;
  for (int move = 0; move < EARLIER_MOVES; move++) free(moved_block());
  char *block = malloc(2 * MIB), *before = block;
  memset(block, 1, 2 * MIB);
  for (size_t bytes = 2 * MIB; bytes < 24 * MIB; bytes += STEP, before = block) {
    hem_in(block, bytes);
    block = realloc(block, bytes + STEP);
    copied += copied_bytes(before, block, bytes);
    memset(block + bytes, 1, STEP);
  }
  CHECK_LE(copied, 24 * MIB);
  for (size_t at = 0; at < 24 * MIB; at += 4096) CHECK_EQ(block[at], 1);
  free(block);
}

// What moved needs two mappings at most while it lives, one more for its guard in the secure build,
// and none once it is freed and that has gone back.
static void mappings_test(void) {
  static char *live[LIVE];
  malloc_trim(0);
  size_t before = mappings();
  for (int round = 0; round < ROUNDS; round++) {
    char **place = &live[(size_t)rand() % LIVE];
    free(*place);
    *place = moved_block();
  }
  malloc_trim(0);
  CHECK_LE(mappings(), before + MAPPINGS_EACH * LIVE + 20);
  for (int i = 0; i < LIVE; i++) free(live[i]);
  malloc_trim(0);
  CHECK_LE(mappings(), before + 20);
}

int main(void) {
  growth_test();
  mappings_test();
  return 0;
}
