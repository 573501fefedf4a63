// Explores each scenario in a process of its own: model [--broken|--everywhere|--long] [NAME...].
//  --broken      the core is a mutant, and a violation is what is wanted
//  --everywhere  threads stop at every atomic operation: X2 is put to the proof
//  --long        those too that take long, which otherwise run by name alone
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scenario.h"
#include "tracked.h"

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void explore(const struct model_scenario *scenario) {
  double start = seconds();
  struct model_result result = model_explore(scenario);
  dprintf(STDOUT_FILENO,
          "%-24s %8llu states %9llu transitions %6llu ends %4llu addresses %4zu pages %7.2f s\n",
          scenario->name, (unsigned long long)result.states, (unsigned long long)result.transitions,
          (unsigned long long)result.ends, (unsigned long long)result.learned, tracked_pages(),
          seconds() - start);
}

// Whether no violation was found.
static bool holds(const struct model_scenario *scenario) {
  pid_t child = fork();
  if (child == 0) {
    explore(scenario);
    _exit(EXIT_SUCCESS);
  }
  int status = 1;
  bool done = child > 0 && waitpid(child, &status, 0) == child;
  if (done && WIFSIGNALED(status)) dprintf(STDERR_FILENO, "signal %d\n", WTERMSIG(status));
  return done && status == 0;
}

static bool is_wanted(const struct model_scenario *scenario, bool with_long, int argc,
                      char **argv) {
  for (int i = 0; i < argc; i++) {
    if (strcmp(argv[i], scenario->name) == 0) return true;
  }
  return argc == 0 && (with_long || !scenario->takes_long);
}

static unsigned violations, mistakes;

static void run(const struct model_scenario *scenario) {
  bool held = holds(scenario);
  violations += !held;
  if (!held)
    printf("%-24s violation%s\n", scenario->name, scenario->fails ? ", as it must be" : "");
  mistakes += held == scenario->fails;
  fflush(stdout);
}

int main(int argc, char **argv) {
  const struct model_scenario *suites[] = {free_scenarios, scope_scenarios, heap_scenarios};
  bool broken = argc > 1 && strcmp(argv[1], "--broken") == 0;
  model_stops_everywhere = argc > 1 && strcmp(argv[1], "--everywhere") == 0;
  bool with_long = argc > 1 && strcmp(argv[1], "--long") == 0;
  int options = 1 + (broken || model_stops_everywhere || with_long);
  argc -= options;
  argv += options;
  for (unsigned i = 0; i < sizeof suites / sizeof *suites; i++) {
    for (const struct model_scenario *at = suites[i]; at->name != NULL; at++) {
      if (is_wanted(at, with_long, argc, argv) && !(broken && at->fails)) run(at);
    }
  }
  return (broken ? violations != 0 : mistakes == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
