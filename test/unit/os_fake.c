#include "os_fake.h"

#include "base/options.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"

enum { MOST_VARIABLES = 8, MOST_PAGES = OS_FAKE_MOST_BYTES / OS_FAKE_LEAST_PAGE_BYTES };

enum page { PAGE_CLOSED, PAGE_FOREIGN, PAGE_COMMITTED };

struct os_fake os_fake = {.limit_bytes = OS_FAKE_MOST_BYTES / 2, .most_committed_bytes = SIZE_MAX};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *arena;                // [lock] NULL while nothing is reserved or planned
static size_t arena_bytes;         // [lock]
static bool arena_is_plan;         // [lock]
static uint8_t pages[MOST_PAGES];  // [lock] enum page, each
static bool huge[MOST_PAGES];      // [lock] by the last advice
static uint64_t drawn;             // [remote]
static struct variable { const char *name, *value; } variables[MOST_VARIABLES];

// The contract of os.h was broken by who called.
static void expect(bool condition, const char *what) {
  if (!condition) tsl_assert_failed(what, "os_fake", 0);
}

static bool call_fails(enum os_fake_call call) {
  uint64_t number = ++os_fake.calls[call];
  const struct os_fake_failure *failure = &os_fake.failures[call];
  return number == failure->at || (failure->from != 0 && number >= failure->from);
}

// Counts a call; true when it must be refused.
static bool refuses(enum os_fake_call call) {
  bool this_kind = call_fails(call), any_kind = call_fails(OS_FAKE_FALLIBLE);
  os_fake.refused += this_kind || any_kind;
  return this_kind || any_kind;
}

void os_fake_fail_next(enum os_fake_call call) {
  os_fake.failures[call].at = os_fake.calls[call] + 1;
}

void os_fake_fail_all(enum os_fake_call call) {
  os_fake.failures[call].from = os_fake.calls[call] + 1;
}

void os_fake_recover(void) { memset(os_fake.failures, 0, sizeof os_fake.failures); }

void os_fake_setenv(const char *name, const char *value) {
  for (struct variable *at = variables; at < variables + MOST_VARIABLES; at++) {
    if (at->name != NULL && strcmp(at->name, name) != 0) continue;
    *at = (struct variable){name, value};
    return;
  }
  expect(false, "room for one more variable");
}

struct page_range {
  size_t first, end;
};

static struct page_range page_range(const void *address, size_t bytes) {
  size_t offset = (size_t)((const char *)address - arena);
  expect(arena != NULL && bytes != 0 && offset < arena_bytes && bytes <= arena_bytes - offset,
         "the range lies in the reservation");
  expect(offset % os_fake_page_bytes() == 0, "the range begins at a page");
  return (struct page_range){offset / os_fake_page_bytes(),
                             tsl_divide_up(offset + bytes, os_fake_page_bytes())};
}

static bool pages_are(struct page_range range, enum page state) {
  for (size_t i = range.first; i < range.end; i++) {
    if (pages[i] != state) return false;
  }
  return true;
}

static size_t range_bytes(struct page_range range) {
  return (range.end - range.first) * os_fake_page_bytes();
}

static void pages_open(struct page_range range) {
  char *start = arena + range.first * os_fake_page_bytes();
  expect(mprotect(start, range_bytes(range), PROT_READ | PROT_WRITE) == 0, "memory");
  memset(pages + range.first, PAGE_COMMITTED, range.end - range.first);
  os_fake.committed_bytes += range_bytes(range);
}

static void pages_close(struct page_range range) {
  char *start = arena + range.first * os_fake_page_bytes();
  expect(madvise(start, range_bytes(range), MADV_DONTNEED) == 0, "zero pages");
  expect(mprotect(start, range_bytes(range), PROT_NONE) == 0, "memory");
  memset(pages + range.first, PAGE_CLOSED, range.end - range.first);
  os_fake.committed_bytes -= range_bytes(range);
}

