// tslab: the C interface of include/tslab.h.
#include "tslab.h"

#include <string.h>

#include "alloc/face.h"
#include "alloc/standard.h"
#include "alloc/thread.h"
#include "base/options.h"
#include "memory/limit.h"
#include "tell/process.h"

TSL_FAST void *tslab_malloc(size_t bytes) { return tsl_fast_malloc(bytes); }

TSL_FAST void tslab_free(void *block) { tsl_fast_free(block); }

void tslab_free_sized(void *block, size_t bytes) { tsl_fast_free_sized(block, bytes); }

bool tslab_resize_in_place(void *block, size_t bytes) {
  return tsl_resize_without_move(block, bytes);
}

void *tslab_calloc(size_t count, size_t bytes) { return tsl_calloc(count, bytes); }

void *tslab_realloc(void *block, size_t bytes) { return tsl_entry_realloc(block, bytes); }

void *tslab_reallocarray(void *block, size_t count, size_t bytes) {
  size_t total;
  return tsl_entry_product(count, bytes, &total) ? tsl_entry_realloc(block, total) : NULL;
}

void *tslab_aligned_alloc(size_t alignment, size_t bytes) {
  return tsl_entry_aligned(alignment, bytes);
}

int tslab_posix_memalign(void **block, size_t alignment, size_t bytes) {
  return tsl_entry_posix_memalign(block, alignment, bytes);
}

size_t tslab_usable_size(const void *block) { return tsl_usable(block); }

size_t tslab_good_size(size_t bytes) { return tsl_good_size(bytes); }

int tslab_trim(size_t keep_bytes) { return tsl_trim(keep_bytes); }

bool tslab_captures_malloc(void) { return tsl_face_captures(); }

const char *tslab_version(void) { return tsl_face_version; }

int tslab_option_get(const char *name, char *value, size_t size) {
  tsl_thread_read_options();
  return tsl_option_get(name, value, size);
}

int tslab_option_set(const char *name, const char *value) {
  tsl_thread_read_options();
  int error = tsl_option_set(name, value);
  if (error != 0 || strcmp(name, "soft_limit") != 0) return error;
  tsl_limit_follow();
  tsl_report_limit();
  return 0;
}
