// What epochs cost: many one after another, many at once, and large blocks in them.
#include "epochs.h"

enum { OPEN = TSL_SECURE ? 10000 : 100000, OBJECTS = 10, EPOCHS = 1000000 };

// Samples come seldom, and the first ones bring the unwinder's tables in.
enum { FIRST = EPOCHS / 10 };

// The hardened build has no cells: each size has a slab of its own, and a page in it.
#define EPOCH_BYTES ((TSL_SECURE ? 80 : 6) * KIB)
#define NOISE_BYTES (256 * KIB)

static size_t mappings(void) {
  static char text[65536];
  size_t lines = 0;
  ssize_t length;
  int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  CHECK(file >= 0);
  while ((length = read(file, text, sizeof text)) > 0)
    for (ssize_t i = 0; i < length; i++) lines += text[i] == '\n';
  close(file);
  return lines;
}

static tslab_epoch ids[OPEN];
static char *objects[OPEN][OBJECTS];

static void objects_make(tslab_epoch epoch, char **made) {
  tslab_scope scope;
  scope_enter(&scope, epoch);
  for (size_t i = 0; i < OBJECTS; i++) {
    made[i] = malloc(16 + 8 * i);
    memset(made[i], (int)i, 16 + 8 * i);
  }
  scope_leave(&scope, TSLAB_DEFAULT);
}

static void objects_check(tslab_epoch epoch, char *const *made) {
  for (size_t i = 0; i < OBJECTS; i++) {
    CHECK_LANDS(epoch, made[i]);
    CHECK(made[i][0] == (char)i && made[i][15 + 8 * i] == (char)i);
  }
}

static void open_at_once_test(void) {
  memset(ids, 1, sizeof ids);
  memset(objects, 1, sizeof objects);
  CHECK_EQ(tslab_epoch_close(epoch_open(NULL)).error, 0);
  tslab_trim(0);
  size_t before = process_resident_bytes();
  for (int i = 0; i < OPEN; i++) {
    ids[i] = epoch_open(NULL);
    objects_make(ids[i], objects[i]);
  }
  size_t each = (process_resident_bytes() - before) / OPEN;
  CHECK_LE(each, EPOCH_BYTES);
  for (int i = 0; i < OPEN; i++) objects_check(ids[i], objects[i]);
  for (int i = 0; i < OPEN; i++) {
    if (i % 2 == 0) CHECK_EQ(tslab_epoch_release(ids[i]), 0);
    if (i % 2 == 0) continue;
    CHECK_EQ(tslab_epoch_close(ids[i]).objects, OBJECTS);
    for (int object = 0; object < OBJECTS; object++) free(objects[i][object]);
  }
  for (int i = 0; i < OPEN; i += 999) stale_check(ids[i]);
  tslab_trim(0);
  check_print("%d open epochs with %d objects each: %zu bytes each\n", OPEN, OBJECTS, each);
}

static void one_epoch(int number) {
  tslab_epoch epoch = epoch_open(NULL);
  tslab_scope scope;
  if (number % 2 == 0) {
    scope_enter(&scope, epoch);
    for (size_t i = 0; i < OBJECTS; i++) CHECK(malloc(16 + (size_t)number % 500) != NULL);
    if (number % 64 == 0) CHECK(calloc(1, 200 * KIB) != NULL);
    scope_leave(&scope, TSLAB_DEFAULT);
    CHECK_EQ(tslab_epoch_release(epoch), 0);
  } else {
    CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  }
}

static void one_after_another_test(void) {
  size_t resident = 0, mapped = 0, lines = 0;
  for (int i = 0; i < EPOCHS; i++) {
    if (i == FIRST) {
      resident = process_resident_bytes();
      mapped = process_mapped_bytes();
      lines = mappings();
    }
    one_epoch(i);
  }
  CHECK_LE(process_resident_bytes(), resident + NOISE_BYTES);
  CHECK_EQ(process_mapped_bytes(), mapped);
  CHECK_EQ(mappings(), lines);
}

// A thread's part of an epoch may come with a cell.
static void huge_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  for (int release = 0; release < 2; release++) {
    size_t before = process_resident_bytes();
    char *block = tslab_epoch_malloc(epoch, 100 * MIB);
    CHECK_LANDS(epoch, block);
    memset(block, 1, 100 * MIB);
    if (!release) CHECK_GE(process_resident_bytes(), before + 99 * MIB);
    CHECK_GE(epoch_stats(epoch).held_bytes, 100 * MIB);
    if (!release) free(block);
    if (!release) CHECK_LE(epoch_stats(epoch).held_bytes, 64 * KIB);
  }
  CHECK_EQ(tslab_epoch_release(epoch), 0);
  tslab_trim(0);
  stale_check(epoch);
}

static void aligned_test(void) {
  enum { BLOCKS = 50 };
  tslab_epoch epoch = epoch_open(NULL);
  tslab_scope scope;
  void *blocks[BLOCKS];
  scope_enter(&scope, epoch);
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = aligned_alloc(MIB, MIB);
    CHECK_LANDS(epoch, blocks[i]);
    CHECK(is_aligned(blocks[i], MIB));
    memset(blocks[i], i, MIB);
  }
  scope_leave(&scope, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_close(epoch).objects, BLOCKS);
  for (int i = 0; i < BLOCKS; i++) {
    CHECK(((char *)blocks[i])[MIB - 1] == (char)i);
    free(blocks[i]);
  }
  stale_check(epoch);
}

// A block that grows stays in its epoch, whatever memory it moves to.
static void growth_test(void) {
  tslab_epoch epoch = epoch_open(NULL), other = epoch_open(NULL);
  tslab_scope scope;
  scope_enter(&scope, other);
  unsigned char *block = tslab_epoch_malloc(epoch, KIB);
  pattern_fill(block, KIB, 1);
  for (size_t size = KIB + 1; size <= 64 * MIB; size += size / 4) {
    block = realloc(block, size);
    CHECK_LANDS(epoch, block);
    pattern_check(block, KIB, 1);
    block[size - 1] = 1;
    CHECK_EQ(epoch_stats(epoch).live_objects, 1);
    CHECK_GE(epoch_stats(epoch).held_bytes, size);
  }
  block = realloc(block, 100);
  CHECK_LANDS(epoch, block);
  pattern_check(block, 100, 1);
  CHECK_LE(epoch_stats(epoch).held_bytes, MIB);
  free(block);
  scope_leave(&scope, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_close(epoch).objects, 0);
  CHECK_EQ(tslab_epoch_close(other).objects, 0);
}

// What is resident at one moment depends on how much a helper has given back by then.
int main(void) {
  CHECK_EQ(tslab_option_set("helper", "never"), 0);
  open_at_once_test();
  one_after_another_test();
  huge_test();
  aligned_test();
  growth_test();
  return 0;
}
