#include "memory/stretch.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"

// A stretch of at least this size gets a name and advice on huge pages, which smaller ones cannot
// have. Most arrays of most programs stay below it, and cost one system call.
#define WORTH_A_NAME_BYTES ((size_t)1 << 21)

struct tsl_stretch tsl_stretch_at(uintptr_t start, bool is_reserved) {
  return (struct tsl_stretch){start, start, start, is_reserved};
}

static enum tsl_os_mapped stretch_step(const struct tsl_stretch *stretch, uintptr_t end) {
  void *at = (void *)stretch->end;
  size_t bytes = end - stretch->end;
  if (stretch->is_reserved) return tsl_os_commit(at, bytes) ? TSL_OS_MAPPED : TSL_OS_REFUSED;
  return stretch->end == stretch->start ? tsl_os_map(at, bytes) : tsl_os_map_more(at, bytes);
}

// What is mapped later inherits both.
static void stretch_name(const struct tsl_stretch *stretch, size_t bytes_before) {
  size_t bytes = stretch->end - stretch->start;
  if (stretch->is_reserved || bytes_before >= WORTH_A_NAME_BYTES || bytes < WORTH_A_NAME_BYTES)
    return;
  tsl_os_name((void *)stretch->start, bytes, "tslab");
  tsl_os_advise_huge((void *)stretch->start, bytes, tsl_option(thp) == TSL_THP_ALWAYS);
}

// T2: repeats a step that a fork interrupted, to the same end. Where the address is occupied, the
// first attempt had mapped it.
static enum tsl_os_mapped stretch_redo(struct tsl_stretch *stretch) {
  enum tsl_os_mapped result = stretch_step(stretch, stretch->begun);
  if (result == TSL_OS_REFUSED) return result;
  tsl_store_relaxed(&stretch->end, stretch->begun);
  return TSL_OS_MAPPED;
}

static enum tsl_os_mapped stretch_grow(struct tsl_stretch *stretch, uintptr_t end) {
  tsl_store_relaxed(&stretch->begun, end);
  enum tsl_os_mapped result = stretch_step(stretch, end);
  if (result == TSL_OS_MAPPED) {
    tsl_store_relaxed(&stretch->end, end);
  } else {
    tsl_store_relaxed(&stretch->begun, stretch->end);
  }
  return result;
}

enum tsl_os_mapped tsl_stretch_reach(struct tsl_stretch *stretch, uintptr_t end) {
  enum tsl_os_mapped result = TSL_OS_MAPPED;
  size_t before = stretch->end - stretch->start;
  end = tsl_round_up(end, tsl_os_page_bytes());
  if (stretch->begun > stretch->end) result = stretch_redo(stretch);
  if (result == TSL_OS_MAPPED && stretch->end < end) result = stretch_grow(stretch, end);
  stretch_name(stretch, before);
  tsl_invariant(result != TSL_OS_MAPPED || (tsl_stretch_valid(stretch) && stretch->end >= end));
  return result;
}

// The order of the stores: at no instant does the stretch have what is not mapped (T1). It keeps
// what the system does not take back.
void tsl_stretch_retreat(struct tsl_stretch *stretch, uintptr_t end) {
  uintptr_t before = stretch->end;
  if (stretch->is_reserved || before <= end) return;
  tsl_store_relaxed(&stretch->end, end);
  if (!tsl_os_unreserve((void *)end, before - end)) tsl_store_relaxed(&stretch->end, before);
  tsl_store_relaxed(&stretch->begun, stretch->end);
}
