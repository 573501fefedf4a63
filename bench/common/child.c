#include "child.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t child_run(child_body body, void *context) {
  // What stdout still holds would be written twice.
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    body(context);
    _exit(0);
  }
  int status = 0;
  struct rusage used;
  if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0) {
    fprintf(stderr, "a part of the program failed: status %d\n", status);
    exit(1);
  }
  return (uint64_t)used.ru_maxrss * 1024;
}
