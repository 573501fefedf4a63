// A request of 100 objects, of which each is written to, and its end; the ways to serve it that
// need no library, and the program around a table of such ways.
#pragma once

#include <cstdlib>
#include <iterator>
#include <memory_resource>
#include <string_view>

extern "C" {
#include "common/args.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/report.h"
}
#include "common/epochs.h"

namespace requests {

constexpr unsigned object_count = 100;
constexpr unsigned least_bytes = 16;
constexpr unsigned most_bytes = 512;
constexpr size_t size_count = 1u << 16;  // drawn beforehand: a draw would cost as much as a malloc

struct request {
  const uint16_t *sizes;
  char *objects[object_count];
};

// Neither this nor the next is inlined: so all ways run the same code. Where copies of one loop lie
// makes up to a fifth of its time.
__attribute__((noinline)) inline void objects_malloc(request &r) {
  for (unsigned i = 0; i < object_count; i++) {
    char *object = static_cast<char *>(malloc(r.sizes[i]));
    memory_demand(object);
    object[0] = 1;
    r.objects[i] = object;
  }
}

__attribute__((noinline)) inline void objects_free(const request &r) {
  for (char *object : r.objects) {
    free(object);
  }
}

// Not inlined: a container does not know which resource it was given, either.
__attribute__((noinline)) inline void objects_take(request &r,
                                                   std::pmr::memory_resource &resource) {
  for (unsigned i = 0; i < object_count; i++) {
    char *object = static_cast<char *>(resource.allocate(r.sizes[i]));
    object[0] = 1;
    r.objects[i] = object;
  }
}

inline void serve_malloc(request &r) {
  objects_malloc(r);
  objects_free(r);
}

template <class Body>
inline void stay_in(tslab_epoch epoch, Body body) {
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  body();
  epochs_check(tslab_scope_leave(&scope));
}

inline void serve_epoch_free(request &r) {
  tslab_epoch epoch = epochs_open("freed", nullptr);
  stay_in(epoch, [&] { serve_malloc(r); });
  epochs_close(epoch);
}

inline void serve_epoch_release(request &r) {
  tslab_epoch epoch = epochs_open("released", nullptr);
  stay_in(epoch, [&] { objects_malloc(r); });
  epochs_check(tslab_epoch_release(epoch));
}

inline void serve_monotonic(request &r) {
  std::pmr::monotonic_buffer_resource arena;
  objects_take(r, arena);
}

struct mode {
  std::string_view name;
  void (*serve)(request &r);  // null: its library was not there when this was built
  void (*start)();            // before the first request; null: nothing
};

struct modes {
  const mode *first;
  size_t count;
};

inline const mode &mode_take(args *a, const modes &list) {
  for (size_t i = 0; i < list.count; i++) {
    const mode &m = list.first[i];
    if (a->count > 0 && m.name == a->values[0]) {
      if (m.serve == nullptr) {
        args_refuse(a, "not built in", m.name.data());
      }
      a->count--;
      a->values++;
      return m;
    }
  }
  args_refuse(a, "not a mode", a->count > 0 ? a->values[0] : "");
}

inline uint16_t *sizes_draw() {
  auto *sizes = static_cast<uint16_t *>(memory_map(size_count * sizeof(uint16_t)));
  uint32_t state = 42;
  for (size_t i = 0; i < size_count; i++) {
    uint32_t bytes = least_bytes + random_below(&state, most_bytes - least_bytes + 1);
    sizes[i] = static_cast<uint16_t>(bytes);
  }
  return sizes;
}

inline uint64_t pass_ns(const mode &m, const uint16_t *sizes, uint64_t count) {
  uint64_t start = clock_ns();
  for (uint64_t i = 0; i < count; i++) {
    request r;
    r.sizes = sizes + i * object_count % (size_count - object_count);
    m.serve(r);
  }
  return clock_ns() - start;
}

// Reads `MODE [REQUESTS]`, serves them after a tenth to warm up, and reports.
inline void program_run(const char *program, args *a, const modes &list) {
  const mode &m = mode_take(a, list);
  uint64_t count = args_number(a, 0, 300000);
  args_end(a, 1);
  if (m.start != nullptr) {
    m.start();
  }
  const uint16_t *sizes = sizes_draw();

  pass_ns(m, sizes, count / 10 + 1);
  double ns = static_cast<double>(pass_ns(m, sizes, count)) / static_cast<double>(count);

  report_open(program);
  report_text("mode", m.name.data());
  report_count("requests", count);
  report_real("request_ns", ns);
  report_close("request of %u objects, %s: %.0f ns", object_count, m.name.data(), ns);
}

}  // namespace requests
