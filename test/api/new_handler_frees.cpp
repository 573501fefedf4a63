// A new-handler that makes room: the loop of operator new goes on and succeeds.
//
// The program starts itself under a limit of address space, so that memory can run out.
#include <sys/resource.h>

#include <new>

#include "../child.h"
#include "blocks.h"

namespace {

constexpr size_t kPart = 16 * MIB;
constexpr int kMostParts = 64;

void *parts[kMostParts];
int calls;

void all_parts_take() {
  for (void *&part : parts) part = malloc(kPart);
  CHECK(parts[0] != nullptr && parts[kMostParts - 1] == nullptr);
}

void all_parts_release() {
  CHECK_THAT(++calls == 1, "%s", "what the handler freed was not enough");
  for (void *&part : parts) {
    free(part);
    part = nullptr;
  }
}

void *allocate(bool throws, size_t size) {
  return throws ? ::operator new(size) : ::operator new(size, std::nothrow);
}

void room_test(bool throws) {
  calls = 0;
  all_parts_take();
  std::set_new_handler(all_parts_release);
  void *block = allocate(throws, 3 * kPart);
  CHECK(block != nullptr);
  CHECK_EQ(calls, 1);
  ::operator delete(block);
}

void limit_set(const void *) {
  rlimit limit{512 * MIB, 512 * MIB};
  CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc == 2) {
    room_test(true);
    room_test(false);
    return 0;
  }
  struct child child;
  child_run(&child, argv[0], "limited", limit_set, nullptr);
  CHECK_THAT(child_ended_well(&child), "status 0x%x: %s", child.status, child.errors);
  return 0;
}
