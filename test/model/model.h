// model: runs the real core under every interleaving of a few threads, at sequential consistency.
//
// The threads of a scenario are coroutines, which stop before each atomic operation that matters.
// From each state the explorer tries every thread that can go on, and never a state twice: states
// are told apart by 64 bits of hash over all memory that differs from the scenario's beginning.
//
//  X1  everything that a step may change lies in tracked memory: the region, the program's data,
//      the threads' stacks. Pages join the tracked set at their first write.
//  X2  an operation on an address that no two threads use, one of them writing, commutes with all
//      the others: nobody stops there. That an address is shared is learned on the way; exploration
//      then begins anew.
//  X3  between two stops a thread runs alone: races of plain accesses are ThreadSanitizer's part
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_THREADS = 3, A = 0, B = 1, C = 2 };

struct model_scenario {
  const char *name;
  void (*prepare)(void);                 // before the threads begin; not explored
  void (*threads[MODEL_THREADS])(void);  // NULL: no such thread
  void (*finish)(void);                  // after they ended, in each end state; may be NULL
  bool delays_depth;     // a store of a heap's depth may become visible after the next load
  bool delays_changing;  // so may the store that begins or ends a change
  bool takes_long;       // left to --long, and to who names it
  bool purges;           // what goes back to the system is zero afterwards
  bool no_barrier;       // the system has none: scopes use fences
  bool fails;            // what is left out here must be found
};

// X2 is not made use of: more states, and as many end states.
extern bool model_stops_everywhere;

struct model_result {
  uint64_t states, transitions, ends, learned;
};

// Explores a scenario; a violation prints its schedule and ends the process.
struct model_result model_explore(const struct model_scenario *scenario);

// Runs on behalf of a thread, at once and unexplored.
void model_as(int thread, void (*run)(void));

// The calling thread waits until the flag is set.
void model_await(uint32_t *flag);
void model_set(uint32_t *flag);

// The calling thread's destructors run.
void model_exit_thread(void);

void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define EXPECT(condition)                                                                    \
  do {                                                                                       \
    if (!(condition)) model_fail("%s:%d: %s does not hold", __FILE__, __LINE__, #condition); \
  } while (0)

// os_model: the system under the core.
struct model_os {
  bool has_barrier;
  bool barrier_works;
  bool purges;
};
extern struct model_os model_os;
void *model_region(size_t *bytes);

// account: nothing is in use any more; everything is free at exactly one place.
void model_account(void);

// Why the operation must not be; NULL when it may.
const char *model_misplaced(uintptr_t address, int op);
bool model_is_depth(uintptr_t address);
bool model_is_changing(uintptr_t address);
