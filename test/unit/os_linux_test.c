#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "capture.h"
#include "os/os.h"
#include "threads.h"

enum { BYTES = 1 << 22, ROUNDS = 20000 };

static bool move_fails;
static bool move_breaks;  // when the first quarter has moved

// In place of the C library's: what Linux before 6.17 does with a source that is more than one
// mapping. It refuses, and has unmapped the target by then.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved
void *mremap(void *from, size_t old_bytes, size_t bytes, int flags, ...) {
  va_list list;
  va_start(list, flags);
  void *to = va_arg(list, void *);
  va_end(list);
  void *target = (flags & MREMAP_FIXED) == 0 ? NULL : to;
  if (!move_fails) return (void *)syscall(SYS_mremap, from, old_bytes, bytes, flags, target);
  if (target != NULL) munmap(to, bytes);
  if (move_breaks) syscall(SYS_mremap, from, bytes / 4, bytes / 4, flags, target);
  errno = EFAULT;
  return MAP_FAILED;
}

static char *reserve(void) {
  char *start = tsl_os_reserve(BYTES, BYTES);
  CHECK(start != NULL);
  return start;
}

static char *reserve_committed(void) {
  char *start = reserve();
  CHECK(tsl_os_commit(start, BYTES));
  return start;
}

static void check_filled(const char *start, size_t bytes, char byte) {
  for (size_t i = 0; i < bytes; i++) {
    if (start[i] != byte) CHECK_EQ(start[i], byte);
  }
}

static char *touched;
static bool touch_writes;

static void touch(void) {
  signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it
  if (touch_writes) *(volatile char *)touched = 1;
  (void)*(volatile char *)touched;
}

static bool may_touch(char *address, bool write) {
  touched = address, touch_writes = write;
  return capture_child(touch) == 0;
}

static void page_size(void) {
  CHECK_EQ(tsl_os_page_bytes(), sysconf(_SC_PAGESIZE));
  CHECK(tsl_is_power_of_two(tsl_os_page_bytes()));
}

static void reserved_is_aligned_and_closed(void) {
  for (size_t log2 = 16; log2 <= 32; log2 += 4) {
    size_t bytes = (size_t)1 << log2;
    char *start = tsl_os_reserve(bytes, bytes);
    CHECK(start != NULL);
    CHECK_EQ((uintptr_t)start & (bytes - 1), 0);
    CHECK(!may_touch(start, false));
    CHECK(!may_touch(start + bytes - 1, false));
    tsl_os_unreserve(start, bytes);
  }
}

static void reserved_apart(void) {
  char *a = reserve(), *b = reserve();
  CHECK(a + BYTES <= b || b + BYTES <= a);
}

static void refused_reservation(void) {
  errno = EDOM;
  CHECK(tsl_os_reserve((size_t)1 << 60, (size_t)1 << 20) == NULL);
  CHECK_EQ(errno, EDOM);
}

static void unreserved_is_unmapped(void) {
  char *start = reserve();
  tsl_os_unreserve(start, BYTES);
  CHECK(madvise(start, tsl_os_page_bytes(), MADV_NORMAL) != 0 && errno == ENOMEM);
}

static void committed_is_zero_and_writable(void) {
  char *start = reserve();
  CHECK(tsl_os_commit(start + BYTES / 2, BYTES / 4));
  check_filled(start + BYTES / 2, BYTES / 4, 0);
  memset(start + BYTES / 2, 1, BYTES / 4);
  CHECK(!may_touch(start + BYTES / 2 - 1, false));
  CHECK(!may_touch(start + BYTES / 2 + BYTES / 4, false));
}

static void borrowed_is_zero_and_goes(void) {
  char *start = tsl_os_borrow(BYTES);
  CHECK(start != NULL);
  check_filled(start, BYTES, 0);
  memset(start, 1, BYTES);
  tsl_os_unreserve(start, BYTES);
  CHECK(!may_touch(start, false));
  errno = EDOM;
  CHECK(tsl_os_borrow(SIZE_MAX / 2) == NULL);
  CHECK_EQ(errno, EDOM);
}

