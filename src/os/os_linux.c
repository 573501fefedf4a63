// os_linux: the Linux behind os.h. Owns nothing but what it learnt about the system at first use.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/format.h"
#include "os/os.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif

// linux/membarrier.h, which older systems lack.
enum { BARRIER_PRIVATE_EXPEDITED = 1 << 3, BARRIER_REGISTER_PRIVATE_EXPEDITED = 1 << 4 };

size_t tsl_os_page_bytes(void) { return (size_t)getauxval(AT_PAGESZ); }

// Bits of the addresses that a process may have: 47 or more on most machines, from 36 to 42 on
// others. Programs and other runtimes ask for low addresses, the system starts at a third, at two
// thirds and at the end; what lies from a quarter to five eighths is mostly empty.
static const unsigned char space_bits[] = {47, 42, 38, 34};
enum { PLACES_A_SPACE = 2, SPACE_SHARE = 8 };

uintptr_t tsl_os_place(size_t *bytes, unsigned attempt) {
  if (attempt >= sizeof space_bits * PLACES_A_SPACE) return 0;
  size_t eighth = ((size_t)1 << space_bits[attempt / PLACES_A_SPACE]) / SPACE_SHARE;
  if (*bytes > eighth) *bytes = eighth;
  size_t span = tsl_power_of_two_from(*bytes), places = 3 * eighth / span;
  return 2 * eighth + tsl_os_random() % places * span;
}

