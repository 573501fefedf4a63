// forks: what the programs that fork share.
#ifndef TSLAB_TEST_FORKS_H
#define TSLAB_TEST_FORKS_H

#include <signal.h>
#include <sys/wait.h>

#include "shadow.h"

enum { CHURN_LIVE = 64, CHURN_LOG2 = 17 };

// Allocates and frees, and leaves nothing.
static inline void churn(struct random *random, int rounds) {
  struct shadow live[CHURN_LIVE] = {{NULL, 0, 0}};
  for (int i = 0; i < rounds; i++) {
    struct shadow *block = &live[random_below(random, CHURN_LIVE)];
    shadow_drop(block);
    size_t size = random_size(random, CHURN_LOG2);
    CHECK(shadow_take(block, allocator_malloc(size), size, random_next(random)));
  }
  for (int i = 0; i < CHURN_LIVE; i++) shadow_drop(&live[i]);
}

// Waits for a child, which an alarm ends where it hangs. `whose` is how messages call it.
static inline void child_expect(pid_t child, const char *whose) {
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_THAT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "%s hangs", whose);
  CHECK_THAT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with status 0x%x", whose,
             (unsigned)status);
}

#endif