// A sanitizer has more addresses than the limit by itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ADDRESSES_CAN_BE_LIMITED = 0 };
#else
enum { ADDRESSES_CAN_BE_LIMITED = 1 };
#endif

// ThreadSanitizer has a use of its own for most addresses.
#if defined(__SANITIZE_THREAD__)
enum { PLACES_CAN_BE_MAPPED = 0 };
#else
enum { PLACES_CAN_BE_MAPPED = 1 };
#endif

// An address at which so many bytes can be mapped.
static char *free_place(void) {
  char *start = reserve();
  tsl_os_unreserve(start, BYTES);
  return start;
}

static void places_are_aligned_and_differ(void) {
  size_t bytes;
  uintptr_t ones = 0, zeros = 0, place;
  for (unsigned i = 0; i < 64; i++) {
    bytes = (size_t)4 << 40;
    place = tsl_os_place(&bytes, i % 2);
    CHECK_EQ(bytes, (size_t)4 << 40);
    CHECK_EQ(place & (bytes - 1), 0);
    CHECK(place != 0 && place + bytes <= (uintptr_t)1 << 47);
    ones |= place, zeros |= ~place;
  }
  CHECK_GE(tsl_bit_count(ones & zeros), 3);
}

static void later_places_are_for_narrower_spaces(void) {
  uintptr_t end = UINTPTR_MAX;
  unsigned attempt = 0;
  for (;; attempt++) {
    size_t bytes = (size_t)100 << 40;
    uintptr_t place = tsl_os_place(&bytes, attempt);
    if (place == 0) break;
    CHECK_GE(bytes, (size_t)1 << 31);
    CHECK_EQ(place & (bytes - 1), 0);
    CHECK(attempt % 2 == 1 || place + bytes <= end);
    if (attempt % 2 == 1) end = place;
  }
  CHECK_EQ(attempt, 8);
  CHECK_LE(end, (uintptr_t)1 << 34);
}

// Nothing of this program's lies at the first place.
static void places_can_be_mapped(void) {
  size_t bytes = (size_t)4 << 40;
  char *start = (char *)tsl_os_place(&bytes, 0);
  for (size_t at = 0; at < bytes; at += bytes / 16) {
    CHECK_EQ(tsl_os_map(start + at, 65536), TSL_OS_MAPPED);
    memset(start + at, 1, 65536);
  }
}

static void mapped_is_zero_and_writable(void) {
  char *start = free_place();
  errno = EDOM;
  CHECK_EQ(tsl_os_map(start, BYTES / 4), TSL_OS_MAPPED);
  check_filled(start, BYTES / 4, 0);
  memset(start, 1, BYTES / 4);
  CHECK_EQ(tsl_os_map_more(start + BYTES / 4, BYTES / 4), TSL_OS_MAPPED);
  check_filled(start + BYTES / 4, BYTES / 4, 0);
  memset(start, 1, BYTES / 2);
  CHECK(!may_touch(start + BYTES / 2, false));
  CHECK_EQ(errno, EDOM);
}

// How many mappings lie in the range.
static unsigned mappings_in(const char *from, size_t bytes) {
  char line[512];
  unsigned found = 0;
  FILE *file = fopen("/proc/self/maps", "r");
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file) != NULL) {
    uintptr_t start = strtoull(line, NULL, 16);
    found += start >= (uintptr_t)from && start < (uintptr_t)from + bytes;
  }
  fclose(file);
  return found;
}

static void mapped_more_is_one_mapping(void) {
  char *start = free_place();
  size_t step = BYTES / 16;
  CHECK_EQ(tsl_os_map(start, step), TSL_OS_MAPPED);
  tsl_os_name(start, step, "test");
  tsl_os_advise_huge(start, step, false);
  for (size_t at = step; at < BYTES; at += step)
    CHECK_EQ(tsl_os_map_more(start + at, step), TSL_OS_MAPPED);
  CHECK_EQ(mappings_in(start, BYTES), 1);
}

static size_t address_pages(void) {
  char text[64];
  tsl_os_read_file("/proc/self/statm", text, sizeof text - 1);
  return strtoull(text, NULL, 10);
}

