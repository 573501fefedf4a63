// What giving memory back costs a program that needs it again: bursts of blocks of 16 to 1,039
// bytes, with a pause after each. The processor time of all of the process's threads is told, and
// how long a burst takes. --never keeps what is idle as long as the program does not ask
// (`purge_delay_ms` of an hour, no helper); --large has blocks of 1 to 8 MiB.
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB (1u << 20)

typedef struct bursts {
  bool is_large;
  bool gives_nothing;
  uint32_t count;
  uint32_t blocks;
  uint64_t pause_ms;
  char **held;
  uint64_t busy_ns;
  struct rusage used;
} bursts;

static size_t block_bytes(const bursts *b, uint32_t *state) {
  return b->is_large ? MIB + random_below(state, 7 * MIB) : 16 + (random_next(state) & 1023);
}

static void burst_run(const bursts *b, uint32_t seed) {
  uint32_t state = seed;
  for (uint32_t i = 0; i < b->blocks; i++) {
    size_t bytes = block_bytes(b, &state);
    b->held[i] = malloc(bytes);
    memory_demand(b->held[i]);
    memset(b->held[i], 1, bytes);
  }
  for (uint32_t i = 0; i < b->blocks; i++) {
    free(b->held[i]);
  }
}

static void bursts_run(bursts *b) {
  for (uint32_t i = 0; i < b->count; i++) {
    uint64_t start = clock_ns();
    burst_run(b, i + 1);
    uint64_t end = clock_ns();
    b->busy_ns += end - start;
    clock_wait_until(end + b->pause_ms * 1000000u);
  }
  getrusage(RUSAGE_SELF, &b->used);
}

static double milliseconds(struct timeval time) {
  return (double)time.tv_sec * 1e3 + (double)time.tv_usec / 1e3;
}

static void bursts_report(const bursts *b) {
  double cpu_ms = milliseconds(b->used.ru_utime) + milliseconds(b->used.ru_stime);
  double busy_ms = (double)b->busy_ns / 1e6 / b->count;
  report_open("burst_cost");
  report_text("blocks", b->is_large ? "large" : "small");
  report_text("gives", b->gives_nothing ? "nothing" : "back");
  report_count("bursts", b->count);
  report_real("cpu_ms", cpu_ms / b->count);
  report_real("burst_ms", busy_ms);
  report_count("faults", (uint64_t)b->used.ru_minflt);
  report_close("%u bursts: %.2f ms each, %.2f ms of processors, %ld page faults in all", b->count,
               busy_ms, cpu_ms / b->count, b->used.ru_minflt);
}

static void give_nothing(void) {
  epochs_demand();
  epochs_check(tslab_option_set("helper", "never"));
  epochs_check(tslab_option_set("purge_delay_ms", "3600000"));
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "burst_cost [--never] [--large] [BURSTS [BLOCKS [PAUSE_MS]]]");
  bursts b = {.gives_nothing = args_take_flag(&a, "--never")};
  b.is_large = args_take_flag(&a, "--large");
  b.count = args_number32(&a, 0, 40);
  b.blocks = args_number32(&a, 1, b.is_large ? 25 : 200000);
  b.pause_ms = args_number(&a, 2, 150);
  args_end(&a, 3);
  if (b.gives_nothing) {
    give_nothing();
  }
  b.held = memory_map(b.blocks * sizeof *b.held);
  bursts_run(&b);
  bursts_report(&b);
}
