// tiny_stack: every path of the allocator on the smallest stack that a thread may have, and how
// much of it is used.
//
// The stack is painted before the thread starts; what paint is left tells how deep it went.
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>

#include "shadow.h"

// What the deepest path may use beyond a thread that does nothing.
#define DEPTH_ALLOWED (6 * KIB)
#define PAINT 0x5c

enum { HANDED = 3000 };

static void *handed[HANDED];

static void nothing(void) {}

static void small(void) {
  for (size_t size = 1; size < 64 * KIB; size = size * 2 + 1) {
    void *block = allocator_malloc(size), *zeroed = allocator_calloc(1, size);
    CHECK(block != NULL && zeroed != NULL);
    block = allocator_realloc(block, size * 3);
    allocator_free(block);
    allocator_free(zeroed);
  }
}

static void large(void) {
  char *block = allocator_malloc(5 * MIB);
  CHECK(block != NULL);
  block[0] = 1;
  block = allocator_realloc(block, 40 * MIB);
  CHECK(block != NULL);
  block = allocator_realloc(block, 300 * MIB);
  CHECK(block != NULL && block[0] == 1);
  allocator_free(block);
}

static void aligned(void) {
  for (size_t alignment = 16; alignment <= GIB; alignment *= 4) {
    void *block = allocator_aligned_alloc(alignment, 100), *posix = NULL;
    CHECK_EQ(allocator_posix_memalign(&posix, alignment, 100000), 0);
    CHECK(block != NULL);
    allocator_free(block);
    allocator_free(posix);
  }
}

static void refused(void) {
  const volatile size_t impossible = (size_t)PTRDIFF_MAX - MIB;
  CHECK_REFUSED(allocator_malloc(impossible), ENOMEM);
  CHECK_REFUSED(allocator_realloc(NULL, impossible), ENOMEM);
}

static void many(void) {
  for (int i = 0; i < HANDED; i++) {
    handed[i] = allocator_malloc((size_t)i * 17 % 9000);
    CHECK(handed[i] != NULL);
  }
}

// Frees what the thread before allocated.
static void remote(void) {
  for (int i = 0; i < HANDED; i++) allocator_free(handed[i]);
}

static void trim(void) { allocator_trim(0); }

static void *task_run(void *task) {
  (*(void (**)(void))task)();
  return NULL;
}

static size_t paint_left(const unsigned char *stack, size_t size) {
  size_t left = 0;
  while (left < size && stack[left] == PAINT) left++;
  return left;
}

static size_t depth_of(void (*task)(void)) {
  size_t size = (size_t)PTHREAD_STACK_MIN, guard = 64 * KIB;
  pthread_attr_t attributes;
  pthread_t thread;
  unsigned char *area =
      mmap(NULL, guard + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(area != MAP_FAILED);
  CHECK_EQ(mprotect(area, guard, PROT_NONE), 0);
  memset(area + guard, PAINT, size);
  CHECK_EQ(pthread_attr_init(&attributes), 0);
  CHECK_EQ(pthread_attr_setstack(&attributes, area + guard, size), 0);
  CHECK_EQ(pthread_create(&thread, &attributes, task_run, &task), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  size_t depth = size - paint_left(area + guard, size);
  CHECK_EQ(munmap(area, guard + size), 0);
  return depth;
}

int main(void) {
  static const struct {
    const char *name;
    void (*run)(void);
  } tasks[] = {{"small", small}, {"large", large},   {"aligned", aligned}, {"refused", refused},
               {"many", many},   {"remote", remote}, {"trim", trim}};
  size_t base = depth_of(nothing);
  for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
    check_context_set("task %s", tasks[i].name);
    size_t depth = depth_of(tasks[i].run) - base;
    dprintf(STDOUT_FILENO, "%s: %zu bytes of stack\n", tasks[i].name, depth);
    CHECK_LE(depth, DEPTH_ALLOWED);
  }
  return 0;
}
