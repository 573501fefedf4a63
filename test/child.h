// child: a program started anew with settings of its own, and what it said.
#ifndef TSLAB_TEST_CHILD_H
#define TSLAB_TEST_CHILD_H

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

#define CHILD_SECONDS 20

struct child {
  int status;
  char output[1024];
  char errors[8192];
};

static inline void child_read(int end, char *text, size_t size) {
  size_t length = 0;
  ssize_t more;
  while (length < size - 1 && (more = read(end, text + length, size - 1 - length)) > 0)
    length += (size_t)more;
  text[length] = '\0';
  char rest[256];
  while (read(end, rest, sizeof rest) > 0) continue;
  close(end);
}

// Becomes `program argument`. An emulator (TEST_EMULATOR) cannot preload what it runs, and preloads
// for the program by a setting of its own.
static inline void child_become(const char *program, const char *argument) {
  const char *words[] = {TEST_EMULATOR program, argument, NULL};
  if (words[0] != program) unsetenv("LD_PRELOAD");
  execvp(words[0], (char *const *)(uintptr_t)words);
  _exit(127);
}

// Starts `program argument`; `prepare` runs in the child before it becomes the program.
static inline void child_run(struct child *child, const char *program, const char *argument,
                             void (*prepare)(const void *), const void *data) {
  int output[2], errors[2];
  CHECK(pipe2(output, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0);
  pid_t id = fork();
  CHECK_GE(id, 0);
  if (id == 0) {
    prepare(data);
    dup2(output[1], STDOUT_FILENO);
    dup2(errors[1], STDERR_FILENO);
    alarm(CHILD_SECONDS);
    child_become(program, argument);
  }
  close(output[1]);
  close(errors[1]);
  child_read(errors[0], child->errors, sizeof child->errors);
  child_read(output[0], child->output, sizeof child->output);
  CHECK_EQ(waitpid(id, &child->status, 0), id);
  char *added = strstr(child->errors, "qemu: uncaught target signal");
  if (added != NULL) *added = '\0';  // the emulator's own words
}

static inline int child_ended_by(const struct child *child, int signal_number) {
  return WIFSIGNALED(child->status) && WTERMSIG(child->status) == signal_number;
}

static inline int child_ended_well(const struct child *child) {
  return WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0;
}

#endif
