// refusal: the kernel refuses memory for a while, as it does when it will not overcommit, then
// grants it again. Nothing may crash, nothing may be lost, and every refusal must reach the caller
// as NULL and ENOMEM.
//
// A seccomp filter turns each memory call into a signal; its handler refuses the call, or makes it
// from the one address that the filter lets through. Threads start before the filter: the C library
// makes such calls with signals blocked.
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "shadow.h"

#if defined(__x86_64__)

// long gate(long number, const long arguments[6]); the call returns to gate_return.
__asm__(
    ".text\n"
    "gate:\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %r11\n"
    "  mov 0(%r11), %rdi\n"
    "  mov 8(%r11), %rsi\n"
    "  mov 16(%r11), %rdx\n"
    "  mov 32(%r11), %r8\n"
    "  mov 40(%r11), %r9\n"
    "  mov 24(%r11), %r10\n"
    "  syscall\n"
    "gate_return:\n"
    "  ret\n");
extern long gate(long number, const long *arguments);
extern const char gate_return[];

enum { THREADS = 3, BLOCKS = 300, CYCLES = 60, CYCLES_WARM = 15, SIZE_LOG2 = 20 };

// What may be mapped or resident more after the last cycle than after the first ones.
#define BYTES_LEFT (64 * MIB)
// The region opens a quarter more, in steps of 32 MiB, and yet more behind that, when the threads
// happen to hold most at once; it never shrinks.
#define MAPPED_LEFT (256 * MIB)

// Calls are counted from 1; those from `refuse_from` up to, not including, `refuse_to` fail.
static atomic_long calls, refuse_from = LONG_MAX, refuse_to = LONG_MAX;

// The break stays where it is when it cannot be moved; all other calls say why they failed.
static long refusal_of(long number) {
  static const long nothing[6];
  return number == SYS_brk ? gate(SYS_brk, nothing) : -ENOMEM;
}

