// Mistakes of the program that the allocator catches: foreign pointers, double frees, pointers into
// a block.
//
// Run without arguments, the program starts itself once for each case and each setting of on_error.
// With the name of a case it makes that mistake, having printed the pointer that the message must
// name.
#include <pthread.h>
#include <sys/mman.h>

#include "../child.h"
#include "blocks.h"

static void pointer_announce(const void *pointer) { dprintf(STDOUT_FILENO, "%p\n", pointer); }

static void mistaken_free(void *pointer) {
  pointer_announce(pointer);
  free(pointer);
}

static void foreign_stack(void) {
  _Alignas(16) char block[64] = {0};
  mistaken_free(block);
}

static void foreign_static(void) {
  _Alignas(16) static char block[64];
  mistaken_free(block);
}

static void foreign_mapping(void) {
  void *block = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mistaken_free(block);
}

static void foreign_non_canonical(void) { mistaken_free((void *)0xdead00000000beb0); }
static void foreign_kernel_half(void) { mistaken_free((void *)0xffff800000001000); }
static void foreign_small_number(void) { mistaken_free((void *)0x10); }
static void foreign_all_ones(void) { mistaken_free((void *)~(uintptr_t)0); }

static void foreign_realloc(void) {
  _Alignas(16) static char block[64];
  pointer_announce(block);
  CHECK(realloc(block, 100) == NULL);
}

static void foreign_usable_size(void) {
  _Alignas(16) static char block[64];
  pointer_announce(block);
  CHECK_EQ(malloc_usable_size(block), 0);
}

static void foreign_delete(void) {
  _Alignas(16) static char block[64];
  pointer_announce(block);
  SYMBOL(free_sized)(block, 64);
}

static void twice_of(size_t size) {
  void *block = malloc(size);
  free(block);
  mistaken_free(block);
}

static void twice_tiny(void) { twice_of(1); }
static void twice_small(void) { twice_of(64); }
static void twice_medium(void) { twice_of(3000); }
static void twice_slab_sized(void) { twice_of(100 * KIB); }
static void twice_span(void) { twice_of(5 * MIB); }
static void twice_huge(void) { twice_of(200 * MIB); }

static void twice_realloced(void) {
  void *block = malloc(64), *moved = realloc(block, 64 * KIB);
  CHECK(moved != block);
  mistaken_free(block);
}

// Takes what is free of a size and gives it back, in both orders: blocks leave every cache that
// could hide a mistake.
static void blocks_cycle(size_t size) {
  enum { COUNT = 20000 };
  static void *blocks[COUNT];
  for (int i = 0; i < COUNT; i++) blocks[i] = malloc(size);
  for (int i = COUNT; i-- > 0;) free(blocks[i]);
  for (int i = 0; i < COUNT; i++) blocks[i] = malloc(size);
  for (int i = 0; i < COUNT; i++) free(blocks[i]);
}

static void twice_after_one(void) {
  void *block = malloc(64), *other = malloc(64);
  free(block);
  free(other);
  mistaken_free(block);
  blocks_cycle(64);
}

static void twice_after_many(void) {
  enum { COUNT = 1000 };
  static void *blocks[COUNT];
  for (int i = 0; i < COUNT; i++) blocks[i] = malloc(64);
  for (int i = 0; i < COUNT; i++) free(blocks[i]);
  mistaken_free(blocks[0]);
  blocks_cycle(64);
}

static void *free_in_thread(void *block) {
  free(block);
  return NULL;
}

static void thread_frees(void *block) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, free_in_thread, block), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void twice_by_two_threads(void) {
  void *block = malloc(64);
  pointer_announce(block);
  thread_frees(block);
  thread_frees(block);
}

static void twice_other_then_owner(void) {
  void *block = malloc(64);
  pointer_announce(block);
  thread_frees(block);
  free(block);
  blocks_cycle(64);
}

static void twice_owner_then_other(void) {
  void *block = malloc(64);
  free(block);
  pointer_announce(block);
  thread_frees(block);
  blocks_cycle(64);
}

static void interior_of(size_t size, size_t offset) {
  char *block = malloc(size);
  memset(block, 1, size);
  mistaken_free(block + offset);
  blocks_cycle(size < 4 * KIB ? size : 64);
}

static void interior_odd(void) { interior_of(64, 1); }
static void interior_odd_middle(void) { interior_of(64, 33); }
static void interior_granule(void) { interior_of(64, 16); }
static void interior_medium(void) { interior_of(3000, 256); }
static void interior_slab_sized(void) { interior_of(100 * KIB, 4096); }
static void interior_span(void) { interior_of(5 * MIB, 4096); }
static void interior_span_unit(void) { interior_of(5 * MIB, MIB); }
static void interior_span_odd(void) { interior_of(5 * MIB, 12345); }
static void interior_huge(void) { interior_of(200 * MIB, 64 * MIB); }
static void interior_huge_page(void) { interior_of(200 * MIB, 4096); }

static void interior_realloc(void) {
  char *block = malloc(5 * MIB);
  pointer_announce(block + MIB);
  CHECK(realloc(block + MIB, 100) == NULL);
}

// When a case is caught. A table to adjust: each row is a promise or an honest limit.
enum when {
  AT_ONCE,    // by the call itself
  LATER,      // at the latest when the block leaves the caches
  BY_SECURE,  // as LATER by the secure build; the default build may miss it, but never fault
};

