#include "callgrind.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ARGUMENTS 8u
#define SAID "Collected : "

_Noreturn static void child_run(int err, const char *const *arguments) {
  char self[4096];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  self[length < 0 ? 0 : length] = '\0';
  const char *command[MOST_ARGUMENTS + 6] = {"valgrind", "--tool=callgrind",
                                             "--callgrind-out-file=/dev/null",
                                             "--toggle-collect=callgrind_counted", self};
  for (unsigned i = 0; i < MOST_ARGUMENTS && arguments[i] != NULL; i++) {
    command[5 + i] = arguments[i];
  }
  int none = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(none, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvp(command[0], (char *const *)(uintptr_t)command);
  _exit(127);
}

// The figure behind the last SAID; zero when there is none.
static uint64_t count_read(FILE *text) {
  char line[512];
  uint64_t count = 0;
  while (fgets(line, sizeof line, text) != NULL) {
    const char *said = strstr(line, SAID);
    count = said == NULL ? count : strtoull(said + strlen(SAID), NULL, 10);
  }
  return count;
}

void callgrind_counted(void (*run)(uint64_t count), uint64_t count) { run(count); }

uint64_t callgrind_count(const char *const *arguments) {
  int ends[2];
  fflush(stdout);
  pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
  if (child == 0) {
    child_run(ends[1], arguments);
  }
  uint64_t count = 0;
  int status = -1;
  if (child > 0) {
    close(ends[1]);
    FILE *text = fdopen(ends[0], "r");
    count = text == NULL ? 0 : count_read(text);
    waitpid(child, &status, 0);
  }
  if (status != 0 || count == 0) {
    fprintf(stderr, "cannot count instructions: valgrind %s (status %d)\n",
            status == 127 << 8 ? "is not installed" : "fails", status);
    exit(1);
  }
  return count;
}
