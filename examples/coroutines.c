// Tasks that yield in the middle of their work and go on in another thread, each in an epoch of its
// own: the scheduler enters the epoch when a task goes on, and leaves it when the task yields.
#include <pthread.h>
#include <string.h>
#include <tslab.h>
#include <ucontext.h>

#include "expect.h"

enum { THREADS = 2, TASKS = 50, STEPS = 20, STACK_BYTES = 65536 };
enum { TURNS = TASKS * (STEPS + 1) / THREADS };

struct word {
  struct word *next;
  char *text;
};

struct task {
  struct task *next;
  ucontext_t here, scheduler;
  tslab_epoch epoch;
  bool is_done;
  unsigned threads_seen;
};

struct queue {
  pthread_mutex_t lock;
  pthread_cond_t filled;
  struct task *first;
  int turns;
};

static struct queue queues[THREADS] = {
    {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, TURNS},
    {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, TURNS},
};

static void yield(struct task *task) { swapcontext(&task->here, &task->scheduler); }

// Plain malloc and strdup, which know nothing of tasks. makecontext passes ints.
static void work(unsigned high, unsigned low) {
  struct task *task = (struct task *)((uintptr_t)high << 32 | low);
  struct word *words = NULL;
  for (int step = 0; step < STEPS; step++) {
    struct word *word = malloc(sizeof *word);
    *word = (struct word){words, strdup("step")};
    words = word;
    yield(task);
  }
  for (const struct word *word = words; word != NULL; word = word->next)
    EXPECT(tslab_epoch_of(word) == task->epoch && tslab_epoch_of(word->text) == task->epoch);
  task->is_done = true;
}

// The task and its stack are the first objects of its epoch.
static struct task *task_new(void) {
  tslab_epoch epoch = tslab_epoch_open("task", NULL);
  struct task *task = tslab_epoch_calloc(epoch, 1, sizeof *task);
  void *stack = tslab_epoch_malloc(epoch, STACK_BYTES);
  EXPECT(task != NULL && stack != NULL && getcontext(&task->here) == 0);
  task->epoch = epoch;
  task->here.uc_stack.ss_sp = stack;
  task->here.uc_stack.ss_size = STACK_BYTES;
  task->here.uc_link = &task->scheduler;
  uintptr_t address = (uintptr_t)task;
  makecontext(&task->here, (void (*)(void))work, 2, (unsigned)(address >> 32), (unsigned)address);
  return task;
}

static void push(struct queue *queue, struct task *task) {
  pthread_mutex_lock(&queue->lock);
  task->next = queue->first;
  queue->first = task;
  pthread_cond_signal(&queue->filled);
  pthread_mutex_unlock(&queue->lock);
}

static struct task *pop(struct queue *queue) {
  pthread_mutex_lock(&queue->lock);
  while (queue->first == NULL) pthread_cond_wait(&queue->filled, &queue->lock);
  struct task *task = queue->first;
  queue->first = task->next;
  pthread_mutex_unlock(&queue->lock);
  return task;
}

static void resume(struct task *task, size_t thread) {
  tslab_scope stay;
  EXPECT_DONE(tslab_scope_enter(&stay, task->epoch));
  task->threads_seen |= 1u << thread;
  swapcontext(&task->scheduler, &task->here);
  EXPECT_DONE(tslab_scope_leave(&stay));
}

// Each step of a task runs in the other thread than the one before.
static void *schedule(void *own) {
  struct queue *queue = own;
  size_t thread = (size_t)(queue - queues);
  for (; queue->turns > 0; queue->turns--) {
    struct task *task = pop(queue);
    resume(task, thread);
    if (!task->is_done) {
      push(&queues[1 - thread], task);
      continue;
    }
    EXPECT(task->threads_seen == 3);
    EXPECT_DONE(tslab_epoch_release(task->epoch));
  }
  EXPECT(tslab_epoch_current() == TSLAB_DEFAULT);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (size_t i = 0; i < TASKS; i++) push(&queues[i % THREADS], task_new());
  for (size_t i = 0; i < THREADS; i++)
    EXPECT(pthread_create(&threads[i], NULL, schedule, &queues[i]) == 0);
  for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);

  printf("%d tasks changed threads %d times each\n", TASKS, STEPS);
  printf("every word lay in the epoch of its task, and ended with it\n");
  return 0;
}