static void on_call(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  long arguments[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                       registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
  (void)number;
  long call = atomic_fetch_add(&calls, 1) + 1;
  int refused = call >= atomic_load(&refuse_from) && call < atomic_load(&refuse_to);
  registers[REG_RAX] = refused ? refusal_of(info->si_syscall) : gate(info->si_syscall, arguments);
}

#define LOAD(field) \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define IF_EQUAL(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
#define VERDICT(value) BPF_STMT(BPF_RET | BPF_K, value)

static void filter_install(void) {
  struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
  uintptr_t allowed = (uintptr_t)gate_return;
  struct sock_filter rules[] = {
      LOAD(nr),
      IF_EQUAL(SYS_mmap, 5, 0),
      IF_EQUAL(SYS_mremap, 4, 0),
      IF_EQUAL(SYS_mprotect, 3, 0),
      IF_EQUAL(SYS_madvise, 2, 0),
      IF_EQUAL(SYS_munmap, 1, 0),
      IF_EQUAL(SYS_brk, 0, 4),
      LOAD(instruction_pointer),
      IF_EQUAL((uint32_t)allowed, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
               (unsigned)offsetof(struct seccomp_data, instruction_pointer) + 4),
      IF_EQUAL((uint32_t)(allowed >> 32), 0, 1),
      VERDICT(SECCOMP_RET_ALLOW),
      VERDICT(SECCOMP_RET_TRAP),
  };
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  CHECK_EQ(sigaction(SIGSYS, &action, NULL), 0);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    check_skip("seccomp filters are not available here");
}

static void refusals_set(long from, long to) {
  atomic_store(&refuse_to, to);
  atomic_store(&refuse_from, from);
}

// An allocation may fail, but then it says so.
static int block_take(struct shadow *block, struct random *random, size_t size) {
  errno = 0;
  void *made = random_next(random) & 3 ? allocator_malloc(size) : allocator_calloc(1, size);
  if (made == NULL) CHECK_EQ(errno, ENOMEM);
  return shadow_take(block, made, size, random_next(random));
}

static void block_change(struct shadow *block, struct random *random) {
  size_t way = random_below(random, 4), size = 1 + random_size(random, SIZE_LOG2);
  if (block->block == NULL) {
    block_take(block, random, size);
  } else if (way == 0) {
    errno = 0;
    if (!shadow_resize(block, size)) CHECK_EQ(errno, ENOMEM);
  } else {
    errno = EXDEV;
    shadow_drop(block);
    CHECK_EQ(errno, EXDEV);
  }
}

static void blocks_change(struct shadow *blocks, struct random *random, int times) {
  for (int i = 0; i < times; i++) block_change(&blocks[random_below(random, BLOCKS)], random);
}

static pthread_barrier_t cycle_start, cycle_end;
static atomic_int granting;

static void *thread_run(void *data) {
  static struct shadow blocks[THREADS][BLOCKS];
  struct shadow *mine = blocks[(uintptr_t)data];
  struct random random = {(uintptr_t)data + 1};
  for (;;) {
    pthread_barrier_wait(&cycle_start);
    blocks_change(mine, &random, 400);
    for (int i = 0; i < BLOCKS && atomic_load(&granting); i++) {
      shadow_drop(&mine[i]);
      CHECK(block_take(&mine[i], &random, random_size(&random, SIZE_LOG2 - 1)));
      if (i % 2) shadow_drop(&mine[i]);
    }
    for (int i = 0; i < BLOCKS && atomic_load(&granting); i++) shadow_drop(&mine[i]);
    pthread_barrier_wait(&cycle_end);
  }
  return NULL;
}

static void cycle_run(int grants) {
  atomic_store(&granting, grants);
  refusals_set(grants ? LONG_MAX : 0, LONG_MAX);
  pthread_barrier_wait(&cycle_start);
  pthread_barrier_wait(&cycle_end);
}

static void threads_test(void) {
  size_t mapped = 0, resident = 0;
  for (int cycle = 0; cycle < CYCLES; cycle++) {
    cycle_run(0);
    cycle_run(1);
    allocator_trim(0);
    if (cycle == CYCLES_WARM) {
      mapped = process_mapped_bytes();
      resident = process_resident_bytes();
    }
  }
  CHECK_LE(process_mapped_bytes(), mapped + MAPPED_LEFT);
  CHECK_LE(process_resident_bytes(), resident + BYTES_LEFT);
}

// What a program does in its life, in small: every kind of block, at first use and later.
static void life(void) {
  static const size_t sizes[] = {1, 100, 5000, 100 * KIB, 3 * MIB, 20 * MIB};
  static struct shadow blocks[BLOCKS];
  struct random random = {7};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (block_take(&blocks[i], &random, sizes[i])) shadow_resize(&blocks[i], sizes[i] * 2 + 1);
  allocator_free(allocator_aligned_alloc(GIB, 100));
  blocks_change(blocks, &random, 600);
  for (int i = 0; i < BLOCKS; i++) shadow_drop(&blocks[i]);
  allocator_trim(0);
  blocks_change(blocks, &random, 300);
  refusals_set(LONG_MAX, LONG_MAX);
  for (int i = 0; i < BLOCKS; i++) {
    shadow_drop(&blocks[i]);
    CHECK(block_take(&blocks[i], &random, random_size(&random, SIZE_LOG2 - 1)));
  }
  for (int i = 0; i < BLOCKS; i++) shadow_drop(&blocks[i]);
}

enum { LIFE_UNHURT = 100 };

// One life in a process of its own, whose calls from `from` to `to` fail; says whether any of them
// was made.
static int life_is_hurt(long from, long to) {
  int status;
  pid_t child = fork();
  CHECK_GE(child, 0);
  if (child == 0) {
    alarm(60);
    check_context_set("memory calls %ld to %ld refused", from, to - 1);
    refusals_set(from, to);
    atomic_store(&calls, 0);
    life();
    _exit(atomic_load(&calls) < from ? LIFE_UNHURT : 0);
  }
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_THAT(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == LIFE_UNHURT),
             "memory calls %ld to %ld refused: status 0x%x", from, to - 1, (unsigned)status);
  return WEXITSTATUS(status) == 0;
}

// Each call in turn fails; then each call and the ten after it; then each call and all later ones
// of that life.
static void each_in_turn_test(void) {
  static const long lengths[] = {1, 10, LONG_MAX / 2};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    long lives = 1;
    for (long from = 1; life_is_hurt(from, from + lengths[i]); from += 1 + from / 16) lives++;
    dprintf(STDOUT_FILENO, "%ld refused at a time: %ld lives\n", lengths[i], lives);
  }
}

int main(void) {
  pthread_t thread;
  filter_install();
  each_in_turn_test();
  CHECK_EQ(pthread_barrier_init(&cycle_start, NULL, THREADS + 1), 0);
  CHECK_EQ(pthread_barrier_init(&cycle_end, NULL, THREADS + 1), 0);
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&thread, NULL, thread_run, (void *)i), 0);
  threads_test();
  _exit(0);
}

#else

int main(void) { check_skip("written for x86-64"); }

#endif
