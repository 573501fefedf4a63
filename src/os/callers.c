#include "os/callers.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/frames.h"
#include "os/os.h"
#include "os/resume.h"

enum {
  MOST_STACK_BYTES = 1 << 26,  // of a thread's stack; a frame further off is on another one
  FRAME_WORDS = 2,             // the caller's frame pointer, the return address
  MOST_FRAME_BYTES = 1 << 20,  // larger ones are not recalled
  PAGES_AT_ONCE = 64,
};

// What is known to be readable of the calling thread's stack.
static TSL_TLS struct { uintptr_t low, end; } readable_stack;

// Asks the system for an invalid change of the signal mask, with the mask read from the page. It
// fails in any case; the error is EFAULT when the page cannot be read.
static bool page_is_readable(uintptr_t page) {
  enum { NO_CHANGE = -1, MASK_BYTES = 8 };
  return syscall(SYS_rt_sigprocmask, NO_CHANGE, page, NULL, MASK_BYTES) == 0 || errno != EFAULT;
}

// Asks the system to read a byte of each page, in one call; page by page where process_vm_readv is
// refused.
static bool pages_are_readable(uintptr_t start, size_t pages) {
  char bytes[PAGES_AT_ONCE];
  struct iovec each[PAGES_AT_ONCE], all = {bytes, pages};
  for (size_t i = 0; i < pages; i++)
    each[i] = (struct iovec){(void *)(start + i * tsl_os_page_bytes()), 1};
  ssize_t found = process_vm_readv(getpid(), &all, 1, each, pages, 0);
  if (found >= 0 || errno == EFAULT) return found == (ssize_t)pages;
  for (size_t i = 0; i < pages; i++) {
    if (!page_is_readable((uintptr_t)each[i].iov_base)) return false;
  }
  return true;
}

static bool is_readable(uintptr_t start, uintptr_t end) {
  size_t page = tsl_os_page_bytes(), at_once = page * PAGES_AT_ONCE;
  for (; start < end; start += at_once) {
    size_t left = (end - start + page - 1) / page;
    if (!pages_are_readable(start, left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE)) return false;
  }
  return true;
}

// The C library lays a thread's own block right above its stack; the system lays its random bytes
// above the first thread's.
static uintptr_t likely_end(uintptr_t frame) {
  uintptr_t thread = (uintptr_t)__builtin_thread_pointer(), random = getauxval(AT_RANDOM);
  uintptr_t nearer = thread - frame < random - frame ? thread : random;
  return nearer - frame < MOST_STACK_BYTES ? nearer : 0;
}

// The end of the stack that the frame lies on: all memory from the frame to there can be read. 0 on
// stacks that the program made itself.
static uintptr_t stack_end(uintptr_t frame) {
  if (frame >= readable_stack.low && frame < readable_stack.end) return readable_stack.end;
  uintptr_t end = likely_end(frame), low = frame & ~(uintptr_t)(tsl_os_page_bytes() - 1);
  int saved = errno;
  bool readable = end != 0 && is_readable(low, end);
  errno = saved;
  if (!readable) return 0;
  readable_stack.low = low;
  readable_stack.end = end;
  return end;
}

// A return address without the signature that processors with pointer authentication put into its
// upper bits.
static uintptr_t call_of(uintptr_t word) {
#if defined(__aarch64__)
  register uintptr_t address __asm__("x30") = word;
  __asm__("hint #7" : "+r"(address));  // xpaclri; older processors do nothing
  return address;
#else
  return word;
#endif
}

static bool is_frame(uintptr_t frame, uintptr_t below, uintptr_t end) {
  bool is_aligned = frame % sizeof(uintptr_t) == 0;
  return is_aligned && frame > below && frame < end - FRAME_WORDS * sizeof(uintptr_t);
}

