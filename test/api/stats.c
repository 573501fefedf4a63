// tslab_stats_*: the parts add up, and to what the kernel says; the text is JSON.
#include "epochs.h"

enum { SMALL = 40000, LARGE = 20, THREADS = 3 };

static tslab_stats stats_get(void) {
  tslab_stats stats = {.size = sizeof stats};
  CHECK_EQ(tslab_stats_get(&stats), 0);
  size_t parts = stats.live_bytes + stats.hot_bytes + stats.free_bytes + stats.cached_bytes +
                 stats.dirty_bytes + stats.metadata_bytes;
  CHECK_EQ(stats.resident_bytes, parts - stats.untouched_bytes);
  return stats;
}

// Resident bytes of the mappings in the stretch of addresses, as long as it is aligned, that is the
// allocator's: its default.
static size_t kernel_resident(const void *address) {
  const size_t span = (size_t)4 << 40, base = (size_t)address & ~(span - 1);
  static char line[512];
  size_t resident = 0, kib, start = 0, end;
  FILE *file = fopen("/proc/self/smaps", "r");
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file) != NULL) {
    char rights[8];
    if (sscanf(line, "%zx-%zx %7s", &start, &end, rights) == 3) continue;
    if (start - base < span && sscanf(line, "Rss: %zu kB", &kib) == 1) resident += kib * KIB;
  }
  fclose(file);
  return resident;
}

static void check_against_kernel(const char *when, const void *block) {
  size_t theirs = kernel_resident(block), ours = stats_get().resident_bytes;
  CHECK_THAT(ours <= theirs + theirs / 50 && theirs <= ours + ours / 50,
             "%s: %zu resident, the kernel says %zu", when, ours, theirs);
}

static void *fill(void *blocks) {
  for (int i = 0; i < SMALL; i++) {
    size_t bytes = (size_t)(i * 37 % 900 + 1);
    ((char **)blocks)[i] = tslab_malloc(bytes);
    memset(((char **)blocks)[i], 1, bytes);
  }
  return NULL;
}

static void identity_test(void) {
  static char *blocks[THREADS][SMALL], *large[LARGE];
  pthread_t threads[THREADS];
  CHECK_EQ(tslab_option_set("helper", "never"), 0);  // its thread's memory is live, too
  for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, fill, blocks[i]), 0);
  for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < LARGE; i++) {
    large[i] = tslab_malloc(MIB);
    memset(large[i], 1, i % 2 == 0 ? MIB : MIB / 2);
  }
  tslab_stats full = stats_get();
  CHECK_GE(full.live_objects, THREADS * SMALL + LARGE);
  CHECK_GE(full.large_bytes, LARGE * MIB);
  CHECK_GE(full.untouched_bytes, LARGE / 2 * (MIB / 2));
  check_against_kernel("full", large[0]);
  for (int i = 0; i < LARGE; i += 2) tslab_free(large[i]);
  for (int i = 0; i < THREADS * SMALL; i++) {
    if (i % 50 != 0) tslab_free(blocks[i / SMALL][i % SMALL]);
  }
  tslab_stats sparse = stats_get();
  CHECK_EQ(full.live_objects - sparse.live_objects, THREADS * SMALL / 50 * 49 + LARGE / 2);
  check_against_kernel("sparse", large[1]);
  tslab_trim(0);
  CHECK_EQ(stats_get().live_objects, sparse.live_objects);
  check_against_kernel("trimmed", large[1]);
}

static void size_test(void) {
  tslab_stats stats = {.size = sizeof stats + 1};
  CHECK_EQ(tslab_stats_get(&stats), EINVAL);
  stats.size = 8;
  CHECK_EQ(tslab_stats_get(&stats), EINVAL);
}

static void write_to(const char *text, size_t length, void *file) {
  CHECK_EQ(fwrite(text, 1, length, file), length);
}

static void json_test(void) {
  static const char reader[] =
      "python3 -c 'import json, sys; told = json.load(sys.stdin); labels = [epoch[\"label\"] for "
      "epoch in told[\"epochs\"]]; sys.exit(not (told[\"resident_bytes\"] > 0 and "
      "chr(34) + chr(92) + chr(10) + \"\\u00fc\" in labels))'";
  tslab_epoch epoch = tslab_epoch_open("\"\\\n\xc3\xbc", NULL);
  void *block = tslab_epoch_malloc(epoch, 100);
  unsetenv("LD_PRELOAD");
  FILE *python = popen(reader, "w");
  CHECK(python != NULL);
  tslab_stats_json(write_to, python);
  CHECK_EQ(pclose(python), 0);
  tslab_free(block);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
}

int main(void) {
  size_test();
  json_test();
  identity_test();
  return 0;
}
