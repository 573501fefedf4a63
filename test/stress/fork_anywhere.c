// fork_anywhere: forks that meet what else a program does at that moment.
//
//   stress_fork_anywhere stream|stdio|handlers|signals|all [--forks N]
//
// stream: the C library's fork waits for the list of streams, its holder for a stream, and the
// holder of that one wants memory: whoever kept memory locked for the fork would wait for itself.
// stdio: threads print while another thread forks.
// handlers: a library that is loaded before the program's own code has handlers that allocate.
// signals: a handler forks that interrupts malloc, or a fork. Some children end there, others go on
// with what was interrupted.
// all: each of these, with the threads that print.
//
// A child that hangs ends by an alarm; a parent that hangs is ended by ctest.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../process.h"
#include "fork_handlers.h"
#include "forks.h"

enum { PRINTERS = 3, CHILD_SECONDS = 20, SIGNAL_US = 700, WRITE_US = 200000 };

static struct {
  bool stream, stdio, handlers, signals;
  unsigned forks;
} arguments = {.forks = 60};

static atomic_bool stopped;
static volatile sig_atomic_t is_child;  // of a handler that forked
static atomic_uint signal_forks;
static __thread volatile sig_atomic_t may_fork;  // the thread's signals do

// A stream in memory allocates while it is locked; to flush all streams locks their list, and waits
// for each.
static void print_much(struct random *random) {
  char *text;
  size_t length;
  FILE *stream = open_memstream(&text, &length);
  CHECK(stream != NULL);
  CHECK_GE(fprintf(stream, "%300000d", (int)random_below(random, 400)), 300000);
  CHECK_EQ(fflush(NULL), 0);
  CHECK_EQ(fclose(stream), 0);
  free(text);
}

static void *printer_run(void *data) {
  struct random random = {(uintptr_t)data};
  while (!atomic_load(&stopped)) print_much(&random);
  return NULL;
}

static atomic_bool is_writing;

// The stream is locked meanwhile.
static ssize_t write_late(void *unused, const char *text, size_t length) {
  (void)unused, (void)text;
  atomic_store(&is_writing, true);
  usleep(WRITE_US);
  allocator_free(allocator_malloc(10 * MIB));
  return (ssize_t)length;
}

static void *stream_write(void *unused) {
  FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_late});
  CHECK(stream != NULL);
  CHECK_GE(fprintf(stream, "late"), 4);
  CHECK_EQ(fflush(stream), 0);
  CHECK_EQ(fclose(stream), 0);
  return unused;
}

static void *streams_flush(void *unused) {
  while (!atomic_load(&is_writing)) usleep(WRITE_US / 100);
  CHECK_EQ(fflush(NULL), 0);
  return unused;
}

static void *child_thread_run(void *data) {
  struct random random = {(uintptr_t)data};
  churn(&random, 200);
  return NULL;
}

static void child_live(uintptr_t seed) {
  struct random random = {seed};
  pthread_t thread;
  alarm(CHILD_SECONDS);
  churn(&random, 100);
  if (arguments.stdio) print_much(&random);
  CHECK_EQ(pthread_create(&thread, NULL, child_thread_run, (void *)seed), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  allocator_trim(0);
  churn(&random, 100);
}

// Half of the children end in the handler, the others return to what it interrupted.
static void on_signal(int number) {
  (void)number;
  int saved = errno, status;
  if (!may_fork || is_child) return;
  unsigned count = atomic_fetch_add(&signal_forks, 1);
  pid_t child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    if (count % 2 == 0) _exit(0);
    is_child = 1;
    return;
  }
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) abort();
  errno = saved;
}

static void signals_start(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  struct itimerval every = {{0, SIGNAL_US}, {0, SIGNAL_US}};
  CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
  CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
  may_fork = 1;
}

static void signals_stop(void) {
  struct itimerval never = {{0, 0}, {0, 0}};
  CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
  may_fork = 0;
}

// The child of a handler goes on for a while where its parent was.
static void end_if_child(struct random *random) {
  if (!is_child) return;
  churn(random, 300);
  allocator_trim(0);
  _exit(0);
}

static void forks_by_signals(void) {
  struct random random = {77};
  signals_start();
  while (atomic_load(&signal_forks) < arguments.forks) {
    churn(&random, 20);
    end_if_child(&random);
  }
  signals_stop();
}

static void forks_by_calls(void) {
  struct random random = {99};
  for (unsigned i = 0; i < arguments.forks; i++) {
    check_context_set("fork %u", i);
    churn(&random, 10);
    unsigned before = fork_handlers_ran();
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
      if (arguments.handlers) CHECK_EQ(fork_handlers_ran(), before + 2);
      child_live(i + 1);
      _exit(0);
    }
    if (arguments.handlers) CHECK_EQ(fork_handlers_ran(), before + 2);
    child_expect(child, "a child");
  }
}

static void fork_behind_a_stream(void) {
  pthread_t writer, flusher;
  CHECK_EQ(pthread_create(&writer, NULL, stream_write, NULL), 0);
  CHECK_EQ(pthread_create(&flusher, NULL, streams_flush, NULL), 0);
  while (!atomic_load(&is_writing)) usleep(WRITE_US / 100);
  usleep(WRITE_US / 4);
  pid_t child = fork();
  CHECK_GE(child, 0);
  if (child == 0) {
    child_live(1);
    _exit(0);
  }
  child_expect(child, "a child");
  CHECK_EQ(pthread_join(writer, NULL), 0);
  CHECK_EQ(pthread_join(flusher, NULL), 0);
}

static void arguments_parse(int count, char **texts) {
  const char *mode = count > 1 ? texts[1] : "all";
  bool all = strcmp(mode, "all") == 0;
  arguments.stream = all || strcmp(mode, "stream") == 0;
  arguments.stdio = all || strcmp(mode, "stdio") == 0;
  arguments.handlers = all || strcmp(mode, "handlers") == 0;
  arguments.signals = all || strcmp(mode, "signals") == 0;
  CHECK(arguments.stream || arguments.stdio || arguments.handlers || arguments.signals);
  if (count == 4 && strcmp(texts[2], "--forks") == 0)
    arguments.forks = (unsigned)strtoul(texts[3], NULL, 10);
}

int main(int count, char **texts) {
  pthread_t printers[PRINTERS];
  arguments_parse(count, texts);
  fork_handlers_allocate(arguments.handlers);
  if (arguments.stream) fork_behind_a_stream();
  if (arguments.stdio) {
    for (uintptr_t i = 0; i < PRINTERS; i++)
      CHECK_EQ(pthread_create(&printers[i], NULL, printer_run, (void *)(i + 1)), 0);
  }
  if (arguments.stdio || arguments.handlers) forks_by_calls();
  fork_handlers_allocate(false);  // in a signal handler no program may allocate
  if (arguments.signals) forks_by_signals();
  atomic_store(&stopped, true);
  for (int i = 0; i < PRINTERS && arguments.stdio; i++)
    CHECK_EQ(pthread_join(printers[i], NULL), 0);
  return 0;
}
