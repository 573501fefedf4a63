/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tslab: a memory allocator that knows lifetimes. The whole C interface.
 *
 * Programs that only want a faster malloc need none of this: they start with libtslab-preload.so
 * preloaded, or link tslab::preload. What stands here works beside it: there is one allocator in
 * a process, whichever way it was reached.
 *
 * Every function may be called by any thread at any time, before constructors and after exit
 * included, unless it says otherwise. None is async-signal-safe. Errors are errno values, and
 * tslab_error_text says what they mean here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TSLAB_VERSION "0.1.0"

#if defined(__cplusplus)
extern "C" {
#define TSLAB_NOEXCEPT noexcept
#else
#define TSLAB_NOEXCEPT
#endif

#if defined(__GNUC__)
#define TSLAB_API __attribute__((visibility("default")))
#define TSLAB_MALLOC __attribute__((malloc, warn_unused_result))
#define TSLAB_SIZE(position) __attribute__((alloc_size(position)))
#define TSLAB_SIZES(count, bytes) __attribute__((alloc_size(count, bytes)))
#define TSLAB_MUST_USE __attribute__((warn_unused_result))
#define TSLAB_NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))
#else
#define TSLAB_API
#define TSLAB_MALLOC
#define TSLAB_SIZE(position)
#define TSLAB_SIZES(count, bytes)
#define TSLAB_MUST_USE
#define TSLAB_NONNULL(...)
#endif

/* A block of at least `bytes` bytes, aligned to 16. A size of 0 gives a block of its own, too.
 * Fails: NULL and ENOMEM, also for sizes above PTRDIFF_MAX. */
TSLAB_API void *tslab_malloc(size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC TSLAB_SIZE(1);

/* A zeroed block for `count` objects of `bytes` bytes.
 * Fails: as tslab_malloc, also when the product overflows. */
TSLAB_API void *tslab_calloc(size_t count, size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC
    TSLAB_SIZES(1, 2);

/* Changes the size of a block, moving it where it must; contents stay up to the smaller size.
 * NULL for `block` allocates; a size of 0 frees the block and returns NULL.
 * Fails: NULL and ENOMEM, and the block is as before. */
TSLAB_API void *tslab_realloc(void *block, size_t bytes) TSLAB_NOEXCEPT TSLAB_MUST_USE
    TSLAB_SIZE(2);

/* tslab_realloc for `count` objects of `bytes` bytes.
 * Fails: also, and likewise, when the product overflows. */
TSLAB_API void *tslab_reallocarray(void *block, size_t count,
                                   size_t bytes) TSLAB_NOEXCEPT TSLAB_MUST_USE TSLAB_SIZES(2, 3);

/* Frees a block; NULL is allowed. Keeps errno. A pointer that is no live block is misuse: option
 * `on_error`. */
TSLAB_API void tslab_free(void *block) TSLAB_NOEXCEPT;

/* tslab_free for a block of tslab_malloc, tslab_calloc or tslab_realloc, whose size the program
 * knows. The secure build reports a size that the block was not asked for; no other build reads it.
 */
TSLAB_API void tslab_free_sized(void *block, size_t bytes) TSLAB_NOEXCEPT;

/* Changes the size of a block without moving it. Contents stay up to the smaller size.
 * Returns true when the block has room for `bytes` bytes now; false, and nothing changed, when it
 * would have to move, a limit of its epoch refuses, or it would keep more than twice what it needs;
 * also for NULL. */
TSLAB_API bool tslab_resize_in_place(void *block, size_t bytes) TSLAB_NOEXCEPT TSLAB_MUST_USE;

/* A block aligned to `alignment`, a power of two.
 * Fails: NULL and EINVAL or ENOMEM. */
TSLAB_API void *tslab_aligned_alloc(size_t alignment, size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC
    TSLAB_SIZE(2);

/* The same as POSIX has it: `alignment` is also a multiple of sizeof(void *), the error is
 * returned, errno stays, and `*block` is written on success only. */
TSLAB_API int tslab_posix_memalign(void **block, size_t alignment,
                                   size_t bytes) TSLAB_NOEXCEPT TSLAB_MUST_USE TSLAB_NONNULL(1);

/* Bytes of a block that the program may use: at least what it asked for, the same for the block's
 * life. 0 for NULL. */
TSLAB_API size_t tslab_usable_size(const void *block) TSLAB_NOEXCEPT;

/* What tslab_usable_size would say of a block of `bytes` bytes; 0 when there can be none. */
TSLAB_API size_t tslab_good_size(size_t bytes) TSLAB_NOEXCEPT;

/* Gives free memory back to the system, but for `keep_bytes` bytes; a huge page goes back whole.
 * Collects the calling thread's caches and those of threads that ended; takes time in proportion
 * to what it gives back. Returns 1 when there was some, 0 otherwise. */
TSLAB_API int tslab_trim(size_t keep_bytes) TSLAB_NOEXCEPT;

/* Whether the program's malloc is tslab's, so that scopes hold what malloc, new and any library
 * allocate. It is not with libtslab.so alone, nor where another malloc comes first in the process:
 * the first scope that is entered then says so on stderr, unless option `on_error` is `ignore`. */
TSLAB_API bool tslab_captures_malloc(void) TSLAB_NOEXCEPT;

/* The version of the library that runs, which may be newer than TSLAB_VERSION. */
TSLAB_API const char *tslab_version(void) TSLAB_NOEXCEPT;

/* What an error means that a function of this header returned, or left in errno. The text stays
 * valid for ever and does not depend on the locale. Any number has a text. */
TSLAB_API const char *tslab_error_text(int error) TSLAB_NOEXCEPT;

/* Writes an option's value (docs/options.md) as text to `value`, `size` bytes long.
 * Returns 0, ENOENT for an unknown name, ERANGE when `size` is too small. */
TSLAB_API int tslab_option_get(const char *name, char *value, size_t size) TSLAB_NOEXCEPT
    TSLAB_NONNULL(1, 2);

/* Sets an option at run time.
 * Returns 0, ENOENT for an unknown name, EINVAL for a value that does not fit; then nothing
 * changed. What is set here wins over the environment. `reserve`, `thp` and `release` are looked at
 * once, before the first allocation, `libraries` as the first scope is entered; `confirm` and
 * `abort_conf` as the environment is read, by the first call of this function, of
 * tslab_option_get or of an allocation. */
TSLAB_API int tslab_option_set(const char *name, const char *value) TSLAB_NOEXCEPT
    TSLAB_NONNULL(1, 2);

/* What the process's memory is made of, in bytes. The parts add up: resident_bytes is live_bytes +
 * hot_bytes + free_bytes + cached_bytes + dirty_bytes + metadata_bytes - untouched_bytes. Exact
 * while no other thread allocates or frees; otherwise each figure is of some moment. */
typedef struct tslab_stats {
  size_t size;            /* sizeof(tslab_stats), set by the caller */
  size_t live_objects;    /* blocks in use; not in bytes */
  size_t live_bytes;      /* that they may use */
  size_t large_bytes;     /* of these: in blocks of whole 64 KiB */
  size_t hot_bytes;       /* free blocks that threads keep at hand */
  size_t free_bytes;      /* free blocks and rounding in slabs and cells */
  size_t cached_bytes;    /* empty units of 64 KiB, ready for any thread */
  size_t dirty_bytes;     /* free memory that has not gone back to the system yet */
  size_t metadata_bytes;  /* the allocator's own records */
  size_t untouched_bytes; /* of live and hot blocks: never written to, not resident */
  size_t resident_bytes;  /* of all that the allocator has */
} tslab_stats;

/* Writes what the memory is made of. Takes time in proportion to it, and asks the system what is
 * resident.
 * Returns 0, EINVAL (`size` is not one that this library knows). */
TSLAB_API int tslab_stats_get(tslab_stats *stats) TSLAB_NOEXCEPT TSLAB_NONNULL(1);

/* Writes the same, and every epoch that is not over, as a JSON object without line breaks: `write`
 * is called with pieces of text, `length` bytes each. Strings are UTF-8 as far as labels are. Takes
 * time in proportion to the memory and the number of epochs. */
TSLAB_API void tslab_stats_json(void (*write)(const char *text, size_t length, void *context),
                                void *context) TSLAB_NONNULL(1);

/* ---- Epochs -----------------------------------------------------------------------------------
 *
 * An epoch is a lifetime that the program declares: a request, a frame, a batch, a tenant. Objects
 * of an epoch share memory with no other epoch's, but for epochs of one label that come to share
 * theirs (enum tslab_place), small and short ones, and those that their objects outlive, which
 * below a parent share the parent's. They may be freed one by one, by any thread and by plain free;
 * closing the epoch ends new allocation, and its memory goes back piece by piece as the last
 * objects are freed; releasing it ends all of them at once. The extent of an epoch is the memory
 * from its first cell, slab or large block to its last one, with what lies in between.
 *
 * An epoch is named by a value. Ids are never used twice: one of an epoch that is over is refused
 * with ESTALE. Functions that return int return 0 or an errno value. */

typedef uint64_t tslab_epoch;

/* The default epoch: always open, and where every thread is that entered no other. */
#define TSLAB_DEFAULT UINT64_C(0)

/* No epoch: what a failed open returns. Everybody refuses it with ESTALE. */
#define TSLAB_NO_EPOCH UINT64_MAX

/* Bytes of a label, with the 0 at its end. */
#define TSLAB_LABEL_BYTES 64

/* What happens to the pages of an epoch that ends. */
enum tslab_purge {
  TSLAB_PURGE_DECAY, /* they go back once they were not needed for option `purge_delay_ms`; those
                        between few survivors, where these keep 1 MiB or more, at once */
  TSLAB_PURGE_KEEP,  /* as many bytes as it held stay with the process, until tslab_trim, or until
                        option `soft_limit` wants them back */
  TSLAB_PURGE_NOW    /* all free memory, but for what threads keep at hand and what lies between
                        live objects, goes back before the call returns; by the helper, within
                        milliseconds of it, where one lives (option `helper`) */
};

enum tslab_limit { TSLAB_SOFT_LIMIT, TSLAB_HARD_LIMIT };

/* Called when an epoch would hold more than a limit: `held_bytes` now, `wanted_bytes` more wanted.
 * For the soft limit it is called once, and again only after the epoch has held less. For the hard
 * limit it may make room, by closing a child for instance: the allocation is tried once more, and
 * then fails with ENOMEM. Runs on the allocating thread, which is in the default epoch meanwhile.
 * It may allocate, in `epoch` too: it is not called for limits that it exceeds itself. */
typedef void tslab_limit_callback(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                                  size_t wanted_bytes, void *context);

/* Where the objects of an epoch lie. An epoch with memory of its own shares none with another one.
 * Epochs that share lie in one long epoch of their label, the shared one, beside objects of the
 * others: malloc then costs what it costs without epochs, for the first eight labels of a thread
 * and for busy ones, and who holds memory is known by label, not by epoch. The shared epoch never
 * ends; it can be entered and asked by its id, which tslab_epoch_of and tslab_epoch_stats tell.
 * A guest shares the memory of its host, which is its parent, or its parent's host: its objects
 * count there, and end with the host's release or reset. Otherwise what is said below of an epoch
 * that shares is true of a guest. Once the host was closed, new objects of the guest lie with the
 * next ancestor that is open and has memory of its own, or outside of epochs: a later release of
 * the host does not end these. */
enum tslab_place {
  TSLAB_PLACE_AUTO,  /* as option `places` says. By default an epoch shares when it has no parent,
                        limits, TSLAB_PURGE_KEEP or first cell, and epochs of its label were closed
                        that were many, small and short, and in which little survived, or whose
                        survivors pin memory and are freed one by one; not once the program
                        released or reset one of them. With a parent, and without
                        TSLAB_PURGE_NOW, it is a guest then (above), if the thread that opens it
                        does so below that host for the eighth time or more, with fewer than four
                        other hosts between two times; no thread has more than four such hosts
                        that are open */
  TSLAB_PLACE_OWN,   /* memory of its own: for epochs that will be released, or asked for their
                        objects */
  TSLAB_PLACE_SHARED /* from the first epoch of the label on; memory of its own while another thread
                        is opening the shared one */
};

/* All zero but `size` is a good start. Limits count memory, not objects: cells of 4 to 64 KiB,
 * slabs of 64 KiB and more, and large blocks, those of the epoch's descendants included. */
typedef struct tslab_epoch_options {
  size_t size;             /* sizeof(tslab_epoch_options) */
  tslab_epoch parent;      /* whose release ends this one, too; TSLAB_DEFAULT: none */
  size_t soft_limit_bytes; /* 0: none */
  size_t hard_limit_bytes; /* 0: none */
  tslab_limit_callback *on_limit;
  void *limit_context;
  enum tslab_purge purge;
  unsigned threads;        /* about how many will allocate in it at a time; 0: one or two */
  size_t first_cell_bytes; /* 0: 4096; more for epochs that grow at once; TSLAB_NO_CELLS for those
                              that are long and lose objects one by one */
  enum tslab_place place;
} tslab_epoch_options;

#define TSLAB_NO_CELLS SIZE_MAX

/* Opens an epoch. `label` is a text of at most 63 bytes that stays the same for epochs of the same
 * kind; the first 4,094 different ones are kept, further ones show as "other". `options` may be
 * NULL.
 * Fails: TSLAB_NO_EPOCH and EINVAL (label too long, options that make no sense or contradict each
 * other), ENOMEM, ESTALE or ECANCELED (the parent is over, or has ended, or is being reset), EBUSY
 * (the parent is being reset), ELOOP (the parent has 63 ancestors). The 65,536th epoch that is not
 * over is reported, once, where most are open: a sign of epochs that nobody ends (option
 * `on_error`). */
TSLAB_API tslab_epoch tslab_epoch_open(const char *label,
                                       const tslab_epoch_options *options) TSLAB_NOEXCEPT
    TSLAB_NONNULL(1);

/* What outlived an epoch that was closed. */
typedef struct tslab_survivors {
  int error; /* 0; else the rest is 0: ESTALE, ECANCELED (ended before), EPERM (TSLAB_DEFAULT, and
                the shared epoch of a label), EBUSY (it is being reset) */
  size_t objects; /* still valid, until they are freed */
  size_t bytes;   /* that they may use */
  size_t pages;   /* of 4 KiB that stay because of them */
} tslab_survivors;

/* Ends allocation in the epoch. Its live objects stay valid. Each cell, slab and large block goes
 * back when its last object is freed, or right afterwards, if another thread is purging it at that
 * moment; the epoch is over with the last of them. Threads that are inside at this moment, the
 * calling one included, go on until they leave; what they allocated in the epoch is not in the
 * answer. A free by another thread that is under way is waited for. What tslab_epoch_defer
 * registered runs first. An epoch that shares is over at once: its objects stay valid and are its
 * label's, or its host's; none is in the answer. Closing an epoch while the calling thread is in a
 * descendant of it is reported, once for each label (option `on_error`). */
TSLAB_API tslab_survivors tslab_epoch_close(tslab_epoch epoch) TSLAB_NOEXCEPT;

/* Ends the epoch and every object in it, but those that were kept (tslab_epoch_keep), and all of
 * its children, with what was kept there, too: that was kept from the child's end, not from this
 * one's. Takes time proportional to its memory, not its objects; where objects were kept, to both.
 * What tslab_epoch_defer registered runs first. An epoch that was closed may be released, too, as
 * long as objects survive in it; that takes time proportional to its extent. Meanwhile kept objects
 * may be freed; no thread may otherwise use, allocate or free objects of the epoch. A later free of
 * one that ended is reported (option `on_error`) as long as its cell, slab or large block was not
 * given out again. A thread that is inside ends its own part when it leaves. Releasing while the
 * calling thread is in a descendant is reported as by tslab_epoch_close.
 * What glibc and libstdc++ take from malloc in passing lies in the default epoch (option
 * `libraries`; docs/epochs.md, "Beside libraries", says what does not).
 * Other libraries may keep something, too: call those under tslab_scope_default, or close instead
 * of releasing.
 * Returns 0, ESTALE, EPERM (TSLAB_DEFAULT, and the shared epoch of a label), EBUSY (it was closed,
 * and somebody is still inside, or still closing it, or it is being reset: nothing changed),
 * ENOTSUP (it shared: it is over, its objects stay valid until they are freed, and no further epoch
 * of its label shares), ENOMEM (the thread's first call). A child that would be busy stays as it
 * is. */
TSLAB_API int tslab_epoch_release(tslab_epoch epoch) TSLAB_NOEXCEPT;

/* Ends every object in an open epoch but those that were kept, and all of its children, with what
 * was kept there, too, as a release does; the epoch stays open, for the next frame or round of a
 * loop. What tslab_epoch_defer registered runs first, and is registered no more. The calling
 * thread may be inside, and allocates next in memory that it used before the reset: this much
 * stays with the epoch, and is counted in `held_bytes` (not under option `release:poison`, where
 * what ended waits elsewhere). Under a hard limit, of its own or an ancestor's, the epoch holds
 * nothing afterwards. `purge` concerns the epoch's end only. Meanwhile other threads may free kept
 * objects; they may not enter the epoch, or otherwise use, allocate or free objects of it, and
 * functions that need an open epoch fail with EBUSY. Handles of objects that ended give NULL. No
 * further epoch of its label shares (enum tslab_place). In the child of a fork that another thread
 * makes meanwhile, the epoch stays as it is, and all calls say EBUSY.
 * Returns 0, ESTALE, ECANCELED, EPERM (TSLAB_DEFAULT, and the shared epoch of a label), EBUSY
 * (another thread is inside, or resets it: nothing changed), ENOTSUP (it shares: nothing but that
 * label changed; see TSLAB_PLACE_OWN), ENOMEM (the thread's first call). */
TSLAB_API int tslab_epoch_reset(tslab_epoch epoch) TSLAB_NOEXCEPT;

/* Keeps a live block: the release or reset of its epoch spares it, and it lives on until it is
 * freed, as any block is. From that end on it belongs to the parent: a release or reset of the
 * parent ends it, unless it was kept once more in between. Where there is no parent, nothing but a
 * free ends it. It stays in the figures of its epoch, which is over only once such blocks are
 * freed, and holds their memory: `held_bytes` and the limits of the ancestors count it.
 * While another thread is still inside an epoch that was released, an end of the parent passes over
 * what was kept there: that lives until it is freed, or until the next such end.
 * Kept twice is kept once. A free before the end needs no other call. A block that tslab_realloc
 * moves stays kept; one that tslab_epoch_realloc moves does not. The release of an epoch that was
 * closed spares what was kept before or after the close. Deferred calls may keep blocks. In the
 * default epoch, and where epochs of a label share memory (enum tslab_place), only a free ends a
 * block: the call has no effect. A block of a guest is a block of its host. Where the epoch of the
 * block has a parent, no further epoch of its label shares. Objects with a handle cannot be kept.
 * Threads: any; not while the block is freed, nor while its epoch is released or reset.
 * Returns 0, EFAULT (no live block begins there), ECANCELED (the epoch was released, and has
 * not spared the block), ENOMEM (nothing changed; also the thread's first call). */
TSLAB_API int tslab_epoch_keep(const void *block) TSLAB_NOEXCEPT;

/* Registers `run(argument)` for the end of the epoch. The last one registered runs first, on the
 * thread that closes, releases or resets the epoch, while its objects are still valid; it may free
 * them, and allocate elsewhere.
 * Returns 0, ENOMEM, ESTALE, ECANCELED, EBUSY (it is being reset), EPERM (TSLAB_DEFAULT). */
TSLAB_API int tslab_epoch_defer(tslab_epoch epoch, void (*run)(void *),
                                void *argument) TSLAB_NOEXCEPT TSLAB_NONNULL(2);

/* A call that was registered for the end of an epoch, by value: what cancels it. A struct of zeros
 * is none. */
typedef struct tslab_deferred {
  tslab_epoch epoch;
  uint64_t number; /* never used twice */
} tslab_deferred;

/* tslab_epoch_defer for a call that may be cancelled.
 * Fails: a struct of zeros, and errno as above. */
TSLAB_API tslab_deferred tslab_deferred_add(tslab_epoch epoch, void (*run)(void *),
                                            void *argument) TSLAB_NOEXCEPT TSLAB_NONNULL(2);

/* Cancels a call: true for one caller, and then it never runs. False when it ran, is about to
 * because the epoch has ended or is being reset, or was cancelled before. Takes time in proportion
 * to what was registered after it. */
TSLAB_API bool tslab_deferred_cancel(tslab_deferred call) TSLAB_NOEXCEPT;

/* Has `call` called once the epoch is over: it was closed, and the last of its objects was freed;
 * or it was released, and the last one that was kept was freed. Its id is refused by then. An epoch
 * that shares is over when it is closed.
 * The call comes from the thread whose call ended the epoch, which is the free of the last object
 * mostly; where another thread was giving memory of the epoch back just then, from a thread of the
 * program that allocates, or enters an epoch, later: let no thread wait for it. The thread is in
 * the default epoch meanwhile. The call may do what any code may; the program must hold no lock
 * that the call takes while it frees or closes. It replaces the one registered before; NULL: none.
 * Not by two threads at a time.
 * Returns 0, ESTALE, EPERM (TSLAB_DEFAULT, and the shared epoch of a label), ENOMEM (the thread's
 * first call). */
TSLAB_API int tslab_epoch_on_over(tslab_epoch epoch, void (*call)(tslab_epoch epoch, void *context),
                                  void *context) TSLAB_NOEXCEPT;

/* Keeps a pointer of the program's with an epoch, NULL at first. Nobody follows it. It can be asked
 * for, and changed, until the epoch is over: also after the close, as long as objects survive.
 * Returns 0, ESTALE, EPERM (TSLAB_DEFAULT), ENOMEM (the thread's first call). */
TSLAB_API int tslab_epoch_set_user(tslab_epoch epoch, void *user) TSLAB_NOEXCEPT;

/* That pointer: NULL when there is none. Who sees it sees what was written to its target before it
 * was set.
 * Fails: NULL and ESTALE. */
TSLAB_API void *tslab_epoch_get_user(tslab_epoch epoch) TSLAB_NOEXCEPT;

/* Changes the limits of an open epoch; 0: none. They hold for memory that is taken from now on: an
 * epoch that holds more than its hard limit keeps it. The callback is called for the soft limit
 * once more. It may change the limits itself: the allocation is then tried against the new ones.
 * Returns 0, ESTALE, ECANCELED, EPERM (TSLAB_DEFAULT), ENOTSUP (it shares, and holds no memory of
 * its own), ENOMEM (the thread's first call). */
TSLAB_API int tslab_epoch_set_limits(tslab_epoch epoch, size_t soft_limit_bytes,
                                     size_t hard_limit_bytes) TSLAB_NOEXCEPT;

/* A thread's stay in an epoch: plain malloc, new and strdup land there, of the program and of its
 * libraries. What the C library and the C++ runtime allocate for themselves, or for the program to
 * free, lies in the default epoch (option `libraries`). Scopes nest to any depth and belong to one
 * thread; the struct is the caller's, usually on its stack. A coroutine that moves to another
 * thread leaves here and enters there. A thread that ends leaves its scopes; that is reported, once
 * for each label (option `on_error`). */
typedef struct tslab_scope {
  tslab_epoch epoch; /* where one is; the rest is the library's */
  void *heap;
  void *outer;
  unsigned depth;
  tslab_epoch before;
} tslab_scope;

/* Enters an epoch.
 * Returns 0; otherwise the thread stays where it is: ESTALE, ECANCELED (closed; or a guest whose
 * host was released), EBUSY (a guest whose host is being reset), ENOMEM, EPERM (the thread's
 * destructors ran already). */
TSLAB_API int tslab_scope_enter(tslab_scope *scope, tslab_epoch epoch) TSLAB_NOEXCEPT
    TSLAB_NONNULL(1);

/* Enters the default epoch: a way out for objects that are meant to survive. */
TSLAB_API int tslab_scope_default(tslab_scope *scope) TSLAB_NOEXCEPT TSLAB_NONNULL(1);

/* Leaves the innermost scope of the calling thread. Another one, be it an outer scope, one of
 * another thread or one that was left before, is misuse: option `on_error`. The message names the
 * epoch of the scope and that which the thread is in.
 * Returns 0, EPERM after misuse; then nothing changed. */
TSLAB_API int tslab_scope_leave(tslab_scope *scope) TSLAB_NOEXCEPT TSLAB_NONNULL(1);

/* The epoch that the calling thread is in; it may have ended meanwhile. */
TSLAB_API tslab_epoch tslab_epoch_current(void) TSLAB_NOEXCEPT;

/* One allocation in an epoch, from wherever the thread is. Free with tslab_free or free.
 * Fails: as their namesakes, and ESTALE or ECANCELED; a refusal by ECANCELED is counted. */
TSLAB_API void *tslab_epoch_malloc(tslab_epoch epoch, size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC
    TSLAB_SIZE(2);
TSLAB_API void *tslab_epoch_calloc(tslab_epoch epoch, size_t count,
                                   size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC TSLAB_SIZES(2, 3);
TSLAB_API void *tslab_epoch_aligned_alloc(tslab_epoch epoch, size_t alignment,
                                          size_t bytes) TSLAB_NOEXCEPT TSLAB_MALLOC TSLAB_SIZE(3);

/* A copy of a text in an epoch; of `most_bytes` bytes at most, and a 0 behind them.
 * Fails: as tslab_epoch_malloc. */
TSLAB_API char *tslab_epoch_strdup(tslab_epoch epoch, const char *text) TSLAB_NOEXCEPT TSLAB_MALLOC
    TSLAB_NONNULL(2);
TSLAB_API char *tslab_epoch_strndup(tslab_epoch epoch, const char *text,
                                    size_t most_bytes) TSLAB_NOEXCEPT TSLAB_MALLOC TSLAB_NONNULL(2);

/* Resizes a block, which goes to the epoch when it has to move. (tslab_realloc keeps a block in its
 * own epoch while that is open; later it goes to the default epoch. What a release or reset spared
 * goes to the ancestor whose end would end it, or to the default epoch.) */
TSLAB_API void *tslab_epoch_realloc(tslab_epoch epoch, void *block,
                                    size_t bytes) TSLAB_NOEXCEPT TSLAB_MUST_USE TSLAB_SIZE(3);

/* Where an epoch is in its life. The shared epoch of a label is open for ever. */
enum tslab_state { TSLAB_OPEN, TSLAB_CLOSED, TSLAB_RELEASED, TSLAB_SHARED };

/* What is known of an epoch. Exact while no other thread allocates or frees in it; otherwise each
 * figure is of some moment during the call. Objects and bytes do not include those of children,
 * `held_bytes` does. */
typedef struct tslab_epoch_stats {
  size_t size; /* sizeof(tslab_epoch_stats), set by the caller */
  tslab_epoch epoch;
  tslab_epoch parent;
  const char *label; /* stays valid for ever */
  enum tslab_state state;
  unsigned threads;  /* that have memory in it */
  unsigned scopes;   /* open in it */
  unsigned children; /* not over yet */
  size_t live_objects;
  size_t live_bytes;  /* usable bytes of them */
  size_t held_bytes;  /* its cells, slabs and large blocks, and its descendants' */
  uint64_t age_ms;    /* since it was opened */
  uint64_t closed_ms; /* since it was closed or released; 0 while open */
  uint64_t late;      /* allocations refused because it had ended */
  tslab_epoch place;  /* where its objects lie: itself, or the shared epoch of its label, or its
                         host (enum tslab_place), which then has the figures of objects, bytes,
                         threads and scopes */
  size_t peak_bytes;  /* the most that `held_bytes` was */
  uint64_t allocated_objects; /* since it was opened; those that do not live were freed, or reset */
  uint64_t allocated_bytes;   /* of them: what they took, and what large ones grew by */
} tslab_epoch_stats;

/* Writes what is known of an epoch, `size` bytes of it: programs that were compiled with an earlier
 * version know fewer fields. Of the default epoch all objects and bytes are 0. Takes time in
 * proportion to the epoch's extent.
 * Returns 0, ESTALE, EINVAL (`size` is not one that this library knows), ENOMEM (the thread's first
 * call). */
TSLAB_API int tslab_epoch_get_stats(tslab_epoch epoch, tslab_epoch_stats *stats) TSLAB_NOEXCEPT
    TSLAB_NONNULL(2);

/* Calls `visit` for each epoch but the default one that is not over, until it returns other than 0;
 * returns that, or 0. Epochs opened meanwhile may be missed. One that is closed and has no objects
 * may be over by the time `visit` asks about it: the answer is ESTALE then. */
TSLAB_API int tslab_epochs_each(int (*visit)(tslab_epoch epoch, void *context), void *context)
    TSLAB_NONNULL(1);

/* Calls `visit` for each live block of an epoch, until it returns other than 0; returns that, 0, or
 * ESTALE, EPERM (TSLAB_DEFAULT, and the shared epoch of a label). Nobody may allocate or free in
 * the epoch meanwhile, but `visit` may free the block that it is given. Takes time in proportion to
 * the epoch's memory; once it was closed, to its extent. */
TSLAB_API int tslab_epoch_blocks_each(tslab_epoch epoch,
                                      int (*visit)(void *block, size_t bytes, void *context),
                                      void *context) TSLAB_NONNULL(2);

/* The epoch in which a live block lies. TSLAB_NO_EPOCH for an address that is no block's. */
TSLAB_API tslab_epoch tslab_epoch_of(const void *block) TSLAB_NOEXCEPT;

/* What is known of a live block and of those that share memory with it: enough to decide whether
 * moving it elsewhere would give memory back. */
typedef struct tslab_block_info {
  size_t size; /* sizeof(tslab_block_info), set by the caller */
  tslab_epoch epoch;
  size_t usable_bytes;
  size_t shared_bytes; /* of the cell, slab or large block that it lies in */
  unsigned live;       /* blocks in use there, the hot free ones of its thread included */
  unsigned capacity;   /* blocks that fit there; of a cell, those handed out so far */
} tslab_block_info;

/* Writes what is known of a block.
 * Returns 0, EFAULT for an address that is no live block's (one that its thread freed lately may
 * still count as live), EINVAL (`size`). */
TSLAB_API int tslab_block_get_info(const void *block, tslab_block_info *info) TSLAB_NOEXCEPT
    TSLAB_NONNULL(2);

/* How soon the memory of an epoch will be used. */
enum tslab_advice {
  TSLAB_ADVISE_COLD,    /* not soon: to be reclaimed first when memory is short */
  TSLAB_ADVISE_PAGEOUT, /* reclaim it now, where there is swap */
  TSLAB_ADVISE_WILLNEED /* soon: read back what was reclaimed */
};

/* Tells the system about the memory of an idle or closed epoch, its children's not included. Takes
 * time in proportion to its extent.
 * Returns 0, ESTALE, EPERM (TSLAB_DEFAULT), EINVAL (no such advice), ENOTSUP (the system refused).
 * */
TSLAB_API int tslab_epoch_advise(tslab_epoch epoch, enum tslab_advice advice) TSLAB_NOEXCEPT;

/* A name of one object that can be checked: tslab_handle_get returns NULL once the object was
 * freed, or its epoch is over or was reset. A struct of zeros is a handle of no object. */
typedef struct tslab_handle {
  void *block; /* the rest is the library's */
  tslab_epoch epoch;
  uint64_t stamp;
} tslab_handle;

/* An object of `bytes` bytes in an epoch, and its handle. To be freed by tslab_handle_free only.
 * Fails: a handle of no object, and errno as tslab_epoch_malloc. */
TSLAB_API tslab_handle tslab_handle_alloc(tslab_epoch epoch, size_t bytes) TSLAB_NOEXCEPT;

/* The object; NULL when it was freed, or its epoch is over or was reset. Another thread may free it
 * right afterwards. */
TSLAB_API void *tslab_handle_get(tslab_handle handle) TSLAB_NOEXCEPT;

/* Frees the object. True for one call, false when it was freed already. */
TSLAB_API bool tslab_handle_free(tslab_handle handle) TSLAB_NOEXCEPT;

/* Epochs that follow each other: one per minute, per N requests, or whenever the program says so.
 * To be initialised by TSLAB_ROTATION; any thread may use it. The epoch before the current one
 * stays open until the next turn, so that a thread which asked for the current one just before a
 * turn can still allocate there. */
typedef struct tslab_rotation {
  const char *label;
  const tslab_epoch_options *options; /* of each epoch; NULL: none */
  uint64_t every_ms;                  /* turn when so much time has passed; 0: never */
  uint64_t every_requests;            /* turn after so many calls of _current; 0: never */
  /* the rest is the library's */
  tslab_epoch current;
  tslab_epoch previous;
  uint64_t requests;
  uint64_t due_ms;
} tslab_rotation;

/* TSLAB_ROTATION("session", .every_ms = 60000): the label, then what is not 0. For C; C++ has
 * tslab::rotation. */
#define TSLAB_ROTATION(...) \
  { .label = __VA_ARGS__ }

/* The current epoch, after a turn when one is due.
 * Fails: TSLAB_NO_EPOCH, errno as tslab_epoch_open. */
TSLAB_API tslab_epoch tslab_rotation_current(tslab_rotation *rotation) TSLAB_NOEXCEPT
    TSLAB_NONNULL(1);

/* Turns now: opens a new current epoch and closes the one before the last. Returns the new one.
 * Fails: as above; then the current one stays. */
TSLAB_API tslab_epoch tslab_rotation_advance(tslab_rotation *rotation) TSLAB_NOEXCEPT
    TSLAB_NONNULL(1);

/* Closes both epochs. The rotation may be used again. */
TSLAB_API void tslab_rotation_end(tslab_rotation *rotation) TSLAB_NOEXCEPT TSLAB_NONNULL(1);

#if defined(__cplusplus)
}
#endif