static void mapped_pages_are_not_replaced(void) {
  char *start = free_place();
  size_t page = tsl_os_page_bytes();
  CHECK_EQ(tsl_os_map(start + BYTES / 2, page), TSL_OS_MAPPED);
  memset(start + BYTES / 2, 1, page);
  CHECK_EQ(tsl_os_map(start, BYTES / 4), TSL_OS_MAPPED);
  size_t before = address_pages();
  errno = EDOM;
  CHECK_EQ(tsl_os_map(start + BYTES / 2, page), TSL_OS_OCCUPIED);
  CHECK_EQ(address_pages(), before);
  CHECK_EQ(tsl_os_map(start + BYTES / 4, BYTES / 2), TSL_OS_OCCUPIED);
  CHECK_EQ(tsl_os_map_more(start + BYTES / 4, BYTES / 2), TSL_OS_OCCUPIED);
  CHECK_EQ(errno, EDOM);
  CHECK_EQ(tsl_os_map_more(start + BYTES / 4, BYTES / 8), TSL_OS_MAPPED);
  CHECK_EQ(mappings_in(start, BYTES), 2);
  check_filled(start + BYTES / 2, page, 1);
}

// As after a program's change to the pages before: then it is a mapping of its own.
static void mapped_more_behind_other_pages(void) {
  char *start = free_place();
  size_t page = tsl_os_page_bytes();
  CHECK_EQ(tsl_os_map(start, 2 * page), TSL_OS_MAPPED);
  tsl_os_unreserve(start + page, page);
  CHECK_EQ(tsl_os_map_more(start + 2 * page, page), TSL_OS_MAPPED);
  memset(start + 2 * page, 1, page);
}

static void more_than_the_limit_is_refused(void) {
  char *start = free_place();
  CHECK_EQ(tsl_os_map(start, BYTES / 2), TSL_OS_MAPPED);
  struct rlimit limit = {BYTES, BYTES};
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  errno = EDOM;
  CHECK_EQ(tsl_os_map_more(start + BYTES / 2, BYTES / 2), TSL_OS_REFUSED);
  CHECK_EQ(tsl_os_map(start + BYTES / 2, BYTES / 2), TSL_OS_REFUSED);
  CHECK_EQ(errno, EDOM);
}

static void purged_is_zero_and_not_resident(void) {
  unsigned char resident;
  char *start = reserve_committed();
  memset(start, 1, BYTES);
  CHECK(tsl_os_purge(start + BYTES / 4, BYTES / 2));
  CHECK_EQ(mincore(start + BYTES / 2, tsl_os_page_bytes(), &resident), 0);
  CHECK_EQ(resident & 1, 0);
  check_filled(start, BYTES / 4, 1);
  check_filled(start + BYTES / 4, BYTES / 2, 0);
  check_filled(start + BYTES / 4 * 3, BYTES / 4, 1);
  memset(start, 2, BYTES);
}

// Systems before Linux 6.13 refuse: then the pages stay as they are.
static void guard_is_set_and_taken_away(void) {
  char *start = reserve_committed();
  memset(start, 1, BYTES);
  size_t page = tsl_os_page_bytes();
  bool guarded = tsl_os_guard(start + page, page, true);
  CHECK_EQ(may_touch(start + page, false), !guarded);
  CHECK(may_touch(start + page - 1, true) && may_touch(start + 2 * page, true));
  CHECK_EQ(tsl_os_guard(start + page, page, false), guarded);
  check_filled(start + page, page, guarded ? 0 : 1);
  memset(start, 2, BYTES);
}

// Old systems cannot move so: then nothing has moved.
static void moved_content(void) {
  char *from = reserve_committed(), *to = reserve_committed();
  memset(from, 1, BYTES);
  bool moved = tsl_os_move(from, to, BYTES / 2) == TSL_OS_MOVED;
  check_filled(to, BYTES / 2, moved ? 1 : 0);
  check_filled(from, BYTES / 2, moved ? 0 : 1);
  check_filled(from + BYTES / 2, BYTES / 2, 1);
  memset(from, 2, BYTES);
  memset(to, 2, BYTES);
}

