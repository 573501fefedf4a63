// Lifetimes mixed: bursts of requests, all in flight at once, allocate in turns; a few of their
// objects survive into a store, at a random place of which an older one is freed. Then a trough:
// the requests are over and the program goes on with one request a millisecond, or with --idle does
// nothing. What is resident then, beside what lives? --wrapped gives each request its epoch;
// --annotated makes the survivors outside of it besides, --epochs in one epoch of the store.
#include "common/args.h"
#include "common/clock.h"
#include "common/curve.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>

#define OBJECTS 200u
#define STORED 20000u
#define SURVIVES_1_IN 50u
#define BURSTS_MAX 64u
#define BURSTS_JUDGED 6u
#define TICK_EVERY 64u

typedef enum mix_mode { MIX_PLAIN, MIX_WRAPPED, MIX_ANNOTATED, MIX_EPOCHS } mix_mode;

static const char *const mode_names[] = {"plain", "wrapped", "annotated", "epochs"};

typedef struct object {
  char *start;
  size_t bytes;
} object;

typedef struct request {
  tslab_epoch epoch;
  uint32_t made;  // objects allocated, those in the store included
  uint32_t kept;  // objects of its own
  object objects[OBJECTS];
} request;

typedef struct mix {
  mix_mode mode;
  bool is_idle;  // in the trough
  uint32_t flying;
  uint32_t state;
  uint64_t trough_ms;
  uint64_t live_bytes;  // as asked for
  uint64_t before;      // resident bytes, before the first object
  uint64_t peak_bytes;  // resident when all requests were in flight, those before not included
  tslab_epoch store_epoch;
  object *store;
  request *requests;
  uint32_t *order;  // of requests: those that are not complete come first
  curve curve;
  double ratios[BURSTS_MAX];
} mix;

static object object_make(mix *m, tslab_epoch epoch) {
  object o = {NULL, 16 + (random_next(&m->state) & 1023)};
  tslab_scope scope;
  if (m->mode != MIX_PLAIN) {
    epochs_check(tslab_scope_enter(&scope, epoch));
  }
  o.start = malloc(o.bytes);
  if (m->mode != MIX_PLAIN) {
    epochs_check(tslab_scope_leave(&scope));
  }
  memory_demand(o.start);
  memory_touch(o.start, o.bytes);
  m->live_bytes += o.bytes;
  return o;
}

static object survivor_make(mix *m, const request *r) {
  if (m->mode != MIX_ANNOTATED) {
    return object_make(m, m->mode == MIX_EPOCHS ? m->store_epoch : r->epoch);
  }
  tslab_scope here;
  epochs_check(tslab_scope_enter(&here, r->epoch));
  object o = object_make(m, TSLAB_DEFAULT);
  epochs_check(tslab_scope_leave(&here));
  return o;
}

static void object_end(mix *m, const object *o) {
  free(o->start);
  m->live_bytes -= o->bytes;
}

static void request_open(mix *m, request *r) {
  r->made = 0;
  r->kept = 0;
  if (m->mode != MIX_PLAIN) {
    r->epoch = epochs_open("request", NULL);
  }
}

static void request_step(mix *m, request *r) {
  r->made++;
  if (random_below(&m->state, SURVIVES_1_IN) != 0) {
    r->objects[r->kept++] = object_make(m, r->epoch);
    return;
  }
  object *place = &m->store[random_below(&m->state, STORED)];
  object_end(m, place);
  *place = survivor_make(m, r);
}

static void request_end(mix *m, request *r) {
  for (uint32_t i = 0; i < r->kept; i++) {
    object_end(m, &r->objects[i]);
  }
  if (m->mode != MIX_PLAIN) {
    epochs_close(r->epoch);
  }
  curve_tick(&m->curve, m->live_bytes);
}

// Whose turn it is, is chance; a request that is complete waits for the others.
static void burst_fill(mix *m) {
  uint32_t going = m->flying;
  for (uint64_t i = 0; going > 0; i++) {
    uint32_t turn = random_below(&m->state, going);
    uint32_t chosen = m->order[turn];
    request_step(m, &m->requests[chosen]);
    if (m->requests[chosen].made == OBJECTS) {
      going--;
      m->order[turn] = m->order[going];
      m->order[going] = chosen;
    }
    if (i % TICK_EVERY == 0) {
      curve_tick(&m->curve, m->live_bytes);
    }
  }
}

static uint64_t own_bytes(const mix *m) {
  uint64_t resident = memory_resident_bytes();
  return resident < m->before ? 0 : resident - m->before;
}

static void burst_run(mix *m) {
  for (uint32_t i = 0; i < m->flying; i++) {
    request_open(m, &m->requests[i]);
  }
  burst_fill(m);
  uint64_t bytes = own_bytes(m);
  m->peak_bytes = bytes > m->peak_bytes ? bytes : m->peak_bytes;
  for (uint32_t i = 0; i < m->flying; i++) {
    request_end(m, &m->requests[m->order[i]]);
  }
}