size_t os_fake_huge_bytes(const void *address, size_t bytes) {
  size_t wanted = 0;
  pthread_mutex_lock(&lock);
  struct page_range range = page_range(address, bytes);
  for (size_t i = range.first; i < range.end; i++) wanted += huge[i];
  pthread_mutex_unlock(&lock);
  return wanted * os_fake_page_bytes();
}

bool os_fake_is_committed(const void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  bool all = pages_are(page_range(address, bytes), PAGE_COMMITTED);
  pthread_mutex_unlock(&lock);
  return all;
}

bool os_fake_is_closed(const void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  bool all = pages_are(page_range(address, bytes), PAGE_CLOSED);
  pthread_mutex_unlock(&lock);
  return all;
}

void os_fake_occupy(uintptr_t address, size_t bytes) {
  pthread_mutex_lock(&lock);
  struct page_range range = page_range((void *)address, bytes);
  expect(arena_is_plan && pages_are(range, PAGE_CLOSED), "occupy: nobody's pages");
  memset(pages + range.first, PAGE_FOREIGN, range.end - range.first);
  pthread_mutex_unlock(&lock);
}

size_t os_fake_page_bytes(void) {
  static size_t bytes;  // [remote] 0: nobody asked yet
  size_t found = tsl_load_relaxed(&bytes);
  if (found != 0) return found;
  const char *text = getenv("OS_FAKE_PAGE_BYTES");
  found = text == NULL ? OS_FAKE_LEAST_PAGE_BYTES : strtoul(text, NULL, 10);
  expect(tsl_is_power_of_two(found) && found >= OS_FAKE_LEAST_PAGE_BYTES, "OS_FAKE_PAGE_BYTES");
  tsl_store_relaxed(&bytes, found);
  return found;
}

size_t tsl_os_page_bytes(void) { return os_fake_page_bytes(); }

size_t tsl_os_reserve_limit_bytes(void) { return os_fake.limit_bytes; }

static char *map_aligned(size_t bytes, size_t alignment) {
  char *whole =
      mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  expect(whole != MAP_FAILED, "address space");
  char *start = (char *)tsl_round_up((uintptr_t)whole, alignment);
  if (start != whole) munmap(whole, (size_t)(start - whole));
  munmap(start + bytes, (size_t)(whole + alignment - start));
  return start;
}

static void arena_drop(void) {
  if (arena != NULL) munmap(arena, arena_bytes);
  arena = NULL;
  os_fake.committed_bytes = 0;
}

void os_fake_close_arena(void) {
  pthread_mutex_lock(&lock);
  arena_drop();
  pthread_mutex_unlock(&lock);
}

// A plan goes by itself, once nothing of it is mapped.
static char *arena_open(size_t bytes, size_t alignment, bool is_plan) {
  expect(bytes % 65536 == 0 && tsl_is_power_of_two(alignment), "a size in units, a true alignment");
  expect(arena == NULL || (arena_is_plan && os_fake.committed_bytes == 0), "one at a time");
  arena_drop();
  arena = map_aligned(bytes, alignment);
  arena_bytes = bytes;
  arena_is_plan = is_plan;
  memset(pages, PAGE_CLOSED, sizeof pages);
  return arena;
}

// What is freed is free at once, and nobody else gives it back, in tests that do not ask for the
// contrary.
static void options_calm(void) {
  tsl_options.detain_ms = 0;
  if (tsl_options.helper == TSL_HELPER_AUTO) tsl_options.helper = TSL_HELPER_NEVER;
}

static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

static uintptr_t place_locked(size_t *bytes, unsigned attempt) {
  *bytes = at_most(*bytes, at_most(os_fake.limit_bytes, OS_FAKE_MOST_BYTES));
  *bytes = tsl_round_down(*bytes, 65536);
  if (os_fake.has_no_places || attempt >= OS_FAKE_PLACES) return 0;
  if (refuses(OS_FAKE_PLACE) || *bytes == 0) return 0;
  options_calm();
  return (uintptr_t)arena_open(*bytes, tsl_power_of_two_from(*bytes), true);
}

