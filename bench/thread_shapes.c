// How programs use threads, one mode each:
//   free_only          one thread only frees, what all others allocate
//   producer_consumer  half of the threads allocate messages; the others free them, and keep a
//                      table of blocks of their own
//   churn              threads live for a moment: each frees what one before it left and leaves as
//                      much, so that every block dies in another thread than it was born in
//   sleeping           a pool of threads has a burst, frees it and sleeps, while one thread goes on
//   sharing            threads write small blocks of their own, after each has freed one of some
//                      that one thread had allocated side by side
// Resident bytes are those beyond what the process held before its first block.
#include "common/args.h"
#include "common/blocks.h"
#include "common/clock.h"
#include "common/mailbox.h"
#include "common/queue.h"
#include "common/report.h"
#include "common/sharing.h"
#include "common/sizes.h"
#include "common/threads.h"

#include <stdio.h>

#define PARCEL_BLOCKS 255u
#define TABLE_BLOCKS 1000u

typedef struct parcel {
  char *blocks[PARCEL_BLOCKS];
} parcel;

typedef struct outcome {
  const char *mode;
  unsigned threads;
  uint64_t count;
  double scale;  // how many of what is counted make one of the unit
  const char *unit;
  uint64_t ns;
} outcome;

static size_t any_bytes(uint32_t *state) { return size_skewed(state, 16, 6); }

static parcel *parcel_make(uint32_t *state) {
  parcel *p = malloc(sizeof *p);
  memory_demand(p);
  for (unsigned i = 0; i < PARCEL_BLOCKS; i++) {
    p->blocks[i] = block_make(any_bytes(state)).start;
  }
  return p;
}

static void parcel_drop(parcel *p) {
  for (unsigned i = 0; p != NULL && i < PARCEL_BLOCKS; i++) {
    free(p->blocks[i]);
  }
  free(p);
}

static uint64_t resident_over(uint64_t before) {
  uint64_t resident = memory_resident_bytes();
  return resident < before ? 0 : resident - before;
}

static double outcome_rate(const outcome *o) {
  return (double)o->count / o->scale * 1e9 / (double)o->ns;
}

static void shape_open(const char *mode, unsigned threads) {
  report_open("thread_shapes");
  report_text("mode", mode);
  report_count("threads", threads);
}

static void outcome_open(const outcome *o) {
  shape_open(o->mode, o->threads);
  report_count("count", o->count);
  report_real("rate", outcome_rate(o));
  report_text("unit", o->unit);
}

// ---- free_only, producer_consumer ----

typedef struct stream {
  queue *queues;  // one a consumer
  unsigned producers;
  unsigned consumers;
  block *tables;     // TABLE_BLOCKS a consumer; NULL: consumers only free
  uint64_t parcels;  // of each producer
} stream;

static void stream_consume(stream *s, unsigned index) {
  uint32_t state = random_seed(43, index);
  block *table = s->tables == NULL ? NULL : &s->tables[index * TABLE_BLOCKS];
  for (uint64_t i = 0; i < s->parcels * (s->producers / s->consumers); i++) {
    parcel_drop(queue_pop(&s->queues[index]));
    for (unsigned n = 0; table != NULL && n < PARCEL_BLOCKS; n++) {
      block_replace(&table[random_below(&state, TABLE_BLOCKS)], any_bytes(&state));
    }
  }
  for (unsigned i = 0; table != NULL && i < TABLE_BLOCKS; i++) {
    free(table[i].start);
  }
}

static void stream_thread(void *context, unsigned index) {
  stream *s = context;
  if (index < s->consumers) {
    stream_consume(s, index);
    return;
  }
  uint32_t state = random_seed(42, index);
  for (uint64_t i = 0; i < s->parcels; i++) {
    queue_push(&s->queues[index % s->consumers], parcel_make(&state));
  }
}