static const struct mistake {
  const char *name;
  void (*make)(void);
  enum when caught;
} mistakes[] = {
    {"foreign-stack", foreign_stack, AT_ONCE},
    {"foreign-static", foreign_static, AT_ONCE},
    {"foreign-mapping", foreign_mapping, AT_ONCE},
    {"foreign-non-canonical", foreign_non_canonical, AT_ONCE},
    {"foreign-kernel-half", foreign_kernel_half, AT_ONCE},
    {"foreign-small-number", foreign_small_number, AT_ONCE},
    {"foreign-all-ones", foreign_all_ones, AT_ONCE},
    {"foreign-realloc", foreign_realloc, AT_ONCE},
    {"foreign-usable-size", foreign_usable_size, AT_ONCE},
    {"foreign-free-sized", foreign_delete, AT_ONCE},
    {"twice-tiny", twice_tiny, AT_ONCE},
    {"twice-small", twice_small, AT_ONCE},
    {"twice-medium", twice_medium, AT_ONCE},
    {"twice-slab-sized", twice_slab_sized, AT_ONCE},
    {"twice-span", twice_span, AT_ONCE},
    {"twice-huge", twice_huge, AT_ONCE},
    {"twice-realloced", twice_realloced, AT_ONCE},
    {"twice-by-two-threads", twice_by_two_threads, AT_ONCE},
    {"twice-after-one", twice_after_one, LATER},
    {"twice-after-many", twice_after_many, LATER},
    {"twice-other-then-owner", twice_other_then_owner, AT_ONCE},
    {"twice-owner-then-other", twice_owner_then_other, BY_SECURE},
    {"interior-odd", interior_odd, AT_ONCE},
    {"interior-odd-middle", interior_odd_middle, AT_ONCE},
    {"interior-granule", interior_granule, BY_SECURE},
    {"interior-medium", interior_medium, BY_SECURE},
    {"interior-slab-sized", interior_slab_sized, AT_ONCE},
    {"interior-span", interior_span, AT_ONCE},
    {"interior-span-unit", interior_span_unit, AT_ONCE},
    {"interior-span-odd", interior_span_odd, AT_ONCE},
    {"interior-huge", interior_huge, AT_ONCE},
    {"interior-huge-page", interior_huge_page, AT_ONCE},
    {"interior-realloc", interior_realloc, AT_ONCE},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

// After a mistake that was only reported the allocator still has to work.
static void allocator_works_check(void) {
  enum { COUNT = 3000 };
  static void *blocks[COUNT];
  for (unsigned round = 0; round < 3; round++) {
    for (unsigned i = 0; i < COUNT; i++) {
      blocks[i] = malloc(i % 700);
      block_check(blocks[i], i % 700);
      pattern_fill(blocks[i], i % 700, i);
    }
    for (unsigned i = 0; i < COUNT; i++) {
      pattern_check(blocks[i], i % 700, i);
      free(blocks[i]);
    }
  }
}

static int mistake_make(const char *name) {
  for (int i = 0; i < MISTAKES; i++) {
    if (strcmp(mistakes[i].name, name) != 0) continue;
    mistakes[i].make();
    if (mistakes[i].caught == AT_ONCE) allocator_works_check();
    return 0;
  }
  return 2;
}

static void action_set(const void *action) {
  char setting[64];
  snprintf(setting, sizeof setting, "on_error:%s", (const char *)action);
  setenv("TSLAB_CONF", setting, 1);
}

// "tslab: free(0x...): ..." with the pointer that the child announced.
static int is_named(const struct child *child) {
  return strncmp(child->errors, "tslab: ", 7) == 0 && strstr(child->errors, child->output) != NULL;
}

static int is_as_promised(const struct child *child, enum when caught, const char *action) {
  int aborted = child_ended_by(child, SIGABRT);
  if (caught == BY_SECURE && !TSL_SECURE) return aborted || child_ended_well(child);
  if (strcmp(action, "abort") == 0) return aborted && is_named(child);
  if (strcmp(action, "report") == 0) return child_ended_well(child) && is_named(child);
  return child_ended_well(child) && child->errors[0] == '\0';
}

static int failures;

static void mistake_try(const char *program, const struct mistake *mistake, const char *action) {
  struct child child;
  child_run(&child, program, mistake->name, action_set, action);
  child.output[strcspn(child.output, "\n")] = '\0';
  if (is_as_promised(&child, mistake->caught, action)) return;
  failures++;
  check_print("%s, on_error:%s: status 0x%x, pointer %s, stderr: %.300s\n", mistake->name, action,
              (unsigned)child.status, child.output, child.errors[0] ? child.errors : "(nothing)\n");
}

int main(int argc, char **argv) {
  static const char *const actions[] = {"abort", "report", "ignore"};
  if (argc == 2) check_waive();
  if (argc == 2) return mistake_make(argv[1]);
  for (int i = 0; i < MISTAKES; i++)
    for (int action = 0; action < 3; action++) mistake_try(argv[0], &mistakes[i], actions[action]);
  CHECK_THAT(failures == 0, "%d of %d outcomes differ from the table", failures, 3 * MISTAKES);
  return 0;
}
