// tslab_epoch: the part of include/tslab.h that is about epochs.
#include <errno.h>
#include <string.h>

#include "alloc/entry.h"
#include "alloc/face.h"
#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "alloc/stay.h"
#include "alloc/thread.h"
#include "epoch/close.h"
#include "epoch/inspect.h"
#include "epoch/label.h"
#include "epoch/scope.h"
#include "slab/zero.h"
#include "tslab.h"

static const tslab_epoch_options no_options = {.size = sizeof(tslab_epoch_options)};

static tslab_epoch open_failed(int error) {
  errno = error;
  return TSLAB_NO_EPOCH;
}

// Options of a program that was compiled with a shorter struct: what it does not know is zero.
static int read_options(const tslab_epoch_options *given, tslab_epoch_options *options) {
  *options = no_options;
  if (given == NULL) return 0;
  if (given->size < sizeof given->size || given->size > sizeof *options) return EINVAL;
  memcpy(options, given, given->size);
  if (options->purge > TSLAB_PURGE_NOW) return EINVAL;
  if (options->parent == TSLAB_DEFAULT) return 0;
  int error = tsl_epoch_check(options->parent);
  if (error != 0) return error;
  unsigned level = tsl_epoch_at(tsl_epoch_slot(options->parent))->level + 1u;
  return level < TSL_EPOCH_MOST_LEVELS ? 0 : ELOOP;
}

tslab_epoch tslab_epoch_open(const char *label, const tslab_epoch_options *given) {
  struct tsl_lease lease = {NULL};
  tslab_epoch_options options;
  tslab_epoch id;
  size_t length = strnlen(label, TSLAB_LABEL_BYTES);
  if (length == TSLAB_LABEL_BYTES) return open_failed(EINVAL);
  if (!tsl_thread_ensure(&lease)) return open_failed(ENOMEM);
  tsl_thread_leave(&lease);
  int error = read_options(given, &options);
  if (error == 0) error = tsl_epoch_open(tsl_label_intern(label, length), &options, &id);
  return error == 0 ? id : open_failed(error);
}

tslab_survivors tslab_epoch_close(tslab_epoch epoch) {
  struct tsl_lease lease = {NULL};
  struct tsl_survivors left = {0};
  if (!tsl_thread_ensure(&lease)) return (tslab_survivors){.error = ENOMEM};
  int error = tsl_close_epoch(epoch, &left);
  tsl_thread_leave(&lease);
  return (tslab_survivors){error, left.objects, left.bytes, left.pages};
}

int tslab_epoch_release(tslab_epoch epoch) {
  struct tsl_lease lease = {NULL};
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  int error = tsl_close_release(epoch);
  tsl_thread_leave(&lease);
  return error;
}

int tslab_epoch_defer(tslab_epoch epoch, void (*run)(void *), void *argument) {
  struct tsl_lease lease = {NULL};
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  int error = tsl_close_defer(epoch, run, argument);
  tsl_thread_leave(&lease);
  return error;
}

// A thread whose destructors ran has no heap to stay in.
TSL_NOINLINE static int enter_slow(tslab_scope *scope, tslab_epoch epoch) {
  struct tsl_lease lease = {NULL};
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  if (lease.heap == NULL && epoch != TSLAB_DEFAULT) tsl_face_expect_capture();
  if (lease.heap == NULL) return tsl_scope_enter_slow(scope, epoch);
  tsl_thread_leave(&lease);
  return EPERM;
}

int tslab_scope_enter(tslab_scope *scope, tslab_epoch epoch) {
  struct tsl_heap *heap = tsl_scope_find(epoch);
  if (tsl_unlikely(heap == NULL)) return enter_slow(scope, epoch);
  return tsl_scope_enter_heap(scope, epoch, heap);
}

int tslab_scope_default(tslab_scope *scope) { return tslab_scope_enter(scope, TSLAB_DEFAULT); }

int tslab_scope_leave(tslab_scope *scope) { return tsl_scope_leave(scope); }

tslab_epoch tslab_epoch_current(void) {
  uint32_t slot = tsl_heap_current->epoch;
  if (slot == 0) return TSLAB_DEFAULT;
  return tsl_epoch_id(slot, tsl_load_relaxed(&tsl_epoch_at(slot)->word));
}

void *tslab_epoch_malloc(tslab_epoch epoch, size_t bytes) {
  struct tsl_stay stay;
  if (!tsl_stay_begin(&stay, epoch, true)) return NULL;
  void *block = tsl_fast_malloc(bytes);
  tsl_stay_end(&stay);
  return block;
}

void *tslab_epoch_calloc(tslab_epoch epoch, size_t count, size_t bytes) {
  struct tsl_stay stay;
  if (!tsl_stay_begin(&stay, epoch, true)) return NULL;
  void *block = tsl_calloc(count, bytes);
  tsl_stay_end(&stay);
  return block;
}

void *tslab_epoch_aligned_alloc(tslab_epoch epoch, size_t alignment, size_t bytes) {
  struct tsl_stay stay;
  if (!tsl_stay_begin(&stay, epoch, true)) return NULL;
  void *block = tsl_entry_aligned(alignment, bytes);
  tsl_stay_end(&stay);
  return block;
}

void *tslab_epoch_realloc(tslab_epoch epoch, void *block, size_t bytes) {
  size_t usable = tsl_usable(block);
  if (block != NULL && usable == 0 && !tsl_zero_has(block)) return NULL;
  if (block != NULL && bytes == 0) return tsl_entry_realloc(block, bytes);
  if (block != NULL && tsl_resize_in_place(block, usable, bytes)) return block;
  void *moved = tslab_epoch_malloc(epoch, bytes);
  if (moved == NULL || block == NULL) return moved;
  memcpy(moved, block, bytes < usable ? bytes : usable);
  tsl_fast_free(block);
  return moved;
}

int tslab_epoch_get_stats(tslab_epoch epoch, tslab_epoch_stats *stats) {
  struct tsl_lease lease = {NULL};
  if (stats->size != sizeof *stats) return EINVAL;
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  tsl_thread_leave(&lease);
  return tsl_inspect_epoch(epoch, stats) ? 0 : ESTALE;
}

int tslab_epochs_each(int (*visit)(tslab_epoch epoch, void *context), void *context) {
  return tsl_inspect_epochs(visit, context);
}

// 0 for an epoch whose memory can be told apart.
static int check_declared(tslab_epoch epoch) {
  if (epoch == TSLAB_DEFAULT) return EPERM;
  return tsl_epoch_find(epoch) == NULL ? ESTALE : 0;
}

int tslab_epoch_blocks_each(tslab_epoch epoch, int (*visit)(void *, size_t, void *),
                            void *context) {
  int error = check_declared(epoch);
  return error == 0 ? tsl_inspect_blocks(tsl_epoch_slot(epoch), visit, context) : error;
}

tslab_epoch tslab_epoch_of(const void *block) { return tsl_inspect_epoch_of(block); }

int tslab_block_get_info(const void *block, tslab_block_info *info) {
  if (info->size != sizeof *info) return EINVAL;
  return tsl_inspect_block(block, info) ? 0 : EFAULT;
}

int tslab_epoch_advise(tslab_epoch epoch, enum tslab_advice advice) {
  int error = check_declared(epoch);
  if (error != 0) return error;
  if ((unsigned)advice > TSLAB_ADVISE_WILLNEED) return EINVAL;
  return tsl_inspect_advise(tsl_epoch_slot(epoch), (int)advice) ? 0 : ENOTSUP;
}
