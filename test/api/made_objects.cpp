// include/tslab.hpp: objects made in an epoch, each with its owner.
#include <tslab.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "epochs.hpp"

namespace {

struct Left {
  virtual ~Left() = default;
  int left = 1;
};
struct Right {
  virtual ~Right() = default;
  int right = 2;
};
struct Both : Left, Right {
  explicit Both(int *count) : destroyed(count) {}
  ~Both() override { ++*destroyed; }
  int *destroyed;
};
struct Bare {};
struct Derived : Bare {};

struct Throws {
  std::string member = std::string(100, 'm');
  Throws() { throw std::runtime_error("constructor"); }
};

void make_test() {
  static_assert(std::is_empty_v<tslab::deleter<int>>);
  static_assert(sizeof(tslab::unique_ptr<Both>) == sizeof(void *));
  tslab::epoch owner{"made"};
  {
    auto number = tslab::make<const int>(owner, 42);
    auto pair = tslab::make<std::pair<int, std::unique_ptr<int>>>(owner, 1, nullptr);
    auto wide = tslab::make<Wide>(owner.id());
    auto outside = tslab::make<int>(tslab::default_epoch);
    CHECK(*number == 42 && pair->first == 1 && *outside == 0);
    CHECK_EQ(tslab_epoch_of(number.get()), owner.id());
    CHECK_EQ(tslab_epoch_of(outside.get()), TSLAB_DEFAULT);
    CHECK(is_aligned(wide.get(), alignof(Wide)));
    CHECK_EQ(live_in(owner), 3);
  }
  CHECK_EQ(live_in(owner), 0);
}

// A base that does not lie where the block begins.
void make_derived_test() {
  static_assert(std::is_convertible_v<tslab::unique_ptr<Both>, tslab::unique_ptr<Right>>);
  static_assert(std::is_convertible_v<tslab::unique_ptr<Both>, tslab::unique_ptr<const Left>>);
  static_assert(!std::is_convertible_v<tslab::unique_ptr<Left>, tslab::unique_ptr<Both>>);
  static_assert(!std::is_convertible_v<tslab::unique_ptr<Derived>, tslab::unique_ptr<Bare>>);
  tslab::epoch owner{"derived"};
  int destroyed = 0;
  tslab::unique_ptr<Right> right = tslab::make<Both>(owner, &destroyed);
  CHECK_NE(tslab_epoch_of(dynamic_cast<Both *>(right.get())), TSLAB_NO_EPOCH);
  CHECK_NE((uintptr_t)right.get(), (uintptr_t) dynamic_cast<Both *>(right.get()));
  right.reset();
  CHECK_EQ(destroyed, 1);
  CHECK_EQ(live_in(owner), 0);
}

void make_refused_test() {
  tslab::epoch owner{"throws"};
  bool was_thrown = false;
  try {
    static_cast<void>(tslab::make<Throws>(owner));
  } catch (const std::runtime_error &) {
    was_thrown = true;
  }
  CHECK(was_thrown);
  CHECK_EQ(live_in(owner), 0);
  closed_epoch closed;
  CHECK_EQ(refusal_of([&] { static_cast<void>(tslab::make<int>(closed.owner, 1)); }), ECANCELED);
  CHECK_EQ(refusal_of([] { static_cast<void>(tslab::make<Wide>(stale_id())); }), ESTALE);
}

}  // namespace

int main() {
  tests_run({make_test, make_derived_test, make_refused_test});
  return 0;
}