static void refused_move_leaves_both_places(void) {
  char *from = reserve_committed(), *to = reserve_committed();
  memset(from, 1, BYTES);
  move_fails = true;
  errno = EDOM;
  CHECK_EQ(tsl_os_move(from, to, BYTES / 2), TSL_OS_NOT_MOVED);
  CHECK_EQ(errno, EDOM);
  check_filled(from, BYTES, 1);
  CHECK(may_touch(to, true) && may_touch(to + BYTES / 2 - 1, true));
  check_filled(to, BYTES, 0);
}

// Since Linux 6.17 a source of several mappings is moved one by one.
static void move_that_breaks_off_loses_nothing(void) {
  char *from = reserve_committed(), *to = reserve_committed();
  memset(from, 1, BYTES);
  move_fails = move_breaks = true;
  CHECK_EQ(tsl_os_move(from, to, BYTES / 2), TSL_OS_NOT_MOVED);
  check_filled(from, BYTES, 1);
  check_filled(to, BYTES, 0);
}

static size_t mappings(const char *start, size_t bytes) {
  char line[512];
  size_t count = 0;
  uintptr_t from, to;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%zx-%zx", &from, &to) != 2) continue;
    count += from < (uintptr_t)start + bytes && to > (uintptr_t)start;
  }
  fclose(maps);
  return count;
}

// A moved page keeps the place in the sequence of pages where it was first touched.
static void renewed_place_is_one_mapping(void) {
  char *start = reserve_committed();
  size_t part = BYTES / 4, whole = mappings(start, BYTES);
  memset(start, 1, BYTES);
  if (tsl_os_move(start, start + 2 * part, part) != TSL_OS_MOVED) return;
  CHECK_GE(mappings(start, BYTES), whole + 2);
  errno = EDOM;
  CHECK(tsl_os_renew(start + 2 * part, part));
  CHECK_EQ(errno, EDOM);
  CHECK_EQ(mappings(start, BYTES), whole);
  check_filled(start + 2 * part, part, 0);
  check_filled(start + 3 * part, part, 1);
}

static void errno_survives_refusals(void) {
  char *start = reserve();
  tsl_os_unreserve(start, BYTES);
  errno = EDOM;
  CHECK(!tsl_os_commit(start, BYTES));
  CHECK(!tsl_os_purge(start, BYTES));
  tsl_os_advise_huge(start, BYTES, true);
  tsl_os_name(start, BYTES, "tslab");
  tsl_os_unreserve(start + 1, BYTES);
  CHECK_EQ(errno, EDOM);
}

static void advice_changes_no_content(void) {
  char *start = reserve_committed();
  memset(start, 1, BYTES);
  tsl_os_advise_huge(start, BYTES, true);
  tsl_os_advise_huge(start, BYTES, false);
  tsl_os_name(start, BYTES, "test");
  check_filled(start, BYTES, 1);
}

static void limit_follows_the_process(void) {
  struct rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  if (limit.rlim_cur == RLIM_INFINITY) CHECK_EQ(tsl_os_reserve_limit_bytes(), SIZE_MAX);
  limit.rlim_cur = (size_t)1 << 46;
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  CHECK_EQ(tsl_os_reserve_limit_bytes(), (size_t)1 << 45);
}

