// tslab_epoch: the part of include/tslab.h that is about epochs.
#include <errno.h>
#include <string.h>

#include "alloc/face.h"
#include "alloc/malloc.h"
#include "alloc/realloc.h"
#include "alloc/standard.h"
#include "alloc/stay.h"
#include "alloc/thread.h"
#include "epoch/close.h"
#include "epoch/deferred.h"
#include "epoch/inspect.h"
#include "epoch/keep.h"
#include "epoch/open.h"
#include "epoch/place.h"
#include "epoch/reset.h"
#include "epoch/scope.h"
#include "slab/zero.h"
#include "state/label.h"
#include "state/misuse.h"
#include "tslab.h"

TSL_COLD static tslab_epoch open_failed(int error) {
  errno = error;
  return TSLAB_NO_EPOCH;
}

// Of a program that was compiled with a shorter struct: what it does not know is zero. NULL: its
// length is none of a struct.
TSL_COLD static const tslab_epoch_options *lengthen(const tslab_epoch_options *given,
                                                    tslab_epoch_options *options) {
  if (given->size < sizeof given->size || given->size > sizeof *options) return NULL;
  *options = (tslab_epoch_options){0};
  return memcpy(options, given, given->size);
}

static int check_options(const tslab_epoch_options *options) {
  if (options->purge > TSLAB_PURGE_NOW || options->place > TSLAB_PLACE_SHARED) return EINVAL;
  if (options->place == TSLAB_PLACE_SHARED && tsl_place_wants_own(options)) return EINVAL;
  return tsl_epoch_check(options->parent);
}

TSL_NOINLINE static tslab_epoch open_with(const char *text, const tslab_epoch_options *options) {
  tslab_epoch_options longer;
  tslab_epoch id;
  if (tsl_unlikely(options->size != sizeof longer)) options = lengthen(options, &longer);
  int error = options == NULL ? EINVAL : check_options(options);
  if (error != 0) return open_failed(error);
  uint32_t label = tsl_label_intern(text);
  error = label == 0 ? EINVAL : tsl_place_open_with(label, options, &id);
  return error == 0 ? id : open_failed(error);
}

// As most do: the way of an epoch without options touches less that is in no cache.
static bool say_nothing(const tslab_epoch_options *options) {
  uint64_t limits = options->soft_limit_bytes | options->hard_limit_bytes |
                    (uintptr_t)options->on_limit | (uintptr_t)options->limit_context;
  unsigned kinds = (unsigned)options->purge | options->threads | (unsigned)options->place;
  return options->size == sizeof *options &&
         (options->parent | limits | kinds | options->first_cell_bytes) == 0;
}

tslab_epoch tslab_epoch_open(const char *label, const tslab_epoch_options *given) {
  struct tsl_lease lease = {NULL};
  tslab_epoch id;
  if (!tsl_thread_ensure(&lease)) return open_failed(ENOMEM);
  tsl_thread_leave(&lease);
  if (given != NULL && !say_nothing(given)) return open_with(label, given);
  uint32_t number = tsl_label_intern(label);
  int error = number == 0 ? EINVAL : tsl_place_open(number, &id);
  return tsl_likely(error == 0) ? id : open_failed(error);
}

static void end_check(const char *call, tslab_epoch id) {
  if (tsl_unlikely(tsl_heap_current->name != TSLAB_DEFAULT)) tsl_misuse_inside(call, id);
}

tslab_survivors tslab_epoch_close(tslab_epoch epoch) {
  struct tsl_lease lease = {NULL};
  struct tsl_survivors left = {0};
  if (!tsl_thread_ensure(&lease)) return (tslab_survivors){.error = ENOMEM};
  end_check("tslab_epoch_close", epoch);
  int error = tsl_close_epoch(epoch, &left);
  tsl_thread_leave(&lease);
  return (tslab_survivors){error, left.objects, left.bytes, left.pages};
}

int tslab_epoch_release(tslab_epoch epoch) {
  struct tsl_lease lease = {NULL};
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  end_check("tslab_epoch_release", epoch);
  int error = tsl_close_release(epoch);
  tsl_thread_leave(&lease);
  return error;
}

int tslab_epoch_reset(tslab_epoch epoch) {
  struct tsl_lease lease = {NULL};
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  int error = tsl_reset_epoch(epoch);
  tsl_thread_leave(&lease);
  return error;
}

int tslab_epoch_keep(const void *block) {
  struct tsl_lease lease = {NULL};
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  int error = tsl_keep_block(block);
  tsl_thread_leave(&lease);
  return error;
}

static int defer(tslab_epoch epoch, void (*run)(void *), void *argument, uint64_t *number) {
  struct tsl_lease lease = {NULL};
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  int error = tsl_deferred_add(epoch, run, argument, number);
  tsl_thread_leave(&lease);
  return error;
}

int tslab_epoch_defer(tslab_epoch epoch, void (*run)(void *), void *argument) {
  return defer(epoch, run, argument, NULL);
}

tslab_deferred tslab_deferred_add(tslab_epoch epoch, void (*run)(void *), void *argument) {
  tslab_deferred call = {.epoch = epoch};
  int error = defer(epoch, run, argument, &call.number);
  if (error == 0) return call;
  errno = error;
  return (tslab_deferred){0};
}

