// grower: requests whose objects outlive them, allocated in functions that a profile must name.
//   grower once   one request with many objects, then waits until its input ends
//   grower lives  blocks that stay, are freed at once, and live 50 ms; waits likewise
//   grower on     requests until its input ends, each with an object that stays
// Says its readiness on its output.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tslab.h>
#include <unistd.h>

enum {
  HEADERS = 8000,
  NAMES = 4000,
  ENTRIES = 4000,
  BODIES = 4,
  PASSING = 200,
  STAY = 1 << 20,
  SLOTS = 250,
  TURNS = 16
};

static void *kept[STAY];
static size_t kept_count;

// What is done with a result keeps a call from becoming a jump, which no stack would show.
static void *keep(void *block, size_t bytes) {
  if (block != NULL) memset(block, 1, bytes);
  if (kept_count < STAY) kept[kept_count++] = block;
  return block;
}

__attribute__((noinline)) static void *parse_header(void) {
  void *header = malloc(128);  // line: parse_header
  return keep(header, 128);
}

__attribute__((noinline)) static void *copy_name(void) {
  void *name = malloc(256);  // line: copy_name
  return keep(name, 256);
}

__attribute__((noinline)) static void *cache_entry(void) {
  void *entry = calloc(1, 512);  // line: cache_entry
  return keep(entry, 512);
}

__attribute__((noinline)) static void *read_body(void) {
  void *body = malloc((size_t)1 << 20);  // line: read_body
  return keep(body, (size_t)1 << 20);
}

__attribute__((noinline)) static size_t handle(unsigned headers, unsigned names) {
  size_t done = 0;
  for (unsigned i = 0; i < headers; i++) done += parse_header() != NULL;
  for (unsigned i = 0; i < names; i++) done += copy_name() != NULL;
  return done;
}

static size_t request(unsigned headers, unsigned names) {
  tslab_epoch epoch = tslab_epoch_open("GET /upload", NULL);
  tslab_scope here;
  tslab_scope_enter(&here, epoch);
  size_t done = handle(headers, names);
  tslab_scope_leave(&here);
  tslab_epoch_close(epoch);
  return done;
}

static void pass(void) {
  size_t first = kept_count;
  request(PASSING, 0);
  while (kept_count > first) free(kept[--kept_count]);
}

// A process begins to sample when its threads come by a slow path for the second time.
static void begin(void) {
  for (unsigned i = 0; i < 10; i++) {
    pass();
    usleep(2000);
  }
}

static void run_once(void) {
  begin();
  request(HEADERS, NAMES);
  for (unsigned i = 0; i < ENTRIES; i++) cache_entry();
  for (unsigned i = 0; i < BODIES; i++) read_body();
  for (unsigned i = 0; i < ENTRIES / 2; i++) free(kept[HEADERS + NAMES + i]);
}

__attribute__((noinline)) static size_t use_scratch(void) {
  volatile char *scratch = malloc(1024);  // line: use_scratch
  if (scratch != NULL) scratch[0] = 1;
  free((void *)scratch);
  return scratch != NULL;
}

__attribute__((noinline)) static void *open_session(void) {
  void *session = malloc(2048);  // line: open_session
  return keep(session, 2048);
}

// Of each block as many are freed as are allocated, but for those that stay.
static void run_lives(void) {
  begin();
  for (unsigned i = 0; i < ENTRIES; i++) cache_entry();
  for (unsigned turn = 0; turn < TURNS; turn++) {
    for (unsigned i = 0; i < SLOTS; i++) {
      use_scratch();
      open_session();
    }
    usleep(50000);
    while (kept_count != ENTRIES) free(kept[--kept_count]);
  }
}

static int input_ends(int wait_ms) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, wait_ms) != 0;
}

static void run_on(void) {
  do {
    pass();
    cache_entry();
  } while (!input_ends(1));
}

int main(int count, char **arguments) {
  const char *way = count == 2 ? arguments[1] : "";
  int goes_on = strcmp(way, "on") == 0;
  if (strcmp(way, "once") == 0) run_once();
  if (strcmp(way, "lives") == 0) run_lives();
  puts("ready");
  fflush(stdout);
  if (goes_on) run_on();
  return input_ends(-1) ? 0 : 1;
}