static void light_request(mix *m) {
  request *r = &m->requests[0];
  request_open(m, r);
  while (r->made < OBJECTS) {
    request_step(m, r);
  }
  request_end(m, r);
}

// Resident over live bytes at its end.
static double trough_run(mix *m) {
  uint64_t start = clock_ns();
  bool is_silent = m->is_idle && m->curve.path == NULL;
  for (uint64_t ms = 0; ms < m->trough_ms && !is_silent; ms++) {
    clock_wait_until(start + ms * 1000000u);
    if (m->is_idle) {
      curve_tick(&m->curve, m->live_bytes);
    } else {
      light_request(m);
    }
  }
  clock_wait_until(start + m->trough_ms * 1000000u);
  return (double)own_bytes(m) / (double)m->live_bytes;
}

static int ratio_compare(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

// The median of the last bursts: the first ones fill the store.
static double ratios_median(const double *ratios, uint32_t bursts) {
  uint32_t count = bursts < BURSTS_JUDGED ? bursts : BURSTS_JUDGED;
  double last[BURSTS_JUDGED];
  for (uint32_t i = 0; i < count; i++) {
    last[i] = ratios[bursts - count + i];
  }
  qsort(last, count, sizeof *last, ratio_compare);
  return (last[count / 2] + last[(count - 1) / 2]) / 2;
}

static void mix_open(mix *m, const char *curve_path) {
  m->store = memory_map(STORED * sizeof *m->store);
  m->requests = memory_map(m->flying * sizeof *m->requests);
  m->order = memory_map(m->flying * sizeof *m->order);
  for (uint32_t i = 0; i < m->flying; i++) {
    m->order[i] = i;
  }
  m->before = memory_resident_bytes();
  curve_open(&m->curve, curve_path, m->before);
  if (curve_path != NULL) {
    m->before = m->curve.before;
  }
  if (m->mode == MIX_EPOCHS) {
    tslab_epoch_options lasting = {.size = sizeof lasting, .first_cell_bytes = TSLAB_NO_CELLS};
    m->store_epoch = epochs_open("store", &lasting);
  }
}

static void mix_report(const mix *m, uint32_t bursts) {
  double median = ratios_median(m->ratios, bursts);
  report_open("lifetime_mix");
  report_text("mode", mode_names[m->mode]);
  report_count("requests", m->flying);
  report_count("live_bytes", m->live_bytes);
  report_count("peak_bytes", m->peak_bytes);
  report_real("resident_over_live", median);
  for (uint32_t i = 0; i < bursts; i++) {
    char key[16];
    snprintf(key, sizeof key, "burst_%u", i + 1);
    report_real(key, m->ratios[i]);
  }
  report_close(
      "%s: %.2f bytes resident for each live one in the trough, %.1f MiB live; %.1f MiB at most",
      mode_names[m->mode], median, (double)m->live_bytes / 1048576,
      (double)m->peak_bytes / 1048576);
}

static mix_mode mode_take(args *a) {
  mix_mode mode = MIX_PLAIN;
  for (mix_mode other = MIX_WRAPPED; other <= MIX_EPOCHS; other++) {
    char flag[16];
    snprintf(flag, sizeof flag, "--%s", mode_names[other]);
    if (!args_take_flag(a, flag)) {
      continue;
    }
    if (mode != MIX_PLAIN) {
      args_refuse(a, "a second mode", flag);
    }
    mode = other;
  }
  return mode;
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv,
                     "lifetime_mix [--wrapped|--annotated|--epochs] [--helper] [--idle] "
                     "[--curve FILE] [BURSTS [TROUGH_MS [REQUESTS]]]");
  mix m = {.mode = mode_take(&a), .is_idle = args_take_flag(&a, "--idle"), .state = 42};
  bool has_helper = args_take_flag(&a, "--helper");
  const char *curve_path = args_take_value(&a, "--curve");
  uint32_t bursts = args_number32(&a, 0, 12);
  m.trough_ms = args_number(&a, 1, 1000);
  m.flying = args_number32(&a, 2, 2000);
  args_end(&a, 3);
  if (bursts > BURSTS_MAX) {
    args_refuse(&a, "too many bursts", a.values[0]);
  }
  if (m.mode != MIX_PLAIN || has_helper) {
    epochs_demand();
  }
  if (has_helper) {
    epochs_check(tslab_option_set("helper", "always"));
  }
  mix_open(&m, curve_path);

  for (uint32_t i = 0; i < bursts; i++) {
    burst_run(&m);
    m.ratios[i] = trough_run(&m);
  }
  curve_write(&m.curve);
  mix_report(&m, bursts);
}
