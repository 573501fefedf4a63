// Runs one program under one allocator and says what the kernel counted: measure LIBRARY|- PROGRAM
// [ARGUMENT...] The peak of resident memory that the kernel keeps includes the launching process
// before exec, so the launcher is this small static program and not the runner.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

_Noreturn static void child_run(const char *library, char **command) {
  if (strcmp(library, "-") != 0) {
    setenv("LD_PRELOAD", library, 1);
  }
  execvp(command[0], command);
  fprintf(stderr, "measure: %s: %s\n", command[0], strerror(errno));
  _exit(127);
}

static int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void usage_print(const struct rusage *u, double elapsed_s) {
  printf(
      "usage wall_s=%.4f user_s=%.4f sys_s=%.4f peak_kib=%ld minor_faults=%ld voluntary=%ld "
      "involuntary=%ld\n",
      elapsed_s, seconds(u->ru_utime), seconds(u->ru_stime), u->ru_maxrss, u->ru_minflt,
      u->ru_nvcsw, u->ru_nivcsw);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fputs("usage: measure LIBRARY|- PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  double start_s = now_s();
  pid_t child = fork();
  if (child == 0) {
    child_run(argv[1], &argv[2]);
  }
  struct rusage usage;
  int status = 0;
  if (child < 0 || wait4(child, &status, 0, &usage) != child) {
    fprintf(stderr, "measure: %s\n", strerror(errno));
    return 1;
  }
  usage_print(&usage, now_s() - start_s);
  return exit_status(status);
}
