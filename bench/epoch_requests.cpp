// A request of 100 objects of 16 to 512 bytes, of which each is written to, in every way that it
// can meet epochs, beside the same without: in an epoch of its own or in one that all requests
// enter, freed one by one at the end or each at once, freed after the close, or released.
#include "common/request.hpp"
#include "common/ways.hpp"

namespace {

using requests::request;

const uint16_t *sizes;
tslab_epoch long_freed;
tslab_epoch long_at_once;

__attribute__((noinline)) void serve_at_once(request &r) {
  for (unsigned i = 0; i < requests::object_count; i++) {
    char *object = static_cast<char *>(malloc(r.sizes[i]));
    memory_demand(object);
    object[0] = 1;
    free(object);
  }
}

void serve_own_at_once(request &r) {
  tslab_epoch epoch = epochs_open("at once", nullptr);
  requests::stay_in(epoch, [&] { serve_at_once(r); });
  epochs_close(epoch);
}

void serve_long(request &r) {
  requests::stay_in(long_freed, [&] { requests::serve_malloc(r); });
}

void serve_long_at_once(request &r) {
  requests::stay_in(long_at_once, [&] { serve_at_once(r); });
}

void serve_freed_late(request &r) {
  tslab_epoch epoch = epochs_open("freed late", nullptr);
  requests::stay_in(epoch, [&] { requests::objects_malloc(r); });
  epochs_close(epoch);
  requests::objects_free(r);
}

template <void (*serve)(request &)>
void run(uint64_t count) {
  requests::pass_ns({"", serve, nullptr}, sizes, count);
}

void start() {
  sizes = requests::sizes_draw();
  long_freed = epochs_open("long", nullptr);
  long_at_once = epochs_open("long at once", nullptr);
}

constexpr ways::way all[] = {
    {"plain", run<requests::serve_malloc>, 0},
    {"plain_at_once", run<serve_at_once>, 1},
    {"monotonic", run<requests::serve_monotonic>, 2},
    {"own", run<requests::serve_epoch_free>, 0},
    {"own_at_once", run<serve_own_at_once>, 1},
    {"own_freed_late", run<serve_freed_late>, 0},
    {"long", run<serve_long>, 0},
    {"long_at_once", run<serve_long_at_once>, 1},
    {"released", run<requests::serve_epoch_release>, 2},
};

}  // namespace

int main(int argc, char **argv) {
  ways::program_run({"epoch_requests", start, all, std::size(all)}, argc, argv, 3000, 100);
}
