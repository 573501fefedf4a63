// capture: what a piece of code writes on stderr, and how it dies.
#pragma once

#include <signal.h>

#include "test.h"

enum { CAPTURE_BYTES = 4096 };

static char capture_text[CAPTURE_BYTES];
static int capture_pipe[2], capture_stderr = -1;

// From here on stderr goes into a pipe; no check may stand before capture_end.
static inline void capture_start(void) {
  CHECK(pipe(capture_pipe) == 0);
  capture_stderr = dup(STDERR_FILENO);
  CHECK(capture_stderr >= 0);
  CHECK(dup2(capture_pipe[1], STDERR_FILENO) >= 0);
  close(capture_pipe[1]);
}

static inline const char *capture_read(void) {
  size_t length = 0;
  for (ssize_t got = 1; got > 0 && length < sizeof capture_text - 1; length += (size_t)got) {
    got = read(capture_pipe[0], capture_text + length, sizeof capture_text - 1 - length);
    if (got < 0) got = 0;
  }
  capture_text[length] = '\0';
  close(capture_pipe[0]);
  return capture_text;
}

// The text since capture_start; valid until the next capture.
static inline const char *capture_end(void) {
  dup2(capture_stderr, STDERR_FILENO);
  close(capture_stderr);
  return capture_read();
}

// Runs the function in a child; returns its status as waitpid gives it. Its stderr is in
// capture_text.
static inline int capture_child(void (*function)(void)) {
  int status;
  CHECK(pipe(capture_pipe) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(capture_pipe[1], STDERR_FILENO);
    function();
    _exit(EXIT_SUCCESS);
  }
  close(capture_pipe[1]);
  capture_read();
  CHECK(waitpid(child, &status, 0) == child);
  return status;
}

static inline bool capture_aborts(void (*function)(void)) {
  int status = capture_child(function);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static inline unsigned capture_lines(const char *text) {
  unsigned lines = 0;
  for (; *text != '\0'; text++) lines += *text == '\n';
  return lines;
}
