// dlopen_cycle: the library loaded into a running program and unloaded again, while threads that
// used it live on.
//
//   stress_dlopen_cycle LIBRARY...
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include "../process.h"

enum { CYCLES = 30, BLOCKS = 500 };

static void *(*library_malloc)(size_t);
static void (*library_free)(void *);
static pthread_barrier_t used, unloaded;

static void library_use(void) {
  static _Thread_local void *blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = library_malloc(i * 50);
    CHECK(blocks[i] != NULL);
    memset(blocks[i], 1, i * 50);
  }
  for (int i = 0; i < BLOCKS; i++) library_free(blocks[i]);
}

static void *short_thread(void *data) {
  library_use();
  return data;
}

// Its end, with what the library registered for it, comes after the library was closed.
static void *long_thread(void *data) {
  library_use();
  pthread_barrier_wait(&used);
  pthread_barrier_wait(&unloaded);
  return data;
}

static void fork_and_exit(void) {
  int status;
  pid_t child = fork();
  CHECK_GE(child, 0);
  if (child == 0) exit(0);
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

static void cycle(const char *path) {
  pthread_t short_lived, long_lived;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK_THAT(library != NULL, "%s", dlerror());
  library_malloc = (void *(*)(size_t))dlsym(library, "tslab_malloc");
  library_free = (void (*)(void *))dlsym(library, "tslab_free");
  CHECK(library_malloc != NULL && library_free != NULL);
  library_use();
  CHECK_EQ(pthread_create(&short_lived, NULL, short_thread, NULL), 0);
  CHECK_EQ(pthread_join(short_lived, NULL), 0);
  CHECK_EQ(pthread_create(&long_lived, NULL, long_thread, NULL), 0);
  pthread_barrier_wait(&used);
  CHECK_EQ(dlclose(library), 0);
  fork_and_exit();
  pthread_barrier_wait(&unloaded);
  CHECK_EQ(pthread_join(long_lived, NULL), 0);
}

static void library_test(const char *path) {
  check_context_set("%s", path);
  cycle(path);
  size_t before = process_resident_bytes(), mapped = process_mapped_bytes();
  for (int i = 0; i < CYCLES; i++) cycle(path);
  CHECK_LE(process_resident_bytes(), before + 8 * MIB);
  // One more arena of the C library, for a thread of ours (its stack is small).
  CHECK_LE(process_mapped_bytes(), mapped + 65 * MIB);
}

int main(int count, char **values) {
  CHECK_EQ(pthread_barrier_init(&used, NULL, 2), 0);
  CHECK_EQ(pthread_barrier_init(&unloaded, NULL, 2), 0);
  CHECK_GE(count, 2);
  for (int i = 1; i < count; i++) library_test(values[i]);
  return 0;
}
