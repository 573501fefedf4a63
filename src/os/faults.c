// faults: the part of os.h about reads and writes that the system refuses.
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "os/os.h"

static tsl_os_explain *explain;
static struct sigaction before;

// The program's own handler, else the end: without a handler the fault repeats.
static void pass_on(int number, siginfo_t *info, void *context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    sigaction(number, &before, NULL);
  } else {
    before.sa_handler(number);
  }
}

static const void *code_of(const ucontext_t *context) {
#if defined(__x86_64__)
  return (const void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return (const void *)context->uc_mcontext.pc;
#endif
}

static void handle(int number, siginfo_t *info, void *context) {
  if (!explain(info->si_addr, code_of(context))) pass_on(number, info, context);
}

void tsl_os_explain_faults(tsl_os_explain *wanted) {
  struct sigaction ours = {.sa_sigaction = handle,
                           .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  explain = wanted;
  sigaction(SIGSEGV, &ours, &before);
}
