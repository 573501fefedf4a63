#include "os/callers.h"

#include <sys/auxv.h>

#include "os/os.h"

enum {
  MOST_STACK_BYTES = 1 << 26,  // of a thread's stack; who is further off is on another one
  FRAME_WORDS = 2,             // the caller's frame pointer, the return address
};

// The C library lays a thread's own block right above its stack; the system lays its random bytes
// above the first thread's. 0 on stacks that the program made itself.
static uintptr_t stack_end(uintptr_t frame) {
  uintptr_t ends[] = {(uintptr_t)__builtin_thread_pointer(), getauxval(AT_RANDOM)};
  for (unsigned i = 0; i < 2; i++) {
    if (ends[i] > frame && ends[i] - frame < MOST_STACK_BYTES) return ends[i];
  }
  return 0;
}

static bool is_frame(uintptr_t frame, uintptr_t below, uintptr_t end) {
  bool is_aligned = frame % sizeof(uintptr_t) == 0;
  return is_aligned && frame > below && frame < end - FRAME_WORDS * sizeof(uintptr_t);
}

// Code without frame pointers may leave anything in the register: what is read lies within the
// stack all the same. The sanitizer does not know that.
__attribute__((no_sanitize("address"))) unsigned tsl_callers_walk(const void *frame,
                                                                  uintptr_t *calls, unsigned most) {
  uintptr_t at = (uintptr_t)frame, end = stack_end(at), below = 0;
  unsigned depth = 0;
  while (end != 0 && depth < most && is_frame(at, below, end)) {
    const uintptr_t *words = (const uintptr_t *)at;
    if (words[1] < (uintptr_t)tsl_os_page_bytes()) break;
    calls[depth++] = words[1];
    below = at;
    at = words[0];
  }
  return depth;
}

#if TSL_HAS_UNWINDER
#include <unwind.h>

struct unwinding {
  uintptr_t *calls;
  unsigned depth;
  unsigned most;
  unsigned skipped;
};

static _Unwind_Reason_Code unwind_call(struct _Unwind_Context *context, void *argument) {
  struct unwinding *unwinding = argument;
  uintptr_t call = _Unwind_GetIP(context);
  if (call == 0) return _URC_END_OF_STACK;
  if (unwinding->skipped != 0) {
    unwinding->skipped--;
    return _URC_NO_REASON;
  }
  if (unwinding->depth == unwinding->most) return _URC_END_OF_STACK;
  unwinding->calls[unwinding->depth++] = call;
  return _URC_NO_REASON;
}

static bool unwinder_is_lost;

// The first call that the unwinder tells of lies in this function.
TSL_NOINLINE unsigned tsl_callers_unwind(unsigned skipped, uintptr_t *calls, unsigned most) {
  if (unwinder_is_lost) return 0;
  struct unwinding unwinding = {calls, 0, most, skipped + 1};
  _Unwind_Backtrace(unwind_call, &unwinding);
  return unwinding.depth;
}

// Only a program with an interpreter, the dynamic linker, has unwind tables that need no lock.
void tsl_callers_after_fork(void) { unwinder_is_lost = getauxval(AT_BASE) == 0; }
#else
unsigned tsl_callers_unwind(unsigned skipped TSL_UNUSED, uintptr_t *calls TSL_UNUSED,
                            unsigned most TSL_UNUSED) {
  return 0;
}

void tsl_callers_after_fork(void) {}
#endif
