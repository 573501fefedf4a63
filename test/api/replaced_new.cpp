// A program may replace operator new itself: its own definition wins, and may be built on malloc.
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "blocks.h"

static size_t allocations, releases;

void *operator new(size_t size) {
  allocations++;
  void *block = malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void operator delete(void *block) noexcept {
  releases++;
  free(block);
}

void operator delete(void *block, size_t) noexcept {
  releases++;
  free(block);
}

int main() {
  size_t allocations_before = allocations, releases_before = releases;
  {
    std::vector<std::unique_ptr<std::string>> texts;
    for (int i = 0; i < 1000; i++) texts.push_back(std::make_unique<std::string>(100, 'x'));
  }
  CHECK_GE(allocations - allocations_before, 2000);
  CHECK_EQ(allocations - allocations_before, releases - releases_before);
  return 0;
}
