// Sessions that are open at once: a server comes to a random one with each request, which makes
// 1 KiB of objects of 16 to 512 bytes that stay as long as the session. The first request after a
// session has come to its size, between half of KIB and one and a half of it, ends it and begins
// another one. There are so many that they hold 64 MiB, and more where KIB is little. --wrapped
// gives each session an epoch; the label comes to share as some have ended. --released releases it
// in place of freeing its objects. With --passing three of five objects end with their request, and
// do not count towards the session's size. What does an object cost, and what is resident over what
// the program has asked for and not given back?
#include "common/args.h"
#include "common/clock.h"
#include "common/epochs.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"

#include <stdlib.h>

#define LIVE_BYTES (64u << 20)
#define REQUEST_BYTES 1024u
#define LEAST_BYTES 16u
#define MOST_BYTES 512u
#define MOST_KIB 1024u
#define PASSING 3u  // of so many:
#define PASSING_OF 5u

typedef struct object {
  struct object *before;
} object;

typedef struct session {
  object *last;
  uint32_t bytes;
  uint32_t most;  // bytes: then it ends
  tslab_epoch epoch;
} session;

typedef struct server {
  bool is_wrapped;
  bool is_released;
  bool has_passing;
  session *sessions;
  uint32_t count;
  uint32_t session_bytes;
  uint32_t state;
  uint64_t live_bytes;
  uint64_t objects;
} server;

static void session_begin(server *s, session *one) {
  uint32_t most = s->session_bytes / 2 + random_below(&s->state, s->session_bytes);
  *one = (session){.most = most};
  if (s->is_wrapped) {
    one->epoch = epochs_open("session", NULL);
  }
}

static void object_make(object **last, uint32_t bytes) {
  object *made = malloc(bytes);
  memory_demand(made);
  made->before = *last;
  *last = made;
}

static void objects_free(object **last) {
  while (*last != NULL) {
    object *before = (*last)->before;
    free(*last);
    *last = before;
  }
}

static void session_work(server *s, session *one) {
  object *passing = NULL;
  for (uint32_t made_bytes = 0; made_bytes < REQUEST_BYTES;) {
    uint32_t bytes = LEAST_BYTES + random_below(&s->state, MOST_BYTES - LEAST_BYTES + 1);
    bool passes = s->has_passing && random_below(&s->state, PASSING_OF) < PASSING;
    object_make(passes ? &passing : &one->last, bytes);
    one->bytes += passes ? 0 : bytes;
    made_bytes += bytes;
    s->objects++;
  }
  objects_free(&passing);
}

static void session_end(const server *s, session *one) {
  if (s->is_released) {
    epochs_check(tslab_epoch_release(one->epoch));
    return;
  }
  objects_free(&one->last);
  if (s->is_wrapped) {
    epochs_close(one->epoch);
  }
}

static void request_in(server *s, session *one) {
  if (!s->is_wrapped) {
    session_work(s, one);
    return;
  }
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, one->epoch));
  session_work(s, one);
  epochs_check(tslab_scope_leave(&scope));
}

static void request_serve(server *s) {
  session *one = &s->sessions[random_below(&s->state, s->count)];
  s->live_bytes -= one->bytes;
  if (one->bytes >= one->most) {
    session_end(s, one);
    session_begin(s, one);
  }
  request_in(s, one);
  s->live_bytes += one->bytes;
}

int main(int argc, char **argv) {
  args a =
      args_open(argc, argv, "epoch_sessions [--wrapped | --released] [--passing] [KIB [REQUESTS]]");
  server s = {.state = 42};
  s.is_wrapped = args_take_flag(&a, "--wrapped");
  s.is_released = args_take_flag(&a, "--released");
  s.has_passing = args_take_flag(&a, "--passing");
  uint32_t kib = args_number32(&a, 0, 8);
  uint64_t requests = args_number(&a, 1, 1000000);
  args_end(&a, 2);
  if (s.is_wrapped && s.is_released) {
    args_refuse(&a, "not both", "--wrapped --released");
  }
  if (kib == 0 || kib > MOST_KIB) {
    args_refuse(&a, "KIB is 1 to 1024, not", a.values[0]);
  }
  s.session_bytes = kib << 10;
  const char *mode = s.is_released ? "released" : s.is_wrapped ? "wrapped" : "plain";
  s.is_wrapped = s.is_wrapped || s.is_released;
  if (s.is_wrapped) {
    epochs_demand();
    // The library says once that so many are open, which is on purpose here.
    epochs_check(tslab_option_set("on_error", "ignore"));
  }
  s.count = LIVE_BYTES / s.session_bytes * 2;  // each has half of its size, on average
  s.sessions = memory_map(s.count * sizeof *s.sessions);
  memory_touch((char *)s.sessions, s.count * sizeof *s.sessions);
  uint64_t before = memory_resident_bytes(), start = clock_ns();
  for (uint32_t i = 0; i < s.count; i++) {
    session_begin(&s, &s.sessions[i]);
  }
  for (uint64_t i = 0; i < requests; i++) {
    request_serve(&s);
  }
  double ns = (double)(clock_ns() - start) / (double)s.objects;
  double over = ((double)memory_resident_bytes() - (double)before) / (double)s.live_bytes;
  report_open("epoch_sessions");
  report_text("mode", mode);
  report_real("object_ns", ns);
  report_real("resident_over_live", over);
  report_close("%s: %.1f ns an object, resident %.2f of %.1f MiB live", mode, ns, over,
               (double)s.live_bytes / 1048576);
}
