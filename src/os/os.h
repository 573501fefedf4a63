// os: everything that the allocator asks of the operating system. Behind it stands Linux
// (os_linux.c) or, in unit tests, a fake with a failure point at each call (test/unit/os_fake.c).
// Every call may come from any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// Bytes of a page; a power of two, the same for the life of the process.
TSL_HIDDEN size_t tsl_os_page_bytes(void);

// Proposes an address for `*bytes` bytes, away from where the system puts mappings of its own: a
// multiple of the smallest power of two that is not below `*bytes`. Maps nothing. `attempt` counts
// from 0. Later attempts are for narrower address spaces, and lower `*bytes` to what such a one has
// room for. 0 after the last attempt.
TSL_HIDDEN uintptr_t tsl_os_place(size_t *bytes, unsigned attempt);

// Maps pages at a place, readable and writable; they read as zero. No effect when the system
// refuses, or when something else is mapped there.
enum tsl_os_mapped { TSL_OS_MAPPED, TSL_OS_REFUSED, TSL_OS_OCCUPIED };
TSL_HIDDEN enum tsl_os_mapped tsl_os_map(void *address, size_t bytes);

// Maps pages at the end of a mapping, which grows where the system can do that: then its name and
// advice hold for the new pages, too.
TSL_HIDDEN enum tsl_os_mapped tsl_os_map_more(void *end, size_t bytes);

// Address space without access, aligned; a multiple of 64 KiB. NULL when the system refuses.
TSL_HIDDEN void *tsl_os_reserve(size_t bytes, size_t alignment);

// The same for addresses that never become accessible: every read or write there faults.
TSL_HIDDEN void *tsl_os_forbid(size_t bytes);

// The most bytes of address space to reserve: half of the process's limit; SIZE_MAX without one.
TSL_HIDDEN size_t tsl_os_reserve_limit_bytes(void);

// Makes reserved pages readable and writable; they read as zero. False (and no effect) when
// refused.
TSL_HIDDEN bool tsl_os_commit(void *address, size_t bytes);

// Maps pages for short use, apart from the region: readable, writable, zero. tsl_os_unreserve gives
// them back. NULL when the system refuses.
TSL_HIDDEN void *tsl_os_borrow(size_t bytes);

// Gives back mapped pages or a reservation. False, and nothing changed, when the system refuses.
TSL_HIDDEN bool tsl_os_unreserve(void *address, size_t bytes);

// Drops the contents of committed pages: they read as zero and cost no memory until touched. False
// when refused.
TSL_HIDDEN bool tsl_os_purge(void *address, size_t bytes);

// The same where it does not matter whether the system obeys, nor what the pages read as
// afterwards: no result.
TSL_HIDDEN void tsl_os_discard(void *address, size_t bytes);

// Makes committed pages inaccessible, or accessible and zero again. False, and nothing changed,
// when the system refuses.
TSL_HIDDEN bool tsl_os_guard(void *address, size_t bytes, bool guarded);

// The same where each system can do it, at the price of a mapping more: a change of protection.
TSL_HIDDEN bool tsl_os_protect(void *address, size_t bytes, bool is_protected);

// Asks `explain` about each read or write of `address` that the system refuses from now on, in the
// thread whose instruction at `code` tried it. True: it is tried again. False: the program's own
// handler gets it, or the system ends the program.
typedef bool tsl_os_explain(const void *address, const void *code);
TSL_HIDDEN void tsl_os_explain_faults(tsl_os_explain *explain);

// Moves pages to `to` (committed, zero, same size) without copying; the old place stays committed
// and reads as zero. NOT_MOVED: both places are as before. PLACE_LOST: `from` is as before, but
// `to` is no longer mapped, and must never be used again.
enum tsl_os_moved { TSL_OS_MOVED, TSL_OS_NOT_MOVED, TSL_OS_PLACE_LOST };
TSL_HIDDEN enum tsl_os_moved tsl_os_move(void *from, void *to, size_t bytes);

// Maps committed pages anew: they read as zero and have neither name nor advice. Pages that were
// moved here are a mapping of their own; afterwards, with the neighbours' name and advice, the
// place is one mapping with them again. False when the system refuses: the place may be unmapped,
// and must never be used again.
TSL_HIDDEN bool tsl_os_renew(void *address, size_t bytes);