uintptr_t tsl_os_place(size_t *bytes, unsigned attempt) {
  pthread_mutex_lock(&lock);
  uintptr_t place = place_locked(bytes, attempt);
  pthread_mutex_unlock(&lock);
  return place;
}

void *tsl_os_reserve(size_t bytes, size_t alignment) {
  options_calm();
  pthread_mutex_lock(&lock);
  bool refused = refuses(OS_FAKE_RESERVE) || bytes > OS_FAKE_MOST_BYTES;
  void *start = refused ? NULL : arena_open(bytes, alignment, false);
  pthread_mutex_unlock(&lock);
  return start;
}

void *tsl_os_forbid(size_t bytes) {
  return os_fake.forbids_nothing ? NULL : map_aligned(bytes, 1 << 16);
}

// Of a plan any part goes back, of everything else all of it.
static void unreserve_locked(char *address, size_t bytes) {
  bool is_planned = arena != NULL && arena_is_plan && address >= arena;
  if (is_planned && address < arena + arena_bytes) {
    expect(pages_are(page_range(address, bytes), PAGE_COMMITTED), "mapped pages go back");
    return pages_close(page_range(address, bytes));
  }
  if (address == arena) {
    expect(bytes == arena_bytes, "all of it goes back");
    return arena_drop();
  }
  bool is_forbidden = address != os_fake.shared && address != os_fake.borrowed;
  if (is_forbidden) return (void)munmap(address, bytes);
  char **place = address == os_fake.shared ? &os_fake.shared : &os_fake.borrowed;
  size_t whole = address == os_fake.shared ? os_fake.shared_bytes : os_fake.borrowed_bytes;
  expect(address == *place && bytes == whole, "all of it goes back");
  munmap(address, bytes);
  *place = NULL;
}

bool tsl_os_unreserve(void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  os_fake.calls[OS_FAKE_UNRESERVE]++;
  unreserve_locked(address, bytes);
  pthread_mutex_unlock(&lock);
  return true;
}

static void *borrow_locked(size_t bytes) {
  expect(os_fake.borrowed == NULL, "one borrowing at a time");
  expect(bytes % os_fake_page_bytes() == 0, "borrow: whole pages");
  if (refuses(OS_FAKE_BORROW)) return NULL;
  os_fake.borrowed = map_aligned(bytes, os_fake_page_bytes());
  os_fake.borrowed_bytes = bytes;
  expect(mprotect(os_fake.borrowed, bytes, PROT_READ | PROT_WRITE) == 0, "memory");
  return os_fake.borrowed;
}

void *tsl_os_borrow(size_t bytes) {
  pthread_mutex_lock(&lock);
  void *address = borrow_locked(bytes);
  pthread_mutex_unlock(&lock);
  return address;
}

static bool commit_locked(struct page_range range) {
  if (refuses(OS_FAKE_COMMIT)) return false;
  if (range_bytes(range) > os_fake.most_committed_bytes - os_fake.committed_bytes) return false;
  pages_open(range);
  return true;
}

bool tsl_os_commit(void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  struct page_range range = page_range(address, bytes);
  expect(bytes % os_fake_page_bytes() == 0, "commit: whole pages");
  expect(!arena_is_plan, "commit: in a reservation");
  expect(pages_are(range, PAGE_CLOSED), "commit: not committed before");
  bool done = commit_locked(range);
  pthread_mutex_unlock(&lock);
  return done;
}

static enum tsl_os_mapped map_locked(struct page_range range) {
  expect(arena_is_plan, "map: not in a reservation");
  if (!pages_are(range, PAGE_CLOSED)) return TSL_OS_OCCUPIED;
  return commit_locked(range) ? TSL_OS_MAPPED : TSL_OS_REFUSED;
}