static void *map_hinted(void *hint, size_t bytes, int flags) {
  return mmap(hint, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

// The address is a hint, which the system follows where nothing lies. MAP_FIXED_NOREPLACE would say
// more, but ThreadSanitizer takes the address away and leaves the flag.
enum tsl_os_mapped tsl_os_map(void *address, size_t bytes) {
  int saved = errno;
  void *mapped = map_hinted(address, bytes, 0);
  if (mapped != MAP_FAILED && mapped != address) munmap(mapped, bytes);
  errno = saved;
  if (mapped == MAP_FAILED) return TSL_OS_REFUSED;
  return mapped == address ? TSL_OS_MAPPED : TSL_OS_OCCUPIED;
}

// To grow the mapping's last page in place is to grow the mapping.
enum tsl_os_mapped tsl_os_map_more(void *end, size_t bytes) {
  int saved = errno;
  size_t page = tsl_os_page_bytes();
  void *last = (char *)end - page;
  bool done = mremap(last, page, page + bytes, 0) == last;
  errno = saved;
  return done ? TSL_OS_MAPPED : tsl_os_map(end, bytes);
}

static void *reserve_trimmed(size_t bytes, size_t alignment) {
  char *whole = mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return NULL;
  char *start = (char *)tsl_round_up((uintptr_t)whole, alignment);
  size_t before = (size_t)(start - whole);
  if (before != 0) munmap(whole, before);
  munmap(start + bytes, alignment - before);
  return start;
}

void *tsl_os_reserve(size_t bytes, size_t alignment) {
  int saved = errno;
  void *start = reserve_trimmed(bytes, alignment);
  errno = saved;
  return start;
}

void *tsl_os_forbid(size_t bytes) { return tsl_os_reserve(bytes, 65536); }

bool tsl_os_unreserve(void *address, size_t bytes) {
  int saved = errno;
  bool done = munmap(address, bytes) == 0;
  errno = saved;
  return done;
}

size_t tsl_os_reserve_limit_bytes(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return (size_t)limit.rlim_cur / 2;
}

bool tsl_os_commit(void *address, size_t bytes) {
  int saved = errno;
  bool done = mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
  errno = saved;
  return done;
}

void *tsl_os_borrow(size_t bytes) {
  int saved = errno;
  void *address = map_hinted(NULL, bytes, 0);
  errno = saved;
  return address == MAP_FAILED ? NULL : address;
}

bool tsl_os_purge(void *address, size_t bytes) {
  int saved = errno;
  bool done = madvise(address, bytes, MADV_DONTNEED) == 0;
  errno = saved;
  return done;
}

// Guard markers cost no mapping of their own, as a change of protection would. Since Linux 6.13.
bool tsl_os_guard(void *address, size_t bytes, bool guarded) {
  int saved = errno;
  bool done = madvise(address, bytes, guarded ? MADV_GUARD_INSTALL : MADV_GUARD_REMOVE) == 0;
  if (!done && guarded) madvise(address, bytes, MADV_GUARD_REMOVE);  // a part before locked memory
  errno = saved;
  return done;
}

bool tsl_os_protect(void *address, size_t bytes, bool is_protected) {
  int saved = errno;
  bool done = !is_protected || madvise(address, bytes, MADV_DONTNEED) == 0;
  if (done) done = mprotect(address, bytes, is_protected ? PROT_NONE : PROT_READ | PROT_WRITE) == 0;
  errno = saved;
  return done;
}

bool tsl_os_renew(void *address, size_t bytes) {
  int saved = errno;
  bool done = map_hinted(address, bytes, MAP_FIXED) == address;
  errno = saved;
  return done;
}

static bool is_zero(const uint64_t *words, size_t bytes) {
  uint64_t all = 0;
  for (size_t i = 0; i < bytes / sizeof *words; i++) all |= words[i];
  return all == 0;
}

// The system moves a source of several mappings one by one, and may refuse between two: copies back
// what has moved already.
static void bring_back(char *from, char *to, size_t bytes) {
  size_t page = tsl_os_page_bytes();
  for (size_t at = 0; at < bytes; at += page) {
    unsigned char ignored;
    bool is_mapped = mincore(to + at, page, &ignored) == 0;
    if (is_mapped && !is_zero((uint64_t *)(void *)(to + at), page))
      memcpy(from + at, to + at, page);
  }
}

// The system may refuse after it has unmapped `to`: before Linux 6.17 it does so when the source is
// more than one mapping. Then `to` is mapped anew.
enum tsl_os_moved tsl_os_move(void *from, void *to, size_t bytes) {
  int saved = errno;
  void *moved = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
  if (moved != to) bring_back(from, to, bytes);
  bool whole = moved == to || tsl_os_renew(to, bytes);
  errno = saved;
  return moved == to ? TSL_OS_MOVED : whole ? TSL_OS_NOT_MOVED : TSL_OS_PLACE_LOST;
}

void tsl_os_advise_huge(void *address, size_t bytes, bool wanted) {
  int saved = errno;
  madvise(address, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  errno = saved;
}

void tsl_os_name(void *address, size_t bytes, const char *name) {
  int saved = errno;
  prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, address, bytes, name);
  errno = saved;
}

uint64_t tsl_os_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t tsl_os_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

uint64_t tsl_os_used_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

uint64_t tsl_os_process_used_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

// linux/futex.h, which musl lacks.
enum { FUTEX_WAIT_HERE = 0 | 128, FUTEX_WAKE_HERE = 1 | 128 };

void tsl_os_sleep_ms(const uint32_t *word, uint64_t ms) {
  struct timespec rest = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  syscall(SYS_futex, word, FUTEX_WAIT_HERE, 0, &rest);
}

void tsl_os_wake(const uint32_t *word) {
  int saved = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_HERE, 1);
  errno = saved;
}

// 8 of the kernel's 16 random bytes, which lie at any address.
static uint64_t random_seed(void) {
  static uint64_t kept;  // [remote] 0: not read yet
  uint64_t seed = tsl_load_relaxed(&kept);
  if (tsl_likely(seed != 0)) return seed;
  const char *bytes = (const char *)getauxval(AT_RANDOM);
  if (bytes != NULL) memcpy(&seed, bytes + 8, sizeof seed);
  tsl_store_relaxed(&kept, seed);
  return seed;
}

// splitmix64 (Steele, Lea, Flood 2014) over these and a counter.
uint64_t tsl_os_random(void) {
  static uint64_t drawn;
  uint64_t x = random_seed() + (tsl_add_relaxed(&drawn, 1) + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

uint32_t *tsl_os_fork_mark(void) {
  size_t page = tsl_os_page_bytes();
  uint32_t *mark = tsl_os_borrow(page);
  int saved = errno;
  if (mark != NULL && madvise(mark, page, MADV_WIPEONFORK) != 0) {
    munmap(mark, page);
    mark = NULL;
  }
  errno = saved;
  return mark;
}

void tsl_os_yield(void) { sched_yield(); }

const char *tsl_os_environment(const char *name) { return secure_getenv(name); }

bool tsl_os_barrier_init(void) {
  int saved = errno;
  bool registered = syscall(SYS_membarrier, BARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  errno = saved;
  return registered;
}

void tsl_os_barrier(void) { syscall(SYS_membarrier, BARRIER_PRIVATE_EXPEDITED, 0, 0); }

bool tsl_os_advise_use(void *address, size_t bytes, enum tsl_os_use use) {
  static const int advice[] = {MADV_COLD, MADV_PAGEOUT, MADV_WILLNEED};
  int saved = errno;
  bool done = madvise(address, bytes, advice[use]) == 0;
  errno = saved;
  return done;
}

void tsl_os_discard(void *address, size_t bytes) { tsl_os_purge(address, bytes); }

uint32_t tsl_os_process(void) { return (uint32_t)getpid(); }

uint32_t tsl_os_thread(void) { return (uint32_t)syscall(SYS_gettid); }

void tsl_os_name_thread(const char *name) {
  int saved = errno;
  prctl(PR_SET_NAME, name);
  errno = saved;
}

// A folder has a link from above, one of its own, and one from each folder in it.
uint32_t tsl_os_threads(void) {
  struct stat tasks;
  int saved = errno;
  bool is_told = stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2;
  errno = saved;
  return is_told ? (uint32_t)tasks.st_nlink - 2 : 0;
}

// The 22nd field, counted from the process's name, which is the second and ends with the last ')'.
static uint64_t start_in(const char *stat) {
  const char *at = strrchr(stat, ')');
  for (unsigned field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
  return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

// System calls by their numbers where the C library's are cancellation points: a thread that is
// cancelled in the middle of malloc would leave locks behind.
static int open_raw(const char *path, int flags) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}
static void close_raw(int file) { syscall(SYS_close, file); }

size_t tsl_os_read_file(const char *path, char *text, size_t bytes) {
  int saved = errno, file = open_raw(path, O_RDONLY);
  size_t length = 0;
  for (long got = file < 0 ? 0 : 1; got > 0 && length < bytes; length += (size_t)got) {
    got = syscall(SYS_read, file, text + length, bytes - length);
    if (got < 0) got = 0;
  }
  if (file >= 0) close_raw(file);
  text[length] = '\0';
  errno = saved;
  return length;
}

uint64_t tsl_os_process_start(void) {
  char stat[1024];
  tsl_os_read_file("/proc/self/stat", stat, sizeof stat - 1);
  return start_in(stat);
}

void tsl_os_execute(const char *path, char *const *arguments, char *const *environment) {
  int saved = errno;
  execve(path, arguments, environment);
  errno = saved;
}

enum { SHARED_PATH_BYTES = 128, INTERRUPTIONS = 16, ADDRESS_SHARE = 16 };

// The file that was made last: another one of its name is somebody else's.
static dev_t shared_device;
static ino_t shared_inode;
static char *shared_start;  // where it lies

static const char *shared_path(char *path, const char *name) {
  tsl_format(path, SHARED_PATH_BYTES, "/dev/shm/%s", name);
  return path;
}

// A file above RLIMIT_FSIZE would end the program with a signal. Of a limited address space the
// file may take a share of 1 / ADDRESS_SHARE: the program needs the rest.
static bool may_be_so_large(size_t bytes) {
  struct rlimit file, space;
  return getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur >= bytes &&
         getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur / ADDRESS_SHARE >= bytes;
}

// Maps the file without access at first: in a program that locks all its memory (mlockall) the
// pages that are not in use stay without memory.
static void *map_shared(int file, size_t bytes) {
  struct stat status;
  if (ftruncate(file, (off_t)bytes) != 0 || fstat(file, &status) != 0) return NULL;
  shared_device = status.st_dev;
  shared_inode = status.st_ino;
  void *address = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  shared_start = address == MAP_FAILED ? NULL : address;
  return shared_start;
}

static bool is_shared_file(int file) {
  struct stat status;
  return file >= 0 && fstat(file, &status) == 0 && status.st_dev == shared_device &&
         status.st_ino == shared_inode;
}

void *tsl_os_share(const char *name, size_t bytes) {
  char path[SHARED_PATH_BYTES];
  int saved = errno;
  unlink(shared_path(path, name));
  int file = may_be_so_large(bytes) ? open_raw(path, O_RDWR | O_CREAT | O_EXCL) : -1;
  void *address = file < 0 ? NULL : map_shared(file, bytes);
  if (file >= 0) close_raw(file);
  if (file >= 0 && address == NULL) unlink(path);
  errno = saved;
  return address;
}

static bool allocate(int file, size_t offset, size_t bytes) {
  for (unsigned i = 0; i < INTERRUPTIONS; i++) {
    if (syscall(SYS_fallocate, file, 0, (off_t)offset, (off_t)bytes) == 0) return true;
    if (errno != EINTR) return false;
  }
  return false;
}

static bool open_shared(size_t offset, size_t bytes) {
  size_t page = tsl_os_page_bytes(), start = offset & ~(page - 1);
  return mprotect(shared_start + start, offset + bytes - start, PROT_READ | PROT_WRITE) == 0;
}

// Opens the file each time: programs close descriptors that they do not know.
bool tsl_os_share_more(const char *name, size_t offset, size_t bytes) {
  char path[SHARED_PATH_BYTES];
  int saved = errno, file = open_raw(shared_path(path, name), O_RDWR);
  bool done = is_shared_file(file) && allocate(file, offset, bytes) && open_shared(offset, bytes);
  if (file >= 0) close_raw(file);
  errno = saved;
  return done;
}

void tsl_os_share_no_more(void *address, size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, saved = errno;
  if (mmap(address, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
    munmap(address, bytes);
  errno = saved;
}

void tsl_os_unshare(const char *name) {
  char path[SHARED_PATH_BYTES];
  int saved = errno, file = open_raw(shared_path(path, name), O_RDONLY);
  if (is_shared_file(file)) unlink(path);
  if (file >= 0) close_raw(file);
  errno = saved;
}

size_t tsl_os_resident(const void *address, size_t bytes) {
  unsigned char pages[4096];
  size_t page = tsl_os_page_bytes(), resident = 0;
  int saved = errno;
  for (size_t at = 0, step; at < bytes; at += step) {
    step = bytes - at < sizeof pages * page ? bytes - at : sizeof pages * page;
    if (mincore((char *)address + at, step, pages) != 0) break;
    for (size_t i = 0; i < tsl_divide_up(step, page); i++) resident += (pages[i] & 1) * page;
  }
  errno = saved;
  return resident;
}