static void stream_run(const char *mode, stream *s, uint64_t blocks) {
  s->parcels = blocks / PARCEL_BLOCKS / s->producers + 1;
  s->queues = memory_map(s->consumers * sizeof *s->queues);
  for (unsigned i = 0; i < s->consumers; i++) {
    queue_open(&s->queues[i]);
  }
  unsigned threads = s->producers + s->consumers;
  uint64_t before = memory_resident_bytes();
  uint64_t ns = threads_run(threads, stream_thread, s);
  uint64_t resident = resident_over(before);
  outcome o = {mode, threads, s->parcels * s->producers * PARCEL_BLOCKS, 1e6, "Mblocks/s", ns};
  outcome_open(&o);
  report_count("resident_bytes", resident);
  report_close("%s, %u threads: %.2f M blocks/s, %.1f MiB resident after all are freed", mode,
               threads, outcome_rate(&o), (double)resident / 1048576);
}

static void free_only_run(args *a) {
  unsigned threads = args_threads(a, 0, 4);
  uint64_t blocks = args_number(a, 1, 10000000);
  args_end(a, 2);
  if (threads < 2) {
    args_refuse(a, "wants two threads", a->values[0]);
  }
  stream s = {.producers = threads - 1, .consumers = 1};
  stream_run("free_only", &s, blocks);
}

static void producer_consumer_run(args *a) {
  unsigned pairs = (args_threads(a, 0, 2) + 1) / 2;
  uint64_t blocks = args_number(a, 1, 10000000);
  args_end(a, 2);
  stream s = {.producers = pairs, .consumers = pairs};
  s.tables = memory_map(pairs * TABLE_BLOCKS * sizeof *s.tables);
  stream_run("producer_consumer", &s, blocks);
}

// ---- churn ----

typedef struct town {
  mailbox heirless;
  uint64_t lives;  // of each lane
} town;

typedef struct life {
  town *town;
  uint32_t state;
} life;

static void *life_main(void *argument) {
  life *l = argument;
  parcel_drop(mailbox_swap(&l->town->heirless, parcel_make(&l->state)));
  return NULL;
}

static void lane_thread(void *context, unsigned index) {
  life l = {context, random_seed(42, index)};
  for (uint64_t i = 0; i < l.town->lives; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, life_main, &l) != 0 || pthread_join(thread, NULL) != 0) {
      fputs("cannot run a thread\n", stderr);
      exit(1);
    }
  }
}

static void churn_run(args *a) {
  unsigned lanes = args_threads(a, 0, 2);
  uint64_t lives = args_number(a, 1, 30000) / lanes + 1;
  args_end(a, 2);
  uint64_t before = memory_resident_bytes();
  town t = {.lives = lives / 10 + 1};
  uint64_t ns = threads_run(lanes, lane_thread, &t);
  uint64_t early = resident_over(before);
  uint64_t done = t.lives;
  t.lives = lives;
  ns += threads_run(lanes, lane_thread, &t);
  uint64_t late = resident_over(before);
  done += t.lives;

  outcome o = {"churn", lanes, done * lanes, 1e3, "kthreads/s", ns};
  outcome_open(&o);
  report_count("early_bytes", early);
  report_count("late_bytes", late);
  report_close(
      "churn, %u lanes: %.2f thousand threads/s, %.1f MiB resident after a tenth, %.1f "
      "at the end",
      lanes, outcome_rate(&o), (double)early / 1048576, (double)late / 1048576);
}

// ---- sleeping ----

typedef struct pool {
  pthread_barrier_t asleep;  // all bursts are over
  pthread_barrier_t over;
  unsigned sleepers;
  uint64_t parcels;  // of each thread's burst
  parcel **slots;    // for them
  uint64_t wait_ms;
  uint64_t before;
  uint64_t asleep_bytes;
  uint64_t waited_bytes;
  uint64_t ended_bytes;
  uint64_t later_bytes;
} pool;

static void pool_burst(const pool *p, parcel **parcels, uint32_t *state) {
  for (uint64_t i = 0; i < p->parcels; i++) {
    parcels[i] = parcel_make(state);
  }
  for (uint64_t i = 0; i < p->parcels; i++) {
    parcel_drop(parcels[i]);
  }
}

