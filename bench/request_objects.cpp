// A request of 100 objects, of which each is written to, and its end: freed one by one, or all at
// once. Plain malloc and the standard library's arena run on any allocator, epochs on ours.
#include "common/request.hpp"

namespace {

constexpr requests::mode modes[] = {
    {"malloc", requests::serve_malloc, nullptr},
    {"monotonic", requests::serve_monotonic, nullptr},
    {"epoch_free", requests::serve_epoch_free, epochs_demand},
    {"epoch_release", requests::serve_epoch_release, epochs_demand},
};

}  // namespace

int main(int argc, char **argv) {
  args a =
      args_open(argc, argv, "request_objects malloc|monotonic|epoch_free|epoch_release [REQUESTS]");
  requests::program_run("request_objects", &a, {modes, std::size(modes)});
}
