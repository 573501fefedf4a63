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

// A place where so many bytes could lie and the system puts nothing of its own: a multiple of the
// least power of two that is not below them. Nothing is mapped there. Attempts are counted from 0;
// later ones are for narrower address spaces, and lower *bytes to what such a one has room for. 0
// after the last attempt.
TSL_HIDDEN uintptr_t tsl_os_place(size_t *bytes, unsigned attempt);

// Maps pages at a place, readable and writable; they read as zero. No effect when the system
// refuses, or when something else is mapped there.
enum tsl_os_mapped { TSL_OS_MAPPED, TSL_OS_REFUSED, TSL_OS_OCCUPIED };
TSL_HIDDEN enum tsl_os_mapped tsl_os_map(void *address, size_t bytes);

// The same for pages at the end of mapped ones, whose mapping grows: with it go its name and what
// was advised.
TSL_HIDDEN enum tsl_os_mapped tsl_os_map_more(void *end, size_t bytes);

// Address space without access, aligned; a multiple of 64 KiB. NULL when the system refuses.
TSL_HIDDEN void *tsl_os_reserve(size_t bytes, size_t alignment);

// The same for what is never used: whoever reads or writes there faults, for ever.
TSL_HIDDEN void *tsl_os_forbid(size_t bytes);

// Most bytes of address space it is decent to reserve, seeing the process's limits.
TSL_HIDDEN size_t tsl_os_reserve_limit_bytes(void);

// Makes reserved pages readable and writable; they read as zero. False (and no effect) when
// refused.
TSL_HIDDEN bool tsl_os_commit(void *address, size_t bytes);

// Pages for a moment, apart from all others: readable, writable, zero. tsl_os_unreserve gives them
// back. NULL when the system refuses.
TSL_HIDDEN void *tsl_os_borrow(size_t bytes);

// Gives back mapped pages or a reservation. False, and nothing changed, when the system refuses.
TSL_HIDDEN bool tsl_os_unreserve(void *address, size_t bytes);

// Drops the contents of committed pages: they read as zero and cost no memory until touched. False
// when refused.
TSL_HIDDEN bool tsl_os_purge(void *address, size_t bytes);

// The same for pages whose contents nobody needs, whatever they read as afterwards: no result.
TSL_HIDDEN void tsl_os_discard(void *address, size_t bytes);

// Makes committed pages inaccessible, or accessible and zero again. False, and nothing changed,
// when the system refuses.
TSL_HIDDEN bool tsl_os_guard(void *address, size_t bytes, bool guarded);

// Moves pages to `to` (committed, zero, same size) without copying; the old place stays committed
// and reads as zero. When the system cannot, nothing moved; when it cannot even give `to` back,
// that place is the system's from now on and must never be used again.
enum tsl_os_moved { TSL_OS_MOVED, TSL_OS_NOT_MOVED, TSL_OS_PLACE_LOST };
TSL_HIDDEN enum tsl_os_moved tsl_os_move(void *from, void *to, size_t bytes);

// Maps committed pages anew: they read as zero and have neither name nor advice. With those of its
// neighbours the place is one mapping with them again, which moved pages are not. False when the
// system refuses: the place is the system's from now on and must never be used again.
TSL_HIDDEN bool tsl_os_renew(void *address, size_t bytes);

// Bytes of pages of a mapped range that have memory. 0 when the system does not say.
TSL_HIDDEN size_t tsl_os_resident(const void *address, size_t bytes);

// Tells the system how it may use huge pages in a range. Advice: no result.
TSL_HIDDEN void tsl_os_advise_huge(void *address, size_t bytes, bool wanted);

// Names a range in /proc/PID/maps. Advice: no result.
TSL_HIDDEN void tsl_os_name(void *address, size_t bytes, const char *name);

// Milliseconds of a clock that never goes back; its grain is a few milliseconds.
TSL_HIDDEN uint64_t tsl_os_now_ms(void);

// Sleeps for about so long, or until tsl_os_wake is called with the word; not at all when that is
// not zero.
TSL_HIDDEN void tsl_os_sleep_ms(const uint32_t *word, uint64_t ms);
TSL_HIDDEN void tsl_os_wake(const uint32_t *word);

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

// Makes a file in memory that other processes of the same user may map by its name (without a
// slash), and maps it: so many bytes, which read as zero and must not be touched before
// tsl_os_share_more. An older file of that name goes. NULL, and no file, when the system refuses.
TSL_HIDDEN void *tsl_os_share(const char *name, size_t bytes);

// Puts memory behind a part of such a file. False when the system has none.
TSL_HIDDEN bool tsl_os_share_more(const char *name, size_t offset, size_t bytes);

// In the child of a fork: what lies there is no longer the parent's file but memory of its own, so
// that a thread which the fork interrupted may go on writing to it.
TSL_HIDDEN void tsl_os_share_no_more(void *address, size_t bytes);

// The file's name goes; who has it mapped keeps it.
TSL_HIDDEN void tsl_os_unshare(const char *name);