// Resident bytes of a mapped range, in whole pages. 0 when the system does not say.
TSL_HIDDEN size_t tsl_os_resident(const void *address, size_t bytes);

// Tells the system how it may use huge pages in a range. Advice: no result.
TSL_HIDDEN void tsl_os_advise_huge(void *address, size_t bytes, bool wanted);

// Names a range in /proc/PID/maps. Advice: no result.
TSL_HIDDEN void tsl_os_name(void *address, size_t bytes, const char *name);

// Milliseconds of a clock that never goes back; its grain is a few milliseconds.
TSL_HIDDEN uint64_t tsl_os_now_ms(void);

// Nanoseconds of the same clock, to the nanosecond; a look takes about ten times as long.
TSL_HIDDEN uint64_t tsl_os_now_ns(void);

// Sleeps for about `ms` milliseconds, or until tsl_os_wake is called with the same word. Returns at
// once when `*word` is not 0.
TSL_HIDDEN void tsl_os_sleep_ms(const uint32_t *word, uint64_t ms);
TSL_HIDDEN void tsl_os_wake(const uint32_t *word);

// Nanoseconds of a processor that the calling thread has used, and all threads of the process.
TSL_HIDDEN uint64_t tsl_os_used_ns(void);
TSL_HIDDEN uint64_t tsl_os_process_used_ns(void);

// Whether tsl_os_barrier works on this system; to be called before its first use.
TSL_HIDDEN bool tsl_os_barrier_init(void);

// Makes every running thread of the process pass a memory barrier before it returns.
TSL_HIDDEN void tsl_os_barrier(void);

// Advice on how soon pages will be used. False when the system refuses.
enum tsl_os_use { TSL_OS_COLD, TSL_OS_PAGE_OUT, TSL_OS_WILL_NEED };
TSL_HIDDEN bool tsl_os_advise_use(void *address, size_t bytes, enum tsl_os_use use);

// Random bits, different in each process; not for cryptography.
TSL_HIDDEN uint64_t tsl_os_random(void);

// A word of memory that reads as zero in the child of a fork until the child writes it, and keeps
// what is written otherwise. NULL when the system knows no such memory.
TSL_HIDDEN uint32_t *tsl_os_fork_mark(void);

// Lets another thread run.
TSL_HIDDEN void tsl_os_yield(void);

// Value of an environment variable; NULL when it is not set or the program runs with raised
// privileges.
TSL_HIDDEN const char *tsl_os_environment(const char *name);

// The calling process, and when it began: field 22 of /proc/self/stat, 0 when that cannot be read.
TSL_HIDDEN uint32_t tsl_os_process(void);
TSL_HIDDEN uint64_t tsl_os_process_start(void);

// Reads a file from its beginning, `bytes` bytes at most, and puts a 0 behind them. Their number; 0
// when it cannot be read.
TSL_HIDDEN size_t tsl_os_read_file(const char *path, char *text, size_t bytes);

// Becomes another program. Returns only when the system refuses.
TSL_HIDDEN void tsl_os_execute(const char *path, char *const *arguments, char *const *environment);

// The calling thread, as the system numbers it.
TSL_HIDDEN uint32_t tsl_os_thread(void);

// The name of the calling thread in /proc: at most 15 characters. Advice: no result.
TSL_HIDDEN void tsl_os_name_thread(const char *name);

// The threads of the process; 0 when the system does not say.
TSL_HIDDEN uint32_t tsl_os_threads(void);

// Makes a file in memory that other processes of the same user may map by its name (without a
// slash), and maps it. Its bytes read as zero and must not be touched before tsl_os_share_more.
// Deletes an older file of that name. NULL, and no file, when the system refuses.
TSL_HIDDEN void *tsl_os_share(const char *name, size_t bytes);

// Allocates memory for a range of that file and makes it accessible. False when the system has
// none.
TSL_HIDDEN bool tsl_os_share_more(const char *name, size_t offset, size_t bytes);

// In the child of a fork: replaces the parent's file at these addresses by private memory, so that
// a write which a signal handler's fork interrupted can go on.
TSL_HIDDEN void tsl_os_share_no_more(void *address, size_t bytes);

// Deletes the file. Processes that have it mapped keep its contents.
TSL_HIDDEN void tsl_os_unshare(const char *name);