enum tsl_os_mapped tsl_os_map(void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  expect(bytes % os_fake_page_bytes() == 0, "map: whole pages");
  enum tsl_os_mapped result = map_locked(page_range(address, bytes));
  pthread_mutex_unlock(&lock);
  return result;
}

enum tsl_os_mapped tsl_os_map_more(void *end, size_t bytes) {
  pthread_mutex_lock(&lock);
  struct page_range range = page_range(end, bytes), last = {range.first - 1, range.first};
  expect(bytes % os_fake_page_bytes() == 0, "map_more: whole pages");
  expect(pages_are(last, PAGE_COMMITTED), "map_more: behind mapped pages");
  enum tsl_os_mapped result = map_locked(range);
  pthread_mutex_unlock(&lock);
  return result;
}

static void note_purged(size_t bytes) {
  uint64_t now_ms = tsl_load_relaxed(&os_fake.now_ms);
  if (os_fake.purged_bytes == 0) tsl_store_relaxed(&os_fake.first_purged_ms, now_ms);
  tsl_store_relaxed(&os_fake.last_purged_ms, now_ms);
  os_fake.purged_bytes += bytes;
}

bool tsl_os_purge(void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  expect(bytes % os_fake_page_bytes() == 0, "purge: whole pages");
  expect(pages_are(page_range(address, bytes), PAGE_COMMITTED), "purge: committed");
  bool done = !refuses(OS_FAKE_PURGE);
  if (done) expect(madvise(address, bytes, MADV_DONTNEED) == 0, "purge: zero pages");
  if (done) note_purged(bytes);
  pthread_mutex_unlock(&lock);
  return done;
}

bool tsl_os_guard(void *address, size_t bytes, bool guarded) {
  pthread_mutex_lock(&lock);
  expect(bytes % os_fake_page_bytes() == 0, "guard: whole pages");
  expect(pages_are(page_range(address, bytes), PAGE_COMMITTED), "guard: committed");
  bool done = !refuses(OS_FAKE_GUARD);
  int access = guarded ? PROT_NONE : PROT_READ | PROT_WRITE;
  if (done && guarded) expect(madvise(address, bytes, MADV_DONTNEED) == 0, "guard: zero pages");
  if (done) expect(mprotect(address, bytes, access) == 0, "memory");
  pthread_mutex_unlock(&lock);
  return done;
}

bool tsl_os_protect(void *address, size_t bytes, bool is_protected) {
  return tsl_os_guard(address, bytes, is_protected);
}

static enum tsl_os_moved move_refused(struct page_range target) {
  if (!os_fake.places_get_lost) return TSL_OS_NOT_MOVED;
  pages_close(target);
  return TSL_OS_PLACE_LOST;
}

enum tsl_os_moved tsl_os_move(void *from, void *to, size_t bytes) {
  pthread_mutex_lock(&lock);
  struct page_range source = page_range(from, bytes), target = page_range(to, bytes);
  expect(bytes % os_fake_page_bytes() == 0, "move: whole pages");
  expect(pages_are(source, PAGE_COMMITTED), "move: committed source");
  expect(pages_are(target, PAGE_COMMITTED), "move: committed target");
  expect(source.end <= target.first || target.end <= source.first, "move: no overlap");
  for (size_t i = source.first; i < source.end; i++)
    expect(huge[i] == huge[source.first], "move: one mapping");
  bool done = !refuses(OS_FAKE_MOVE);
  memset(huge + target.first, done && huge[source.first], target.end - target.first);
  if (done) memcpy(to, from, bytes);
  if (done) expect(madvise(from, bytes, MADV_DONTNEED) == 0, "move: zero pages");
  enum tsl_os_moved result = done ? TSL_OS_MOVED : move_refused(target);
  pthread_mutex_unlock(&lock);
  return result;
}

