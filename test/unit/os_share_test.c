#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "os_pages.h"
#include "threads.h"

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

int main(void) {
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
  return test_status();
}