static void pool_go_on(pool *p) {
  uint32_t state = random_seed(43, 0);
  uint64_t start = clock_ns();
  p->asleep_bytes = resident_over(p->before);
  for (uint64_t ms = 1; ms <= p->wait_ms; ms++) {
    parcel_drop(parcel_make(&state));
    clock_wait_until(start + ms * 1000000u);
  }
  p->waited_bytes = resident_over(p->before);
}

static void pool_thread(void *context, unsigned index) {
  pool *p = context;
  uint32_t state = random_seed(42, index);
  if (index != 0) {
    pool_burst(p, &p->slots[(index - 1) * p->parcels], &state);
  }
  pthread_barrier_wait(&p->asleep);
  if (index == 0) {
    pool_go_on(p);
  }
  pthread_barrier_wait(&p->over);
}

static void pool_run(pool *p) {
  pthread_barrier_init(&p->asleep, NULL, p->sleepers + 1);
  pthread_barrier_init(&p->over, NULL, p->sleepers + 1);
  p->slots = memory_map(p->sleepers * p->parcels * sizeof *p->slots);
  p->before = memory_resident_bytes();
  threads_run(p->sleepers + 1, pool_thread, p);
  p->ended_bytes = resident_over(p->before);
  clock_wait_until(clock_ns() + p->wait_ms * 1000000u);
  p->later_bytes = resident_over(p->before);
}

static void pool_report(const pool *p) {
  shape_open("sleeping", p->sleepers);
  report_count("blocks", p->parcels * PARCEL_BLOCKS * p->sleepers);
  report_count("wait_ms", p->wait_ms);
  report_count("asleep_bytes", p->asleep_bytes);
  report_count("waited_bytes", p->waited_bytes);
  report_count("ended_bytes", p->ended_bytes);
  report_count("later_bytes", p->later_bytes);
  report_close(
      "%u threads asleep: %.1f MiB resident at once, %.1f after %llu ms, %.1f when they "
      "ended, %.1f as long after that",
      p->sleepers, (double)p->asleep_bytes / 1048576, (double)p->waited_bytes / 1048576,
      (unsigned long long)p->wait_ms, (double)p->ended_bytes / 1048576,
      (double)p->later_bytes / 1048576);
}

static void sleeping_run(args *a) {
  pool p = {.sleepers = args_threads(a, 0, 16)};
  p.parcels = args_number(a, 1, 40000) / PARCEL_BLOCKS + 1;
  p.wait_ms = args_number(a, 2, 2000);
  args_end(a, 3);
  if (p.sleepers == THREADS_MAX) {
    args_refuse(a, "leaves no thread that stays awake", a->values[0]);
  }
  pool_run(&p);
  pool_report(&p);
}

// ---- sharing ----

static void sharing_mode_run(args *a) {
  sharing s = sharing_open("thread_shapes", a);
  char *handed[THREADS_MAX];
  for (unsigned i = 0; i < s.threads; i++) {
    handed[i] = block_make(8).start;
  }
  s.handed = handed;
  uint64_t ns = sharing_run_ns(&s);
  outcome o = {"sharing", s.threads, s.threads * s.objects * s.writes, 1e6, "Mwrites/s", ns};
  outcome_open(&o);
  report_close("sharing, %u threads: %.1f M writes/s", s.threads, outcome_rate(&o));
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(args *a);
  } modes[] = {{"free_only", free_only_run},
               {"producer_consumer", producer_consumer_run},
               {"churn", churn_run},
               {"sleeping", sleeping_run},
               {"sharing", sharing_mode_run}};
  args a = args_open(argc, argv,
                     "thread_shapes free_only|producer_consumer [THREADS [BLOCKS]]\n"
                     "       thread_shapes churn [LANES [THREADS]]\n"
                     "       thread_shapes sleeping [THREADS [BLOCKS_OF_EACH [WAIT_MS]]]\n"
                     "       thread_shapes sharing [THREADS [OBJECTS [WRITES]]]");
  for (unsigned i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    if (args_take_flag(&a, modes[i].name)) {
      modes[i].run(&a);
      return 0;
    }
  }
  args_refuse(&a, "no such mode", a.count == 0 ? "none given" : a.values[0]);
}
