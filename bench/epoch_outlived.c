// Objects that outlive their epochs, and are freed one by one. Of a batch of objects of 16 to 1,039
// bytes one in a hundred goes to a store of 20,000, in place of another one, and the others are
// freed before the close. With --late all are freed, eight batches later; with --handed by another
// thread, up to eight batches later. --wrapped gives each batch its epoch; with --below these have
// one parent. Figures are of the second half of the batches, but for the peak.
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"
#include "common/ring.h"

#include <pthread.h>
#include <stdlib.h>

#define STORED 20000u
#define SURVIVES_1_IN 100u
#define BATCHES_LATE 8u
#define MOST_OBJECTS 100000u
#define LOOK_EVERY 20000u  // objects, from one look at resident memory to the next

typedef struct outlived {
  bool is_wrapped;
  bool is_late;
  bool is_handed;
  tslab_epoch_options options;
  uint32_t state;
  uint32_t objects;  // of a batch
  uint32_t total;    // batches
  char **store;
  char **batches[BATCHES_LATE];  // those of the last ones; NULL: it survived, or there was none
  uint64_t before;               // resident bytes, before the first object
  uint64_t peak_bytes;
  bool is_looked;  // in this batch: for the peak, and when it is over
  double resident_sum;
  uint32_t looks;
  uint64_t look_ns;  // that they took: the system walks all pages
  pthread_t freer;
  _Alignas(64) _Atomic uint32_t handed;  // batches, to the thread that frees them,
  _Alignas(64) _Atomic uint32_t freed;   // and of these, those that it has freed
} outlived;

static char *object_make(outlived *o) {
  size_t bytes = 16 + (random_next(&o->state) & 1023);
  char *object = malloc(bytes);
  memory_demand(object);
  memory_touch(object, bytes);
  return object;
}

static void batch_free(const outlived *o, char **batch) {
  for (uint32_t i = 0; i < o->objects; i++) {
    free(batch[i]);
    batch[i] = NULL;
  }
}

static void survivor_keep(outlived *o, char **object) {
  char **place = &o->store[random_below(&o->state, STORED)];
  free(*place);
  *place = *object;
  *object = NULL;
}

static void batch_fill(outlived *o, char **batch) {
  for (uint32_t i = 0; i < o->objects; i++) {
    batch[i] = object_make(o);
    if (!o->is_late && random_below(&o->state, SURVIVES_1_IN) == 0) {
      survivor_keep(o, &batch[i]);
    }
  }
}

static uint64_t own_bytes(outlived *o) {
  uint64_t start = clock_ns(), bytes = memory_resident_bytes();
  o->look_ns += clock_ns() - start;
  return bytes - o->before;
}

static void peak_look(outlived *o) {
  uint64_t bytes = own_bytes(o);
  o->peak_bytes = bytes > o->peak_bytes ? bytes : o->peak_bytes;
}

static void batch_work(outlived *o, char **batch) {
  batch_fill(o, batch);
  if (o->is_looked) {
    peak_look(o);
  }
  if (!o->is_late) {
    batch_free(o, batch);
  }
}

// Up to `count` batches are freed.
static void freed_wait(outlived *o, uint32_t count) {
  for (unsigned waited = 0; atomic_load(&o->freed) < count; waited++) {
    ring_pause(waited);
  }
}

static void *batches_free(void *context) {
  outlived *o = context;
  for (uint32_t i = 0; i < o->total; i++) {
    for (unsigned waited = 0; atomic_load(&o->handed) <= i; waited++) {
      ring_pause(waited);
    }
    batch_free(o, o->batches[i % BATCHES_LATE]);
    atomic_store(&o->freed, i + 1);
  }
  return NULL;
}

static void batch_run(outlived *o, char **batch) {
  if (o->is_late && !o->is_handed) {
    batch_free(o, batch);
  }
  if (!o->is_wrapped) {
    batch_work(o, batch);
    return;
  }
  tslab_epoch epoch = epochs_open("batch", &o->options);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  batch_work(o, batch);
  epochs_check(tslab_scope_leave(&scope));
  epochs_close(epoch);
}

// The next batch lies where the eighth one before it lay.
static void batch_hand(outlived *o) {
  uint32_t handed = atomic_load(&o->handed) + 1;
  atomic_store(&o->handed, handed);
  freed_wait(o, handed < BATCHES_LATE ? 0 : handed - BATCHES_LATE + 1);
}

// Nanoseconds that `count` batches took, without the looks at resident memory.
static uint64_t batches_run(outlived *o, uint32_t count) {
  uint64_t start = clock_ns();
  o->resident_sum = 0;
  o->looks = 0;
  o->look_ns = 0;
  for (uint32_t i = 0; i < count; i++) {
    o->is_looked = (uint64_t)i * o->objects % LOOK_EVERY < o->objects;
    batch_run(o, o->batches[i % BATCHES_LATE]);
    if (o->is_handed) {
      batch_hand(o);
    }
    if (o->is_looked) {
      o->resident_sum += (double)own_bytes(o);
      o->looks++;
    }
  }
  return clock_ns() - start - o->look_ns;
}

static void outlived_open(outlived *o) {
  o->store = memory_map(STORED * sizeof *o->store);
  for (unsigned i = 0; i < BATCHES_LATE; i++) {
    o->batches[i] = memory_map(o->objects * sizeof **o->batches);
  }
  o->before = memory_resident_bytes();
  if (o->is_handed && pthread_create(&o->freer, NULL, batches_free, o) != 0) {
    abort();
  }
}

int main(int argc, char **argv) {
  args a = args_open(
      argc, argv, "epoch_outlived [--wrapped] [--below] [--late | --handed] [BATCHES [OBJECTS]]");
  outlived o = {.is_wrapped = args_take_flag(&a, "--wrapped"),
                .is_late = args_take_flag(&a, "--late"),
                .is_handed = args_take_flag(&a, "--handed"),
                .options = {.size = sizeof o.options},
                .state = 42};
  bool is_below = args_take_flag(&a, "--below");
  o.is_late = o.is_late || o.is_handed;
  uint32_t half = args_number32(&a, 0, 120) / 2;
  o.objects = args_number32(&a, 1, 20000);
  o.total = half * 2;
  args_end(&a, 2);
  if (half == 0 || o.objects == 0 || o.objects > MOST_OBJECTS) {
    args_refuse(&a, "no batches, or too many objects", "");
  }
  if (o.is_wrapped) {
    epochs_demand();
    if (is_below) {
      o.options.parent = epochs_open("tenant", NULL);
    }
  }
  outlived_open(&o);
  batches_run(&o, half);
  double ns = (double)batches_run(&o, half) / half / o.objects;
  if (o.is_handed) {
    pthread_join(o.freer, NULL);
  }
  double resident_mb = o.resident_sum / o.looks / 1048576;
  report_open("epoch_outlived");
  report_text("mode", o.is_wrapped ? "wrapped" : "plain");
  report_real("object_ns", ns);
  report_real("resident_mb", resident_mb);
  report_real("peak_mb", (double)o.peak_bytes / 1048576);
  report_close("%s: %.1f ns an object, %.1f MiB resident after a batch, %.1f MiB at most",
               o.is_wrapped ? "wrapped" : "plain", ns, resident_mb, (double)o.peak_bytes / 1048576);
}