static uint64_t monotonic_ms(void) {
  struct timespec now;
  CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void clock_goes_on(void) {
  uint64_t earliest = monotonic_ms(), before = tsl_os_now_ms(), now;
  CHECK_LE(before, monotonic_ms());
  CHECK_GE(before + 100, earliest);
  usleep(30000);
  now = tsl_os_now_ms();
  CHECK_GE(now - before, 15);
  CHECK_GE(tsl_os_now_ms(), now);
}

static uint32_t bell;

static void *ring(void *nothing) {
  usleep(20000);
  tsl_store_relaxed(&bell, 1);
  errno = EDOM;
  tsl_os_wake(&bell);
  CHECK_EQ(errno, EDOM);
  return nothing;
}

static void sleeps_until_woken(void) {
  pthread_t ringer;
  uint64_t start = monotonic_ms();
  tsl_os_sleep_ms(&bell, 30);
  CHECK_GE(monotonic_ms() - start, 29);
  CHECK_EQ(pthread_create(&ringer, NULL, ring, NULL), 0);
  tsl_os_sleep_ms(&bell, 60000);
  CHECK_EQ(pthread_join(ringer, NULL), 0);
  tsl_os_sleep_ms(&bell, 60000);
  CHECK_LE(monotonic_ms() - start, 20000);
}

static void environment(void) {
  CHECK_EQ(setenv("TSLAB_TEST", "value", 1), 0);
  CHECK(strcmp(tsl_os_environment("TSLAB_TEST"), "value") == 0);
  CHECK(tsl_os_environment("TSLAB_TEST_OTHER") == NULL);
}

static void yield_returns(void) {
  errno = EDOM;
  tsl_os_yield();
  CHECK_EQ(errno, EDOM);
}

// Each of two sides writes its flag and reads the other's; only the second one passes a barrier. At
// least one of them sees the other.
static struct flag { TSL_ON_LINE uint32_t round; } flags[2];
static TSL_ON_LINE uint32_t arrived;
static bool seen[2][ROUNDS];

static void meet(uint32_t all) {
  tsl_add_acq_rel(&arrived, 1);
  for (unsigned spins = 1; tsl_load_acquire(&arrived) < all; spins++) {
    if (spins % 4096 == 0) sched_yield();
  }
}

static void pass_both(int side, uint32_t round) {
  (void)tsl_load_relaxed(&flags[1 - side].round);  // so that the other's line is at hand
  meet(4 * round + 2);
  for (volatile uint32_t late = round % 100 * (round / 100 % 2 == (uint32_t)side); late != 0;)
    late = late - 1;
  tsl_store_relaxed(&flags[side].round, round + 1);
  tsl_compiler_fence();
  if (side == 1) tsl_os_barrier();
  seen[side][round] = tsl_load_relaxed(&flags[1 - side].round) == round + 1;
  meet(4 * round + 4);
}

static void *pass_without_a_barrier(void *unused) {
  for (uint32_t round = 0; round < ROUNDS; round++) pass_both(0, round);
  return unused;
}

static void barrier_orders_other_threads(void) {
  pthread_t thread;
  errno = EDOM;
  bool works = tsl_os_barrier_init();
  CHECK_EQ(errno, EDOM);
  if (!works) return;
  CHECK(tsl_os_barrier_init());
  CHECK_EQ(pthread_create(&thread, NULL, pass_without_a_barrier, NULL), 0);
  for (uint32_t round = 0; round < ROUNDS; round++) pass_both(1, round);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  for (int round = 0; round < ROUNDS; round++) CHECK(seen[0][round] || seen[1][round]);
  CHECK_EQ(errno, EDOM);
}

// A child keeps what the parent asked for.
static void pass_barrier(void) {
  enum { PRIVATE_EXPEDITED = 1 << 3 };
  tsl_os_barrier();
  if (syscall(SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) != 0) _exit(EXIT_FAILURE);
}

static void barrier_works_after_fork(void) {
  bool works = tsl_os_barrier_init();
  CHECK_EQ(capture_child(pass_barrier) == 0, works);
}

static void advice_on_use_changes_no_content(void) {
  static const enum tsl_os_use uses[] = {TSL_OS_COLD, TSL_OS_PAGE_OUT, TSL_OS_WILL_NEED};
  static const int advice[] = {20, 21, MADV_WILLNEED};  // MADV_COLD, MADV_PAGEOUT
  char *start = reserve_committed();
  memset(start, 1, BYTES);
  for (int i = 0; i < 3; i++) {
    errno = EDOM;
    bool done = tsl_os_advise_use(start, BYTES / 2, uses[i]);
    CHECK_EQ(errno, EDOM);
    CHECK_EQ(done, madvise(start, BYTES / 2, advice[i]) == 0);
    check_filled(start, BYTES, 1);
  }
  memset(start, 2, BYTES);
  check_filled(start, BYTES, 2);
}

static void refused_advice_on_use(void) {
  char *start = reserve();
  tsl_os_unreserve(start, BYTES);
  errno = EDOM;
  CHECK(!tsl_os_advise_use(start, BYTES, TSL_OS_COLD));
  CHECK(!tsl_os_advise_use(start, BYTES, TSL_OS_PAGE_OUT));
  CHECK(!tsl_os_advise_use(start, BYTES, TSL_OS_WILL_NEED));
  CHECK_EQ(errno, EDOM);
}

static void process_is_known(void) {
  CHECK_EQ(tsl_os_process(), (uint32_t)getpid());
  close(STDIN_FILENO);  // the file that is read gets its number
  CHECK(tsl_os_process_start() != 0);
}

// Not even the process's name misleads.
static void process_start_ignores_names(void) {
  uint64_t mine = tsl_os_process_start();
  prctl(PR_SET_NAME, "a) S 1 2 (3");
  CHECK_EQ(tsl_os_process_start(), mine);
}

static void shared_memory_is_seen_by_name(void) {
  enum { CHUNK = 65536 };
  char *mine = tsl_os_share("tslab.test.1", 16 * CHUNK);
  CHECK(mine != NULL);
  CHECK(tsl_os_share_more("tslab.test.1", CHUNK, CHUNK));
  mine[CHUNK] = 42;
  int file = open("/dev/shm/tslab.test.1", O_RDONLY);
  struct stat status = {0};
  CHECK(file >= 0 && fstat(file, &status) == 0);
  CHECK_EQ(status.st_size, 16 * CHUNK);
  CHECK_EQ(status.st_mode & 0777, 0600);
  CHECK_EQ(status.st_blocks * 512, CHUNK);
  char *theirs = mmap(NULL, 2 * CHUNK, PROT_READ, MAP_SHARED, file, 0);
  CHECK(theirs != MAP_FAILED && theirs[CHUNK] == 42);
  close(file);
  tsl_os_unshare("tslab.test.1");
  CHECK(access("/dev/shm/tslab.test.1", F_OK) != 0);
  mine[CHUNK] = 43;
  CHECK_EQ(theirs[CHUNK], 43);
  CHECK(!tsl_os_share_more("tslab.test.1", 0, CHUNK));
}

static void locking_all_memory_takes_no_more_of_it(void) {
  enum { CHUNK = 65536 };
  struct stat status = {0};
  CHECK_EQ(mlockall(MCL_FUTURE), 0);
  char *mine = tsl_os_share("tslab.test.8", 16 * CHUNK);
  CHECK(mine != NULL && tsl_os_share_more("tslab.test.8", CHUNK, CHUNK));
  mine[CHUNK] = 42;
  CHECK_EQ(stat("/dev/shm/tslab.test.8", &status), 0);
  CHECK_EQ(status.st_blocks * 512, CHUNK);
  tsl_os_unshare("tslab.test.8");
}

static void an_older_file_goes(void) {
  char *older = tsl_os_share("tslab.test.2", 65536);
  CHECK(older != NULL && tsl_os_share_more("tslab.test.2", 0, 65536));
  memset(older, 1, 65536);
  char *newer = tsl_os_share("tslab.test.2", 65536);
  CHECK(newer != NULL && tsl_os_share_more("tslab.test.2", 0, 65536));
  CHECK_EQ(newer[0], 0);
  tsl_os_unshare("tslab.test.2");
}

// The system would stop the program with a signal.
static void too_large_a_file_is_refused(void) {
  struct rlimit limit = {65536, 65536};
  CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK(tsl_os_share("tslab.test.3", 65537) == NULL);
  CHECK(access("/dev/shm/tslab.test.3", F_OK) != 0);
  CHECK(tsl_os_share("no/such/folder", 65536) == NULL);
}

static void too_large_a_share_of_the_addresses_is_refused(void) {
  struct rlimit limit = {(rlim_t)1 << 40, (rlim_t)1 << 40};
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  CHECK(tsl_os_share("tslab.test.4", ((size_t)1 << 36) + 65536) == NULL);
  CHECK(access("/dev/shm/tslab.test.4", F_OK) != 0);
  CHECK(tsl_os_share("tslab.test.4", 65536) != NULL);
  tsl_os_unshare("tslab.test.4");
}

// A file of the same name that somebody else has put there.
static void other_peoples_files_stay(void) {
  const char *path = "/dev/shm/tslab.test.5";
  CHECK(tsl_os_share("tslab.test.5", 65536) != NULL);
  int kept = open(path, O_RDONLY);  // its inode is not used again
  CHECK_EQ(unlink(path), 0);
  int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  CHECK(file >= 0);
  CHECK(!tsl_os_share_more("tslab.test.5", 0, 65536));
  tsl_os_unshare("tslab.test.5");
  CHECK_EQ(unlink(path), 0);
  close(file);
  close(kept);
}

// The child's memory, from the moment of the call on.
static void a_file_is_shared_no_more(void) {
  char *mine = tsl_os_share("tslab.test.7", 65536);
  CHECK(mine != NULL && tsl_os_share_more("tslab.test.7", 0, 4096));
  int file = open("/dev/shm/tslab.test.7", O_RDONLY);
  const char *theirs = mmap(NULL, 65536, PROT_READ, MAP_SHARED, file, 0);
  CHECK(theirs != MAP_FAILED);
  mine[0] = 1;
  tsl_os_share_no_more(mine, 65536);
  CHECK_EQ(mine[0], 0);
  mine[0] = 2;
  mine[65535] = 2;  // behind what had memory
  CHECK_EQ(theirs[0], 1);
  tsl_os_unshare("tslab.test.7");
}

static void *share_cancelled(void *past_it) {
  pthread_cancel(pthread_self());
  tsl_os_process_start();
  tsl_os_share("tslab.test.6", 65536);
  tsl_os_share_more("tslab.test.6", 0, 65536);
  tsl_os_unshare("tslab.test.6");
  *(bool *)past_it = true;
  return NULL;
}

// malloc calls these, with locks held.
static void no_call_is_a_cancellation_point(void) {
  bool past_it = false;
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, share_cancelled, &past_it), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK(past_it);
}

