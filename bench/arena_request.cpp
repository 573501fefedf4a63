// A request of 100 objects of 16 to 512 bytes, of which each is written to, and its end, beside the
// arenas that programs use for it: the standard library's, talloc, APR's pools, obstack. All but
// the epochs run on any allocator, from which the arenas take their chunks.
#include "arena/libraries.hpp"

namespace {

void serve_pool(requests::request &r) {
  std::pmr::unsynchronized_pool_resource arena;
  requests::objects_take(r, arena);
}

const requests::mode modes[] = {
    {"malloc", requests::serve_malloc, nullptr},
    {"epoch_free", requests::serve_epoch_free, epochs_demand},
    {"epoch_release", requests::serve_epoch_release, epochs_demand},
    {"monotonic", requests::serve_monotonic, nullptr},
    {"pool", serve_pool, nullptr},
    {"talloc", arena_serve_talloc, nullptr},
    {"apr", arena_serve_apr, arena_start_apr},
    {"obstack", arena_serve_obstack, nullptr},
};

}  // namespace

int main(int argc, char **argv) {
  args a = args_open(argc, argv,
                     "arena_request malloc|epoch_free|epoch_release|monotonic|pool|talloc|apr|"
                     "obstack [REQUESTS]");
  requests::program_run("arena_request", &a, {modes, std::size(modes)});
}
