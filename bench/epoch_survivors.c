// Epochs that each lose their bet: of ten objects of 16 to 271 bytes, one outlives the close. What
// is resident for each survivor, once many epochs were closed? --wrapped gives each ten objects
// their epoch. Stops early where more is resident than --most MIB, and says how many epochs there
// were.
#include "common/args.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"
#include "common/shared_epoch.h"

#include <stdlib.h>

#define OBJECTS 10u
#define LOOK_EVERY 1024u

typedef struct survivors {
  bool is_wrapped;
  uint32_t state;
  uint64_t wanted;      // rounds of ten objects, each in its epoch where wrapped
  uint64_t most_bytes;  // resident
  uint64_t before;      // resident bytes, before the first object
  uint64_t rounds;
  uint64_t live_bytes;  // as asked for
  uint64_t told;        // survivors, by the closes
} survivors;

static void objects_run(survivors *s) {
  char *objects[OBJECTS];
  size_t bytes[OBJECTS];
  for (unsigned i = 0; i < OBJECTS; i++) {
    bytes[i] = 16 + (random_next(&s->state) & 255);
    objects[i] = malloc(bytes[i]);
    memory_demand(objects[i]);
    memory_touch(objects[i], bytes[i]);
  }
  unsigned survivor = random_below(&s->state, OBJECTS);
  s->live_bytes += bytes[survivor];
  for (unsigned i = 0; i < OBJECTS; i++) {
    if (i != survivor) {
      free(objects[i]);
    }
  }
}

static void epoch_run(survivors *s) {
  tslab_epoch epoch = epochs_open("survivors", NULL);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  objects_run(s);
  epochs_check(tslab_scope_leave(&scope));
  s->told += epochs_close(epoch).objects;
}

static void survivors_check(const survivors *s) {
  uint64_t found = s->told + shared_epoch_live("survivors");
  if (found != s->rounds) {
    fprintf(stderr, "%llu objects survived, not %llu\n", (unsigned long long)found,
            (unsigned long long)s->rounds);
    exit(1);
  }
}

static bool has_room(const survivors *s) {
  return s->rounds % LOOK_EVERY != 0 || memory_resident_bytes_about() < s->most_bytes;
}

static void survivors_run(survivors *s) {
  s->before = memory_resident_bytes();
  for (; s->rounds < s->wanted && has_room(s); s->rounds++) {
    if (s->is_wrapped) {
      epoch_run(s);
    } else {
      objects_run(s);
    }
  }
}

static void survivors_report(const survivors *s) {
  double own = (double)memory_resident_bytes() - (double)s->before;
  double each = own / (double)s->rounds;
  report_open("epoch_survivors");
  report_text("mode", s->is_wrapped ? "wrapped" : "plain");
  report_count("survivors", s->rounds);
  report_count("live_bytes", s->live_bytes);
  report_real("survivor_bytes", each);
  report_real("reached", (double)s->rounds / (double)s->wanted);
  report_close("%s: %llu survivors of %llu, %.0f bytes resident for each, of %.0f asked for",
               s->is_wrapped ? "wrapped" : "plain", (unsigned long long)s->rounds,
               (unsigned long long)s->wanted, each, (double)s->live_bytes / (double)s->rounds);
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "epoch_survivors [--wrapped] [--most MIB] [EPOCHS]");
  survivors s = {.is_wrapped = args_take_flag(&a, "--wrapped"), .state = 42};
  s.most_bytes = (uint64_t)args_take_number32(&a, "--most", 4096) << 20;
  s.wanted = args_number(&a, 0, 1000000);
  args_end(&a, 1);
  if (s.is_wrapped) {
    epochs_demand();
  }
  survivors_run(&s);
  if (s.rounds == 0) {
    args_refuse(&a, "no room for a first epoch", "--most");
  }
  if (s.is_wrapped) {
    survivors_check(&s);
  }
  survivors_report(&s);
}
