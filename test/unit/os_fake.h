// os_fake: an operating system for tests behind os/os.h, which refuses what the test wants refused,
// and stops the program when it is asked for something that the contract excludes: pages outside
// the plan or reservation, committed twice, or purged and moved without having been committed.
// Access is enforced by the real system, page by page.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum os_fake_call {
  OS_FAKE_PLACE,
  OS_FAKE_RESERVE,
  OS_FAKE_COMMIT,  // of a reservation or of a plan
  OS_FAKE_PURGE,
  OS_FAKE_MOVE,
  OS_FAKE_GUARD,
  OS_FAKE_SHARE,
  OS_FAKE_SHARE_MORE,
  OS_FAKE_BORROW,
  OS_FAKE_RENEW,  // refused under its own name only: the place is lost then
  // those above may be refused; as a number of calls or a failure it means any of them
  OS_FAKE_FALLIBLE,
  OS_FAKE_UNRESERVE,
  OS_FAKE_ADVISE_HUGE,
  OS_FAKE_NAME,
  OS_FAKE_YIELD,
  OS_FAKE_WAKE,
  OS_FAKE_SLEEP,
  OS_FAKE_BARRIER,
  OS_FAKE_CALLS
};

// Which calls of a kind fail, counted from 1; 0 is "none".
struct os_fake_failure {
  uint64_t at;    // this one
  uint64_t from;  // this one and all that follow
};

// A file that can be read.
struct os_fake_file {
  const char *path, *text;
};

struct os_fake {
  struct os_fake_failure failures[OS_FAKE_FALLIBLE + 1];
  uint64_t calls[OS_FAKE_CALLS];  // so far, refused ones included
  uint64_t refused;               // calls so far
  uint64_t now_ms;
  uint64_t now_ns;              // what the next look at the clock finds,
  uint64_t look_ns;             // and how much later it is after that
  bool has_barrier;             // tsl_os_barrier may be called, and does nothing
  uint64_t used_ns;             // more for a thread, at each question
  bool is_resting;              // only who asks for used_ns uses any; otherwise one more does
  uint32_t threads;             // of the process; 0: not known
  bool forbids_nothing;         // tsl_os_forbid has no address space
  size_t limit_bytes;           // of a plan, and what tsl_os_reserve_limit_bytes says
  size_t committed_bytes;       // at this time
  size_t most_committed_bytes;  // more is refused
  size_t purged_bytes;          // so far
  uint64_t first_purged_ms;
  uint64_t last_purged_ms;
  bool has_no_places;                // for a plan
  bool places_get_lost;              // a refused move takes the target away
  bool huge_wanted;                  // by the last advice
  int use_advised;                   // by the last advice
  size_t use_bytes;                  // advised on so far
  char *borrowed;                    // the one borrowing, NULL while there is none
  size_t borrowed_bytes;             // of it
  char *shared;                      // the one file, NULL while there is none
  size_t shared_bytes;               // of it
  char shared_name[64];              // empty once the name has gone
  uint32_t fork_mark;                // 0: as in the child of a fork
  const struct os_fake_file *files;  // the last one has no path; NULL: there is none

  // Called at each question about resident pages; NULL: nothing is.
  void (*at_resident)(const void *address);
};

enum { OS_FAKE_PLACES = 3 };

// The size of its pages: the least, or what the environment says in a variable OS_FAKE_PAGE_BYTES.
enum { OS_FAKE_LEAST_PAGE_BYTES = 4096 };
size_t os_fake_page_bytes(void);
#define OS_FAKE_MOST_BYTES ((size_t)1 << 31)

extern struct os_fake os_fake;

// The next call of this kind fails; or all of them do, until os_fake_recover.
void os_fake_fail_next(enum os_fake_call call);
void os_fake_fail_all(enum os_fake_call call);
void os_fake_recover(void);

// Sets a variable of the environment; both texts must stay.
void os_fake_setenv(const char *name, const char *value);

bool os_fake_is_committed(const void *address, size_t bytes);

// Bytes of pages for which huge ones were advised last.
size_t os_fake_huge_bytes(const void *address, size_t bytes);
bool os_fake_is_closed(const void *address, size_t bytes);

// Somebody else's memory in the way of a plan.
void os_fake_occupy(uintptr_t address, size_t bytes);

// Makes room for another plan or reservation.
void os_fake_close_arena(void);
