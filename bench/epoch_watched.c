// What the watch costs (decision 032): requests of 21 objects of 16 to 1,039 bytes, each in its
// epoch, of which one in LOSES loses an object; by default none does. Nothing else is done, so that
// what the library adds is seen as large as it can be. --own gives the epochs memory of their own.
// Without --watched the library is told not to watch.
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>

#define OBJECTS 21u
#define WARM_1_IN 10u  // a tenth as many requests come first, and are not timed

typedef struct server {
  tslab_epoch_options options;
  uint32_t state;
  uint32_t loses;
  uint32_t lost;
} server;

static bool is_losing(server *s) { return s->loses != 0 && random_below(&s->state, s->loses) == 0; }

static void request_serve(server *s) {
  char *objects[OBJECTS];
  for (unsigned i = 0; i < OBJECTS; i++) {
    objects[i] = malloc(16 + (random_next(&s->state) & 1023));
    memory_demand(objects[i]);
    objects[i][0] = 1;
  }
  unsigned first = is_losing(s) ? 1 : 0;
  s->lost += first;
  for (unsigned i = first; i < OBJECTS; i++) {
    free(objects[i]);
  }
}

static void request_wrap(server *s) {
  tslab_epoch epoch = epochs_open("request", &s->options);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  request_serve(s);
  epochs_check(tslab_scope_leave(&scope));
  epochs_close(epoch);
}

static double requests_ns(server *s, uint64_t count) {
  uint64_t start = clock_ns();
  for (uint64_t i = 0; i < count; i++) {
    request_wrap(s);
  }
  return (double)(clock_ns() - start) / (double)count;
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "epoch_watched [--watched] [--own] [REQUESTS [LOSES]]");
  bool is_watched = args_take_flag(&a, "--watched");
  bool is_own = args_take_flag(&a, "--own");
  server s = {.options = {.size = sizeof s.options}, .state = 42};
  s.options.place = is_own ? TSLAB_PLACE_OWN : TSLAB_PLACE_AUTO;
  uint64_t count = args_number(&a, 0, 12000000);
  s.loses = args_number32(&a, 1, 0);
  args_end(&a, 2);
  epochs_demand();
  if (!is_watched) {
    epochs_check(tslab_option_set("watch_bytes", "0"));
  }
  requests_ns(&s, count / WARM_1_IN);
  double ns = requests_ns(&s, count);
  report_open("epoch_watched");
  report_text("mode", is_watched ? "watched" : "unwatched");
  report_count("lost", s.lost);
  report_real("request_ns", ns);
  report_close("%s: %.0f ns a request, %u objects lost", is_watched ? "watched" : "unwatched", ns,
               s.lost);
}