bool tsl_os_renew(void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  struct page_range range = page_range(address, bytes);
  expect(bytes % os_fake_page_bytes() == 0, "renew: whole pages");
  expect(pages_are(range, PAGE_COMMITTED), "renew: committed");
  bool done = !call_fails(OS_FAKE_RENEW);
  if (done) expect(madvise(address, bytes, MADV_DONTNEED) == 0, "renew: zero pages");
  if (done) memset(huge + range.first, false, range.end - range.first);
  if (!done) pages_close(range);
  pthread_mutex_unlock(&lock);
  return done;
}

void tsl_os_advise_huge(void *address, size_t bytes, bool wanted) {
  pthread_mutex_lock(&lock);
  os_fake.calls[OS_FAKE_ADVISE_HUGE]++;
  struct page_range range = page_range(address, bytes);
  memset(huge + range.first, wanted, range.end - range.first);
  os_fake.huge_wanted = wanted;
  pthread_mutex_unlock(&lock);
}

void tsl_os_name(void *address, size_t bytes, const char *name) {
  pthread_mutex_lock(&lock);
  os_fake.calls[OS_FAKE_NAME]++;
  page_range(address, bytes);
  expect(name[0] != '\0', "a name");
  pthread_mutex_unlock(&lock);
}

uint64_t tsl_os_now_ms(void) { return tsl_load_relaxed(&os_fake.now_ms); }
uint64_t tsl_os_now_ns(void) { return tsl_add_relaxed(&os_fake.now_ns, os_fake.look_ns); }

static uint64_t all_used_ns;

uint64_t tsl_os_used_ns(void) {
  static __thread uint64_t used_ns;
  uint64_t more_ns = tsl_load_relaxed(&os_fake.used_ns);
  tsl_add_relaxed(&all_used_ns, more_ns);
  return used_ns += more_ns;
}

uint64_t tsl_os_process_used_ns(void) {
  uint64_t all_ns = tsl_load_relaxed(&all_used_ns);
  return tsl_load_relaxed(&os_fake.is_resting) ? all_ns : all_ns + tsl_os_now_ms() * 1000000;
}

// Time passes for the sleeper as it asked; the others are kept waiting for a moment only.
void tsl_os_sleep_ms(const uint32_t *word, uint64_t ms) {
  if (tsl_load_relaxed(word) != 0) return;
  tsl_add_relaxed(&os_fake.calls[OS_FAKE_SLEEP], 1);
  tsl_add_relaxed(&os_fake.now_ms, ms);
  usleep(200);
}

void tsl_os_wake(const uint32_t *word) {
  tsl_add_relaxed(&os_fake.calls[OS_FAKE_WAKE], 1);
  (void)word;
}

uint64_t tsl_os_random(void) {
  return (tsl_add_relaxed(&drawn, 1) + 1) * UINT64_C(0x9E3779B97F4A7C15);
}

void tsl_os_yield(void) { tsl_add_relaxed(&os_fake.calls[OS_FAKE_YIELD], 1); }

const char *tsl_os_environment(const char *name) {
  for (const struct variable *at = variables; at < variables + MOST_VARIABLES; at++) {
    if (at->name != NULL && strcmp(at->name, name) == 0) return at->value;
  }
  return NULL;
}

// So that unit tests take the path of systems without it.
bool tsl_os_barrier_init(void) { return os_fake.has_barrier; }
void tsl_os_barrier(void) {
  tsl_add_relaxed(&os_fake.calls[OS_FAKE_BARRIER], 1);
  expect(os_fake.has_barrier, "barrier: the system has none");
}

bool tsl_os_advise_use(void *address, size_t bytes, enum tsl_os_use use) {
  pthread_mutex_lock(&lock);
  expect(pages_are(page_range(address, bytes), PAGE_COMMITTED), "use: of committed pages");
  os_fake.use_advised = (int)use;
  os_fake.use_bytes += bytes;
  pthread_mutex_unlock(&lock);
  return true;
}

