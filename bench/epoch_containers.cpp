// What a request builds of the standard library's containers (lines of text, a map of fields, a
// growing list of numbers) on the memory resources of an epoch, beside the same on the standard
// library's arena and on plain new. The epoch is closed, or released as an arena; or its scope is
// entered besides; or all requests share one.
#include "common/ways.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory_resource>
#include <string>
#include <tslab.hpp>

namespace {

constexpr unsigned line_count = 16, field_count = 24, number_count = 200;

struct fields {
  std::pmr::vector<std::pmr::string> lines;
  std::pmr::map<std::pmr::string, unsigned> places;
  std::pmr::vector<unsigned> numbers;

  explicit fields(std::pmr::memory_resource *memory)
      : lines(memory), places(memory), numbers(memory) {}
};

// Longer than what a string keeps in itself.
char names[field_count][32];

void start() {
  for (unsigned i = 0; i < field_count; i++) {
    std::snprintf(names[i], sizeof names[i], "%02u-Field-Of-Some-Length", i);
  }
}

void build(std::pmr::memory_resource *memory) {
  fields f(memory);
  for (unsigned i = 0; i < line_count; i++) {
    std::pmr::string line(memory);
    for (unsigned part = 0; part < 4; part++) {
      line += "and then some more; ";
    }
    f.lines.push_back(std::move(line));
  }
  for (unsigned i = 0; i < field_count; i++) {
    f.places.emplace(names[i], i);
  }
  for (unsigned i = 0; i < number_count; i++) {
    f.numbers.push_back(i);
  }
  if (f.lines.size() + f.places.size() + f.numbers.back() != line_count + field_count + 199) {
    std::fputs("a container lost what it was given\n", stderr);
    std::exit(1);
  }
}

void build_plain() { build(std::pmr::new_delete_resource()); }

void build_monotonic() {
  std::pmr::monotonic_buffer_resource memory;
  build(&memory);
}

void build_epoch() {
  tslab::epoch epoch{"containers"};
  build(epoch.resource());
}

void build_arena() {
  tslab::arena arena{"arena of containers"};
  build(arena.resource());
}

void build_pieces() {
  tslab::epoch epoch{"pieces"};
  build(epoch.monotonic());
}

void build_arena_pieces() {
  tslab::arena arena{"arena of pieces"};
  build(arena.monotonic());
}

void build_scope() {
  tslab::epoch epoch{"entered"};
  tslab::scope here{epoch};
  build(epoch.resource());
}

void build_shared() {
  static const tslab::epoch epoch{"shared"};
  build(epoch.resource());
}

template <void (*build_one)()>
void run(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    build_one();
  }
}

constexpr ways::way all[] = {
    {"plain", run<build_plain>, 1},   {"monotonic", run<build_monotonic>, 1},
    {"epoch", run<build_epoch>, 1},   {"arena", run<build_arena>, 1},
    {"pieces", run<build_pieces>, 1}, {"arena_pieces", run<build_arena_pieces>, 1},
    {"entered", run<build_scope>, 1}, {"shared", run<build_shared>, 1},
};

}  // namespace

int main(int argc, char **argv) {
  ways::program_run({"epoch_containers", start, all, std::size(all)}, argc, argv, 1000, 100);
}
