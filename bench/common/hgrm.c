#include "hgrm.h"

#include "allocator.h"
#include "output.h"

static void hgrm_put(const char *path, const char *mode, const char *about, const histogram *h,
                     double ns_per_tick) {
  char version[64];
  allocator_version(version, sizeof version);
  FILE *file = output_open(path, mode);
  fprintf(file, "# %s allocator=%s version=%s ns_per_tick=%.9f\n", about, allocator_file(), version,
          ns_per_tick);
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
    if (h->buckets[i] != 0) {
      fprintf(file, "%.3f %llu\n", (double)histogram_bucket_value(i) * ns_per_tick,
              (unsigned long long)h->buckets[i]);
    }
  }
  output_close(file, path);
}

void hgrm_write(const char *path, const char *about, const histogram *h, double ns_per_tick) {
  hgrm_put(path, "w", about, h, ns_per_tick);
}

void hgrm_append(const char *path, const char *about, const histogram *h, double ns_per_tick) {
  hgrm_put(path, "a", about, h, ns_per_tick);
}