void tsl_os_discard(void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  expect(pages_are(page_range(address, bytes), PAGE_COMMITTED), "discard: of committed pages");
  expect(madvise(address, bytes, MADV_DONTNEED) == 0, "discard: zero pages");
  pthread_mutex_unlock(&lock);
}

uint32_t tsl_os_process(void) { return 4711; }
uint64_t tsl_os_process_start(void) { return 1000; }

size_t tsl_os_read_file(const char *path, char *text, size_t bytes) {
  const struct os_fake_file *file = tsl_load_relaxed(&os_fake.files);
  while (file != NULL && file->path != NULL && strcmp(file->path, path) != 0) file++;
  const char *found = file != NULL && file->path != NULL ? file->text : "";
  size_t length = strlen(found) < bytes ? strlen(found) : bytes;
  memcpy(text, found, length);
  text[length] = '\0';
  return length;
}
uint32_t tsl_os_thread(void) { return 4712; }
void tsl_os_name_thread(const char *name) { (void)name; }
uint32_t tsl_os_threads(void) { return tsl_load_relaxed(&os_fake.threads); }

// Touching what has no memory yet stops the program.
static void *share_locked(const char *name, size_t bytes) {
  expect(os_fake.shared == NULL, "one file at a time");
  if (refuses(OS_FAKE_SHARE)) return NULL;
  os_fake.shared = map_aligned(bytes, os_fake_page_bytes());
  os_fake.shared_bytes = bytes;
  snprintf(os_fake.shared_name, sizeof os_fake.shared_name, "%s", name);
  return os_fake.shared;
}

void *tsl_os_share(const char *name, size_t bytes) {
  pthread_mutex_lock(&lock);
  void *address = share_locked(name, bytes);
  pthread_mutex_unlock(&lock);
  return address;
}

bool tsl_os_share_more(const char *name, size_t offset, size_t bytes) {
  pthread_mutex_lock(&lock);
  expect(strcmp(name, os_fake.shared_name) == 0, "the file's name");
  expect(bytes <= os_fake.shared_bytes && offset <= os_fake.shared_bytes - bytes, "in the file");
  bool done = !refuses(OS_FAKE_SHARE_MORE);
  if (done) expect(mprotect(os_fake.shared + offset, bytes, PROT_READ | PROT_WRITE) == 0, "memory");
  pthread_mutex_unlock(&lock);
  return done;
}

void tsl_os_share_no_more(void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  expect(address == os_fake.shared && bytes == os_fake.shared_bytes, "the file");
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  expect(mmap(address, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == address, "memory");
  pthread_mutex_unlock(&lock);
}

uint32_t *tsl_os_fork_mark(void) { return &os_fake.fork_mark; }

void tsl_os_unshare(const char *name) {
  pthread_mutex_lock(&lock);
  expect(strcmp(name, os_fake.shared_name) == 0, "the file's name");
  os_fake.shared_name[0] = '\0';
  pthread_mutex_unlock(&lock);
}

// By the real system, which knows what was touched.
size_t tsl_os_resident(const void *address, size_t bytes) {
  unsigned char resident[256];
  size_t total = 0;
  if (os_fake.at_resident != NULL) os_fake.at_resident(address);
  for (size_t at = 0; at < bytes; at += OS_FAKE_LEAST_PAGE_BYTES * sizeof resident) {
    size_t left = bytes - at, most = OS_FAKE_LEAST_PAGE_BYTES * sizeof resident;
    size_t step = left < most ? left : most;
    expect(mincore((char *)address + at, step, resident) == 0, "resident: of mapped pages");
    for (size_t i = 0; i < tsl_divide_up(step, OS_FAKE_LEAST_PAGE_BYTES); i++)
      total += (resident[i] & 1u) * OS_FAKE_LEAST_PAGE_BYTES;
  }
  return total;
}
