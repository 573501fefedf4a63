// A request of 100 objects, of which each is written to, and its end: freed one by one, or all at
// once. Plain malloc and the standard library's arena run on any allocator, epochs on ours.
#include <cstdlib>
#include <cstring>
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

namespace {

constexpr unsigned object_count = 100;
constexpr unsigned least_bytes = 16;
constexpr unsigned most_bytes = 512;
constexpr size_t size_count = 1u << 16;  // drawn beforehand: a draw would cost as much as a malloc

struct request {
  const uint16_t *sizes;
  char *objects[object_count];
};

void objects_malloc(request &r) {
  for (unsigned i = 0; i < object_count; i++) {
    char *object = static_cast<char *>(malloc(r.sizes[i]));
    memory_demand(object);
    object[0] = 1;
    r.objects[i] = object;
  }
}

void objects_free(const request &r) {
  for (char *object : r.objects) {
    free(object);
  }
}

// Not inlined: a container does not know which resource it was given, either.
__attribute__((noinline)) void objects_take(request &r, std::pmr::memory_resource &resource) {
  for (unsigned i = 0; i < object_count; i++) {
    char *object = static_cast<char *>(resource.allocate(r.sizes[i]));
    object[0] = 1;
    r.objects[i] = object;
  }
}

void serve_malloc(request &r) {
  objects_malloc(r);
  objects_free(r);
}

void serve_epoch_free(request &r) {
  tslab_epoch epoch = epochs_open("request", nullptr);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  objects_malloc(r);
  objects_free(r);
  epochs_check(tslab_scope_leave(&scope));
  epochs_close(epoch);
}

void serve_epoch_release(request &r) {
  tslab_epoch epoch = epochs_open("request", nullptr);
  tslab_scope scope;
  epochs_check(tslab_scope_enter(&scope, epoch));
  objects_malloc(r);
  epochs_check(tslab_scope_leave(&scope));
  epochs_check(tslab_epoch_release(epoch));
}

void serve_monotonic(request &r) {
  std::pmr::monotonic_buffer_resource arena;
  objects_take(r, arena);
}

struct mode {
  std::string_view name;
  void (*serve)(request &r);
  bool has_epochs;
};

constexpr mode modes[] = {
    {"malloc", serve_malloc, false},
    {"monotonic", serve_monotonic, false},
    {"epoch_free", serve_epoch_free, true},
    {"epoch_release", serve_epoch_release, true},
};

const mode &mode_take(args *a) {
  for (const mode &m : modes) {
    if (a->count > 0 && m.name == a->values[0]) {
      a->count--;
      a->values++;
      return m;
    }
  }
  args_refuse(a, "not a mode", a->count > 0 ? a->values[0] : "");
}

uint16_t *sizes_draw() {
  auto *sizes = static_cast<uint16_t *>(memory_map(size_count * sizeof(uint16_t)));
  uint32_t state = 42;
  for (size_t i = 0; i < size_count; i++) {
    uint32_t bytes = least_bytes + random_below(&state, most_bytes - least_bytes + 1);
    sizes[i] = static_cast<uint16_t>(bytes);
  }
  return sizes;
}

uint64_t pass_ns(const mode &m, const uint16_t *sizes, uint64_t requests) {
  uint64_t start = clock_ns();
  for (uint64_t i = 0; i < requests; i++) {
    request r;
    r.sizes = sizes + i * object_count % (size_count - object_count);
    m.serve(r);
  }
  return clock_ns() - start;
}

}  // namespace

int main(int argc, char **argv) {
  args a =
      args_open(argc, argv, "request_objects malloc|monotonic|epoch_free|epoch_release [REQUESTS]");
  const mode &m = mode_take(&a);
  uint64_t requests = args_number(&a, 0, 300000);
  args_end(&a, 1);
  if (m.has_epochs) {
    epochs_demand();
  }
  const uint16_t *sizes = sizes_draw();

  pass_ns(m, sizes, requests / 10 + 1);
  double ns = static_cast<double>(pass_ns(m, sizes, requests)) / static_cast<double>(requests);

  report_open("request_objects");
  report_text("mode", m.name.data());
  report_count("requests", requests);
  report_real("request_ns", ns);
  report_close("request of %u objects, %s: %.0f ns", object_count, m.name.data(), ns);
}
