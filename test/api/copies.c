// Two copies of the library in a process. copies LIBRARY: uses that one beside the preloaded one.
// It says so once; blocks of each are its own, and the first copy's statistics stay.
#include <dlfcn.h>
#include <glob.h>
#include <sys/stat.h>

#include "../process.h"

// The file is made on a slow path.
static void statistics_make(void) {
  void *blocks[2000];
  for (size_t i = 0; i < 2000; i++) blocks[i] = malloc(i);
  for (size_t i = 0; i < 2000; i++) free(blocks[i]);
}

// The inode of the process's file, which a second one of the same name would not have.
static ino_t statistics(void) {
  char pattern[64];
  struct stat status = {0};
  glob_t found;
  snprintf(pattern, sizeof pattern, "/dev/shm/tslab.%d.*", (int)getpid());
  CHECK_EQ(glob(pattern, 0, NULL, &found), 0);
  CHECK_EQ(stat(found.gl_pathv[0], &status), 0);
  globfree(&found);
  return status.st_ino;
}

int main(int count, char **arguments) {
  CHECK_EQ(count, 2);
  statistics_make();
  ino_t file = statistics();
  void *second = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(second != NULL);
  void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(second, "tslab_malloc");
  void (*release)(void *) = (void (*)(void *))dlsym(second, "tslab_free");
  CHECK(allocate != NULL && release != NULL);
  for (int i = 0; i < 1000; i++) {
    void *ours = malloc(100), *theirs = allocate(100);
    CHECK(ours != NULL && theirs != NULL && ours != theirs);
    release(theirs);
    free(ours);
  }
  CHECK_EQ(statistics(), file);
  return 0;
}
