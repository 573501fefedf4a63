// include/tslab.hpp: epochs that are reset or over, and objects that end with their arena.
#include <tslab.hpp>

#include <stdexcept>
#include <string>
#include <vector>

#include "epochs.hpp"

namespace {

// Frame after frame in the same memory; the hardened build chooses places at random.
void reset_test() {
  tslab::arena owner{"frames"};
  const void *first = nullptr;
  int ran = 0;
  for (int frame = 0; frame < 3; frame++) {
    tslab::scope in{owner};
    owner.defer([&ran] { ran++; });
    const void *object = tslab_epoch_malloc(owner.id(), 100);
    if (first == nullptr) first = object;
    if (!TSL_SECURE) CHECK(object == first);
    owner.reset();
    CHECK_EQ(ran, frame + 1);
    CHECK_EQ(live_in(owner), 0);
  }
  owner.release();
  CHECK_EQ(error_of([&owner] { owner.reset(); }), ESTALE);
}

void on_over_test() {
  tslab_epoch told = TSLAB_NO_EPOCH, id;
  tslab::unique_ptr<int> survivor;
  {
    tslab::epoch owner{"told"};
    id = owner.id();
    owner.on_over([](tslab_epoch over, void *to) { *static_cast<tslab_epoch *>(to) = over; },
                  &told);
    survivor = tslab::make<int>(owner, 1);
  }
  CHECK_EQ(told, TSLAB_NO_EPOCH);
  survivor.reset();
  CHECK_EQ(told, id);
  tslab::arena owner{"over"};
  owner.release();
  CHECK_EQ(error_of([&owner] { owner.on_over(nullptr, nullptr); }), ESTALE);
}

// ---- Objects of an arena ----

struct noted {
  std::vector<int> *notes;
  int number;
  std::string text = std::string(100, 'n');
  noted(std::vector<int> *all, int which) : notes(all), number(which) {
    if (which < 0) throw std::runtime_error("no such number");
  }
  noted(const noted &) = delete;
  noted &operator=(const noted &) = delete;
  ~noted() { notes->push_back(number); }
};

struct alignas(256) wide {
  char bytes[256];
  ~wide() { CHECK_EQ(reinterpret_cast<uintptr_t>(this) % 256, 0); }
};

// The last one first, once, whichever way the arena ends.
void make_test() {
  std::vector<int> notes;
  notes.reserve(100);
  tslab_epoch closed;
  {
    tslab::arena owner{"made"};
    for (int i = 0; i < 3; i++) CHECK_EQ(owner.make<noted>(&notes, i).number, i);
    CHECK_EQ(tslab_epoch_of(&owner.make<const noted>(&notes, 3)), owner.id());
    owner.make<wide>();
    CHECK_EQ(live_in(owner), 5);
    owner.reset();
    CHECK(notes == (std::vector<int>{3, 2, 1, 0}));
    owner.make<noted>(&notes, 4);
  }
  CHECK(notes == (std::vector<int>{3, 2, 1, 0, 4}));
  {
    tslab::arena owner{"closed"};
    closed = owner.id();
    owner.make<noted>(&notes, 5);
    CHECK_EQ(owner.close().objects, 0);
    CHECK_EQ(notes.back(), 5);
  }
  CHECK(is_over(closed));
}

// Only its memory: nothing is registered for the end, where it would be allocated at home.
void make_trivial_test() {
  tslab::arena owner{"trivial"};
  size_t before = tslab::stats().live_objects;
  int &number = owner.make<int>(42);
  CHECK(number == 42 && tslab_epoch_of(&number) == owner.id());
  CHECK_EQ(tslab::stats().live_objects, before + 1);
  CHECK_EQ(owner.close().objects, 1);
  tslab_free(&number);
}

void make_throws_test() {
  std::vector<int> notes;
  tslab::arena owner{"throws"};
  bool is_thrown = false;
  try {
    owner.make<noted>(&notes, -1);
  } catch (const std::runtime_error &) {
    is_thrown = true;
  }
  CHECK(is_thrown && notes.empty());
  CHECK_EQ(live_in(owner), 0);
  owner.close();
  CHECK_EQ(refusal_of([&] { owner.make<noted>(&notes, 1); }), ESTALE);
  CHECK(notes.empty());
}

}  // namespace

int main() {
  tests_run({reset_test, on_over_test, make_test, make_trivial_test, make_throws_test});
  return 0;
}
