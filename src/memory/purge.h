// purge: gives free pages back to the system once they were not needed for a while.
// A window lasts `purge_delay_ms`. At its end it is known how much free dirty memory was not needed
// (window.h). A part of it goes back, in bounded steps, at most one a millisecond for the whole
// process, each by the helper where one lives, otherwise by a thread of the program on a slow path.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// Does one step if one is due. The helper, or a thread that finds none; cheap when none is due.
// True while there is more to give back.
TSL_HIDDEN bool tsl_purge_step(void);

// The same for any thread: no effect while a helper lives.
TSL_HIDDEN bool tsl_purge_tick(void);

// When the window ends, by tsl_os_now_ms: a step after that may find more to give back.
TSL_HIDDEN uint64_t tsl_purge_window_end_ms(void);

// Gives idle memory back while the soft limit (limit.h) leaves no room for it: at most 64 units
// more than the caller took or gave, in at most 16 runs: a system call each, and up to three for
// their records. Where the system refuses it is asked again after 100 ms. Any thread, also while a
// helper lives.
// What tsl_purge_keep keeps goes back, too.
TSL_HIDDEN void tsl_purge_for_limit(size_t units);

// Whether there is more free memory than tsl_purge_keep wants to keep.
TSL_HIDDEN bool tsl_purge_waits(void);

// Free memory beyond what tsl_purge_keep wants to keep.
TSL_HIDDEN size_t tsl_purge_idle_bytes(void);

// What a helper would find: that, the free blocks in slabs that none has looked at, and the dead
// pages of ended epochs.
TSL_HIDDEN size_t tsl_purge_returnable_bytes(void);

// The free blocks in a thread's slabs that no helper has looked at, or the dead pages of ended
// epochs, were `before` bytes, and are `after` now. Any thread.
TSL_HIDDEN void tsl_purge_loosen(size_t before, size_t after);

// So many more bytes, or less, are free in memory of others than their owners know. Any thread.
TSL_HIDDEN void tsl_purge_send(ptrdiff_t bytes);

// The helper looks at all of these now, and they count no longer.
TSL_HIDDEN void tsl_purge_see_sent(void);

// In the child of a fork, once no home counts any: a lost thread may have been about to add some.
TSL_HIDDEN void tsl_purge_forget_loose(void);

struct tsl_purged {
  size_t bytes;
  unsigned calls;  // to the system
};

// Gives back those pages of [start, start + bytes) for which `is_dead` is true. Owner of the
// memory.
TSL_HIDDEN struct tsl_purged tsl_purge_dead(uintptr_t start, size_t bytes,
                                            bool (*is_dead)(const void *, size_t offset,
                                                            size_t page_bytes),
                                            const void *context);

// Keeps at least so much free memory from now on, until tsl_purge_all: the next epoch will want it.
TSL_HIDDEN void tsl_purge_keep(size_t bytes);

// Gives all free memory back: before it returns, or soon after by the helper where one runs.
TSL_HIDDEN void tsl_purge_now(void);

// For the helper: sleeps for about `ms` milliseconds, or until tsl_purge_now wakes it; then gives
// all free memory back, and returns true.
TSL_HIDDEN bool tsl_purge_help(uint64_t ms);

// Whether a helper lives. Set by the helper, and in the child of a fork.
TSL_HIDDEN bool tsl_purge_has_helper(void);
TSL_HIDDEN void tsl_purge_set_helper(bool lives);

// Idle memory for which a helper may be born (option `helper`); less near the soft limit.
enum { TSL_PURGE_MUCH_BYTES = 8 << 20, TSL_PURGE_NEAR_BYTES = 1 << 20 };
TSL_HIDDEN size_t tsl_purge_much_bytes(void);

// Called by tsl_purge_call_helper when a helper may be missing. Set once, by helper.c.
TSL_HIDDEN extern void (*tsl_purge_helper_missing)(size_t more_bytes);

// Called on slow paths of malloc and free, and at ends of epochs; `more_bytes` will be idle in a
// moment. A helper may be born, which allocates: large blocks are given back afterwards, so that
// their memory is not taken for that at once.
TSL_HIDDEN void tsl_purge_call_helper(size_t more_bytes);

// Gives all free memory but `keep_bytes` back before it returns. Returns the bytes given back.
TSL_HIDDEN size_t tsl_purge_all(size_t keep_bytes);