static void nanoseconds_are_of_the_same_clock(void) {
  uint64_t ms = tsl_os_now_ms(), ns = tsl_os_now_ns(), later = tsl_os_now_ns();
  CHECK_GE(ns / 1000000, ms);
  CHECK_LE(ns / 1000000, ms + 60000);
  CHECK_GE(later, ns);
}

int main(void) {
  RUN(page_size);
  RUN(reserved_is_aligned_and_closed);
  RUN(reserved_apart);
  RUN(refused_reservation);
  RUN(unreserved_is_unmapped);
  RUN(committed_is_zero_and_writable);
  RUN(borrowed_is_zero_and_goes);
  RUN(places_are_aligned_and_differ);
  RUN(later_places_are_for_narrower_spaces);
  if (PLACES_CAN_BE_MAPPED) RUN(places_can_be_mapped);
  RUN(mapped_is_zero_and_writable);
  RUN(mapped_more_is_one_mapping);
  RUN(mapped_pages_are_not_replaced);
  RUN(mapped_more_behind_other_pages);
  if (ADDRESSES_CAN_BE_LIMITED) RUN(more_than_the_limit_is_refused);
  RUN(purged_is_zero_and_not_resident);
  RUN(guard_is_set_and_taken_away);
  RUN(moved_content);
  RUN(refused_move_leaves_both_places);
  RUN(move_that_breaks_off_loses_nothing);
  RUN(renewed_place_is_one_mapping);
  RUN(errno_survives_refusals);
  RUN(advice_changes_no_content);
  if (ADDRESSES_CAN_BE_LIMITED) RUN(limit_follows_the_process);
  RUN(clock_goes_on);
  RUN(sleeps_until_woken);
  RUN(environment);
  RUN(yield_returns);
  RUN(barrier_orders_other_threads);
  RUN(barrier_works_after_fork);
  RUN(advice_on_use_changes_no_content);
  RUN(refused_advice_on_use);
  RUN(process_is_known);
  RUN(process_start_ignores_names);
  RUN(shared_memory_is_seen_by_name);
  RUN(locking_all_memory_takes_no_more_of_it);
  RUN(an_older_file_goes);
  RUN(too_large_a_file_is_refused);
  if (ADDRESSES_CAN_BE_LIMITED) RUN(too_large_a_share_of_the_addresses_is_refused);
  RUN(other_peoples_files_stay);
  RUN(a_file_is_shared_no_more);
  RUN(no_call_is_a_cancellation_point);
  RUN(nanoseconds_are_of_the_same_clock);
  return test_status();
}