bool tslab_deferred_cancel(tslab_deferred call) {
  struct tsl_lease lease = {NULL};
  if (!tsl_thread_ensure(&lease)) return false;
  bool is_cancelled = tsl_deferred_cancel(call.epoch, call.number);
  tsl_thread_leave(&lease);
  return is_cancelled;
}

// A thread whose destructors ran has no heap to stay in.
TSL_NOINLINE static int enter_slow(tslab_scope *scope, tslab_epoch epoch) {
  struct tsl_lease lease = {NULL};
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  if (lease.home == NULL && epoch != TSLAB_DEFAULT) tsl_face_expect_capture();
  if (lease.home == NULL) return tsl_scope_enter_slow(scope, epoch);
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

tslab_epoch tslab_epoch_current(void) { return tsl_heap_current->name; }

// Whether the thread is in this epoch already, and the epoch is open.
TSL_ALWAYS_INLINE bool is_here(tslab_epoch epoch) {
  if (tsl_heap_current->name != epoch) return false;
  return epoch == TSLAB_DEFAULT ||
         tsl_load_relaxed(&tsl_epoch_at(tsl_epoch_slot(epoch))->word) == tsl_epoch_open_word(epoch);
}

TSL_NOINLINE static void *malloc_there(tslab_epoch epoch, size_t bytes) {
  struct tsl_stay stay;
  if (!tsl_stay_begin(&stay, epoch, true)) return NULL;
  void *block = tsl_fast_malloc(bytes);
  tsl_stay_end(&stay);
  return block;
}

// The heap is the current one meanwhile.
TSL_ALWAYS_INLINE void *malloc_visiting(struct tsl_heap *heap, tslab_epoch epoch, size_t bytes) {
  struct tsl_heap *outer = tsl_heap_current;
  tslab_epoch before = heap->name;
  heap->name = epoch;
  tsl_heap_current = heap;
  void *block = tsl_fast_malloc(bytes);
  tsl_heap_current = outer;
  heap->name = before;
  tsl_scope_visit_end(heap);
  return block;
}

TSL_NOINLINE static void *malloc_outside(tslab_epoch epoch, size_t bytes) {
  bool is_first = tsl_heap_current == &tsl_home_empty.heap;
  struct tsl_heap *heap = is_first ? NULL : tsl_scope_find(epoch);
  if (tsl_unlikely(heap == NULL) || tsl_unlikely(!tsl_scope_visit_begin(heap, epoch)))
    return malloc_there(epoch, bytes);
  return malloc_visiting(heap, epoch, bytes);
}

void *tslab_epoch_malloc(tslab_epoch epoch, size_t bytes) {
  return is_here(epoch) ? tsl_fast_malloc(bytes) : malloc_outside(epoch, bytes);
}

void *tslab_epoch_calloc(tslab_epoch epoch, size_t count, size_t bytes) {
  struct tsl_stay stay;
  if (is_here(epoch)) return tsl_calloc(count, bytes);
  if (!tsl_stay_begin(&stay, epoch, true)) return NULL;
  void *block = tsl_calloc(count, bytes);
  tsl_stay_end(&stay);
  return block;
}

void *tslab_epoch_aligned_alloc(tslab_epoch epoch, size_t alignment, size_t bytes) {
  struct tsl_stay stay;
  if (is_here(epoch)) return tsl_entry_aligned(alignment, bytes);
  if (!tsl_stay_begin(&stay, epoch, true)) return NULL;
  void *block = tsl_entry_aligned(alignment, bytes);
  tsl_stay_end(&stay);
  return block;
}

static char *copy_text(tslab_epoch epoch, const char *text, size_t length) {
  char *copy = tslab_epoch_malloc(epoch, length + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

char *tslab_epoch_strdup(tslab_epoch epoch, const char *text) {
  return copy_text(epoch, text, strlen(text));
}

char *tslab_epoch_strndup(tslab_epoch epoch, const char *text, size_t most_bytes) {
  return copy_text(epoch, text, strnlen(text, most_bytes));
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

// Newer programs may know more fields than this library; older ones fewer.
static bool is_stats_size(size_t size) {
  return size >= offsetof(tslab_epoch_stats, place) + sizeof(tslab_epoch) &&
         size <= sizeof(tslab_epoch_stats);
}

int tslab_epoch_get_stats(tslab_epoch epoch, tslab_epoch_stats *stats) {
  struct tsl_lease lease = {NULL};
  tslab_epoch_stats all = {.size = stats->size};
  if (!is_stats_size(stats->size)) return EINVAL;
  if (!tsl_thread_ensure(&lease)) return ENOMEM;
  tsl_thread_leave(&lease);
  if (!tsl_inspect_epoch(epoch, &all)) return ESTALE;
  memcpy(stats, &all, all.size);
  return 0;
}

int tslab_epochs_each(int (*visit)(tslab_epoch epoch, void *context), void *context) {
  return tsl_inspect_epochs(visit, context);
}

// 0 for a declared epoch that is not over.
static int check_declared(tslab_epoch epoch) {
  if (epoch == TSLAB_DEFAULT) return EPERM;
  return tsl_epoch_find(epoch) == NULL ? ESTALE : 0;
}

int tslab_epoch_blocks_each(tslab_epoch epoch, int (*visit)(void *, size_t, void *),
                            void *context) {
  int error = check_declared(epoch);
  if (tsl_place_is_shared(epoch)) return EPERM;  // its threads look after it at any time
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
