#include "thread.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tracked.h"

enum { STACK_BYTES = 1 << 16, AREA_BYTES = 4096 };

extern unsigned char __start_model_tls[], __stop_model_tls[];

// Lies in memory that is not tracked.
struct place {
  int running;
  void *explorer;  // its stack pointer
  unsigned char tls[MODEL_TLS_BYTES];
};

static void (*exit_destructor)(void *);
__attribute__((section("model_tls"))) static void *exit_value;

static struct place *place;
static struct model_thread *threads;
static unsigned char *stacks;

// Keeps the callee-saved registers on the stack that it leaves: a thread's state is its stack.
void model_switch(void **from, void *to);
__asm__(
    ".text\n"
    ".type model_switch, @function\n"
    "model_switch:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n"
    "  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
    "  ret\n"
    ".size model_switch, . - model_switch\n");

static void *map(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
}

static size_t tls_bytes(void) { return (size_t)(__stop_model_tls - __start_model_tls); }

void model_threads_init(void) {
  if (tls_bytes() > MODEL_TLS_BYTES) abort();
  place = map(sizeof *place);
  place->running = -1;
  threads = map(AREA_BYTES);
  stacks = map(MODEL_THREADS * STACK_BYTES);
  for (int i = 0; i < MODEL_THREADS; i++) {
    threads[i].stop = MODEL_ENDED;
    memcpy(threads[i].tls, __start_model_tls, tls_bytes());
  }
  tracked_add(threads, AREA_BYTES);
  tracked_add(stacks, MODEL_THREADS * STACK_BYTES);
}

struct model_thread *model_thread_at(int thread) {
  return &threads[thread];
}
int model_thread_running(void) { return place->running; }

static void enter_tls(const struct model_thread *thread) {
  memcpy(place->tls, __start_model_tls, tls_bytes());
  memcpy(__start_model_tls, thread->tls, tls_bytes());
}

static void leave_tls(struct model_thread *thread) {
  memcpy(thread->tls, __start_model_tls, tls_bytes());
  memcpy(__start_model_tls, place->tls, tls_bytes());
}

void model_as(int thread, void (*run)(void)) {
  enter_tls(&threads[thread]);
  run();
  leave_tls(&threads[thread]);
}

static void thread_main(void) {
  threads[place->running].run();
  model_fence("end");
  model_thread_stop(MODEL_ENDED, MODEL_FENCE, NULL, "end");
}

static unsigned char *stack_of(int thread) { return stacks + thread * STACK_BYTES; }

// As if thread_main had been called from nowhere.
void model_thread_start(int thread, void (*run)(void)) {
  void **top = (void **)(void *)(stack_of(thread) + STACK_BYTES) - 3;
  *--top = (void *)thread_main;
  top -= 6;
  threads[thread].stack_pointer = top;
  threads[thread].run = run;
  threads[thread].stop = MODEL_AT_STEP;
  threads[thread].site = "start";
}

// What lies in dead frames must not tell states apart; a thread that ended has no other.
static void wipe_dead_frames(int thread) {
  bool ended = threads[thread].stop == MODEL_ENDED;
  uintptr_t top = (uintptr_t)stack_of(thread) + STACK_BYTES;
  uintptr_t end = ended ? top : (uintptr_t)threads[thread].stack_pointer;
  uintptr_t start = tracked_lowest((uintptr_t)stack_of(thread), end);
  memset((void *)start, 0, end - start);
  if (ended) threads[thread].stack_pointer = NULL;
}

void model_thread_run(int thread) {
  place->running = thread;
  enter_tls(&threads[thread]);
  model_switch(&place->explorer, threads[thread].stack_pointer);
  leave_tls(&threads[thread]);
  place->running = -1;
  wipe_dead_frames(thread);
}

bool model_thread_is_ready(int thread) {
  const struct model_thread *at = &threads[thread];
  if (at->stop == MODEL_AT_AWAIT) return *at->awaited != 0;
  return at->stop != MODEL_ENDED;
}

void model_thread_stop(enum model_stop stop, enum model_op op, const volatile void *address,
                       const char *site) {
  struct model_thread *thread = &threads[place->running];
  thread->stop = stop;
  thread->op = op;
  thread->address = address;
  thread->site = site;
  model_switch(&thread->stack_pointer, place->explorer);
}

int model_key_create(pthread_key_t *key, void (*destructor)(void *)) {
  *key = 0;
  exit_destructor = destructor;
  return 0;
}

int model_setspecific(pthread_key_t key, const void *value) {
  (void)key;
  exit_value = (void *)(uintptr_t)value;
  return 0;
}

void model_exit_thread(void) {
  void *value = exit_value;
  exit_value = NULL;
  if (value != NULL) exit_destructor(value);
}
