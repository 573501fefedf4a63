// From a monotonic buffer of std::pmr to an arena: the containers stay as they are.
#include <list>
#include <memory_resource>
#include <string>
#include <tslab.hpp>

#include "lines.h"

// --8<-- [start:before]
static size_t before() {
  std::pmr::monotonic_buffer_resource memory;
  std::pmr::list<std::pmr::string> lines{&memory};
  for (int i = 0; i < LINES; i++) lines.emplace_back("line " + std::to_string(i));
  size_t total = 0;
  for (const auto &line : lines) total += line.size();
  return total;
}
// --8<-- [end:before]

// --8<-- [start:after]
static size_t after() {
  tslab::arena memory{"request"};
  std::pmr::list<std::pmr::string> lines{memory.monotonic()};
  for (int i = 0; i < LINES; i++) lines.emplace_back("line " + std::to_string(i));
  size_t total = 0;
  for (const auto &line : lines) total += line.size();
  return total;
}
// --8<-- [end:after]

int main() {
  EXPECT(before() == after());
  return 0;
}