// Code without frame pointers may leave anything in the register, so each step is checked to lie
// within the stack (is_frame). The sanitizer does not know that.
__attribute__((no_sanitize("address"))) unsigned tsl_callers_walk(const void *frame,
                                                                  uintptr_t *calls, unsigned most) {
  uintptr_t at = (uintptr_t)frame, end = stack_end(at), below = 0;
  unsigned depth = 0;
  while (end != 0 && depth < most && is_frame(at, below, end)) {
    const uintptr_t *words = (const uintptr_t *)at;
    if (words[1] < (uintptr_t)tsl_os_page_bytes()) break;
    calls[depth++] = call_of(words[1]);
    below = at;
    at = words[0];
  }
  return depth;
}

// A frame size may have been learned from code that was unloaded since, so each step is checked to
// lie within the stack.
__attribute__((no_sanitize("address"))) unsigned tsl_callers_recall(const void *frame,
                                                                    uintptr_t *calls,
                                                                    unsigned most) {
  uintptr_t at = (uintptr_t)frame + sizeof(uintptr_t), end = stack_end((uintptr_t)frame);
  for (unsigned depth = 0; end != 0 && depth < most;) {
    calls[depth] = *(const uintptr_t *)at;
    int32_t bytes = tsl_frames_find(calls[depth++]);
    if (bytes == TSL_FRAMES_LAST || (bytes != TSL_FRAMES_UNKNOWN && depth == most)) return depth;
    if (bytes == TSL_FRAMES_UNKNOWN || end - at < (uintptr_t)bytes + sizeof(uintptr_t)) break;
    at += (uintptr_t)bytes;
  }
  return 0;
}

#if TSL_HAS_UNWINDER
#include <unwind.h>

// Only what is resumed asks for it.
static uintptr_t frame_pointer(struct _Unwind_Context *context) {
#if defined(__x86_64__)
  enum { RBP = 6 };
  return _Unwind_GetGR(context, RBP);
#else
  (void)context;
  return 0;
#endif
}

struct unwinding {
  uintptr_t *calls;
  unsigned depth;
  unsigned most;
  unsigned skipped;
  uintptr_t low, end;  // of the stack, as far as it is known to be readable
  uintptr_t place;     // of the last call there; 0: elsewhere
  uintptr_t frame;     // the frame pointer at the last call
  bool is_cut;
  bool is_resumed;
  bool is_lost;  // what it was resumed at is not on the stack
};

// The address of the return address on the stack. On x86-64 that is the word below the caller's
// stack pointer after the return. 0 where the call is not found there, as on other processors and
// below signal handlers: then nothing is learned.
__attribute__((no_sanitize("address"))) static uintptr_t place_of(const struct unwinding *unwinding,
                                                                  struct _Unwind_Context *context,
                                                                  uintptr_t call) {
  uintptr_t place = _Unwind_GetCFA(context) - sizeof(uintptr_t);
  bool is_readable = place >= unwinding->low && place < unwinding->end &&
                     unwinding->end - place >= sizeof(uintptr_t);
  return is_readable && *(const uintptr_t *)place == call ? place : 0;
}

static void learn_distance(const struct unwinding *unwinding, uintptr_t place) {
  uintptr_t last = unwinding->place;
  if (unwinding->depth == 0 || last == 0 || place <= last) return;
  if (place - last < MOST_FRAME_BYTES)
    tsl_frames_learn(unwinding->calls[unwinding->depth - 1], (int32_t)(place - last));
}

static _Unwind_Reason_Code unwind_call(struct _Unwind_Context *context, void *argument) {
  struct unwinding *unwinding = argument;
  uintptr_t call = _Unwind_GetIP(context);
  if (call == 0) return _URC_END_OF_STACK;
  if (unwinding->skipped != 0) {
    unwinding->skipped--;
    return _URC_NO_REASON;
  }
  uintptr_t place = place_of(unwinding, context, call);
  unwinding->is_lost = unwinding->is_resumed && place == 0;
  if (unwinding->is_lost) return _URC_END_OF_STACK;
  learn_distance(unwinding, place);
  unwinding->is_cut = unwinding->depth == unwinding->most;
  if (unwinding->is_cut) return _URC_END_OF_STACK;
  unwinding->calls[unwinding->depth++] = call;
  unwinding->place = place;
  unwinding->frame = frame_pointer(context);
  return _URC_NO_REASON;
}

