#include "stepper.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

static uintptr_t register_read(pid_t child, size_t offset) {
  return (uintptr_t)ptrace(PTRACE_PEEKUSER, child, (void *)offset, NULL);
}

static uintptr_t stack_read(pid_t child) {
  return register_read(child, offsetof(struct user_regs_struct, rsp));
}

static bool stands_inside(const stepper *s, pid_t child) {
  uintptr_t instruction = register_read(child, offsetof(struct user_regs_struct, rip));
  return instruction >= (uintptr_t)s->start && instruction < (uintptr_t)s->stop;
}

// One step; false when the child has ended.
static bool step(pid_t child) {
  int status = 0;
  return ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child &&
         WIFSTOPPED(status);
}

// Leaving by a call pushes a return address; leaving by a return pops one, and the count is over.
static bool counts_collect(const stepper *s, pid_t child, stepper_counts *counts) {
  uintptr_t stack = 0;  // as it was before the last step, zero unless that was inside
  bool counting = false;
  while (step(child)) {
    if (stands_inside(s, child)) {
      counting = true;
      counts->inside++;
      stack = stack_read(child);
    } else if (counting) {
      if (stack != 0 && stack_read(child) > stack) {
        return true;
      }
      counts->calls += stack != 0;
      counts->callee[(counts->calls + 1) % 2]++;
      stack = 0;
    }
  }
  return false;
}

void stepper_begin(void) { raise(SIGSTOP); }

_Noreturn static void child_run(const stepper *s) {
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
    s->body(s->context);
  }
  _exit(0);
}

bool stepper_run(const stepper *s, stepper_counts *counts) {
  *counts = (stepper_counts){0};
  pid_t child = fork();
  if (child == 0) {
    child_run(s);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
    return false;
  }
  bool complete = counts_collect(s, child, counts);
  if (complete) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  return complete;
}

#else

void stepper_begin(void) {}

bool stepper_run(const stepper *s, stepper_counts *counts) {
  (void)s;
  *counts = (stepper_counts){0};
  return false;
}

#endif