// Where the caller of the last call has its return address on the stack: where that code returns at
// once by the code itself, else by the frame pointer. 0: not known.
static uintptr_t return_place(const struct unwinding *unwinding) {
  uintptr_t place = unwinding->place, bytes;
  if (place == 0) return 0;
  if (tsl_resume_is_return(unwinding->calls[unwinding->depth - 1], &bytes))
    return place + sizeof place + bytes;
  return is_frame(unwinding->frame, place, unwinding->end) ? unwinding->frame + sizeof place : 0;
}

// Where the caller's frame pointer is no place on the stack, the nearest place stands for it, so
// that nothing is read far away.
__attribute__((no_sanitize("address"))) static bool find_caller(const struct unwinding *unwinding,
                                                                struct tsl_resume *caller) {
  uintptr_t place = return_place(unwinding), frame = unwinding->frame, end = unwinding->end;
  if (place == 0 || place >= end - sizeof place) return false;
  if (place == frame + sizeof frame) frame = *(const uintptr_t *)frame;
  if (!is_frame(frame, place, end)) frame = place;
  *caller = (struct tsl_resume){*(const uintptr_t *)place, place + sizeof place, frame};
  return tsl_resume_is_behind_call(caller->call);
}

// Goes on behind code without tables. The frame pointers there may be anything, so what is found
// counts only where it leads to the end of the stack or is cut.
static void resume(struct unwinding *unwinding) {
  unsigned known = unwinding->depth;
  struct tsl_resume caller;
  int reason = _URC_END_OF_STACK;
  unwinding->is_resumed = true;
  while (reason == _URC_END_OF_STACK && find_caller(unwinding, &caller)) {
    unwinding->skipped = 1;
    reason = tsl_resume_backtrace(&caller, (void *)unwind_call, unwinding);
  }
  if (reason == _URC_END_OF_STACK || unwinding->is_lost) unwinding->depth = known;
}

static bool unwinder_is_lost;
static volatile bool program_is_ready;  // clang would set it at compile time otherwise

__attribute__((constructor)) static void program_begins(void) { program_is_ready = true; }

// The unwinder aborts where the C library of a program that is linked statically allocates before
// it knows the program's own tables.
static bool has_tables(void) { return program_is_ready || getauxval(AT_BASE) != 0; }

// The first call that the unwinder reports lies in this function, hence the 1.
TSL_NOINLINE unsigned tsl_callers_unwind(unsigned skipped, uintptr_t *calls, unsigned most) {
  if (unwinder_is_lost || !has_tables()) return 0;
  struct unwinding unwinding = {.most = most, .skipped = skipped + 1};
  unwinding.calls = calls;
  unwinding.low = (uintptr_t)__builtin_frame_address(0);
  unwinding.end = stack_end(unwinding.low);
  if (_Unwind_Backtrace(unwind_call, &unwinding) == _URC_END_OF_STACK) resume(&unwinding);
  if (unwinding.depth != 0 && !unwinding.is_cut)
    tsl_frames_learn(calls[unwinding.depth - 1], TSL_FRAMES_LAST);
  return unwinding.depth;
}

// Only a program that a dynamic linker started (AT_BASE) has unwind tables that need no lock.
void tsl_callers_after_fork(void) { unwinder_is_lost = getauxval(AT_BASE) == 0; }
#else
unsigned tsl_callers_unwind(unsigned skipped TSL_UNUSED, uintptr_t *calls TSL_UNUSED,
                            unsigned most TSL_UNUSED) {
  return 0;
}

void tsl_callers_after_fork(void) {}
#endif
