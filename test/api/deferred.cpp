// include/tslab.hpp: calls deferred to the end of an epoch.
#include <tslab.hpp>

#include <functional>
#include <memory>
#include <string>

#include "epochs.hpp"

namespace {

void defer_order_test() {
  std::string order;
  {
    tslab::epoch owner{"order"};
    for (char name : {'a', 'b', 'c'}) owner.defer([&order, name] { order += name; });
    CHECK(order.empty());
  }
  CHECK_THAT(order == "cba", "%s", order.c_str());
  tslab::epoch closing{"order"};
  closing.defer([&order] { order = "closed"; });
  closing.close();
  CHECK_THAT(order == "closed", "%s", order.c_str());
}

void defer_callables_test() {
  static int calls;
  int copied = 0;
  auto counted = std::make_shared<int>(1);
  {
    tslab::epoch owner{"callables"};
    void (*function)() = [] { calls++; };
    const auto lambda = [&copied] { copied++; };
    Wide wide{};
    auto unique = tslab::make<int>(owner, 5);
    owner.defer(function);
    owner.defer(lambda);
    owner.defer(std::function<void()>(lambda));
    owner.defer([wide] { CHECK(is_aligned(&wide, alignof(Wide))); });
    owner.defer([counted, unique = std::move(unique)] { CHECK_EQ(*unique, 5); });
    CHECK_EQ(counted.use_count(), 2);
  }
  CHECK_EQ(calls, 1);
  CHECK_EQ(copied, 2);
  CHECK_EQ(counted.use_count(), 1);
}

// Deferred calls are nobody's survivors, wherever they were made.
void defer_place_test() {
  tslab::epoch owner{"place"};
  tslab::scope in{owner};
  size_t before = live_in(owner);
  owner.defer([] {});
  CHECK_EQ(live_in(owner), before);
}

void defer_refused_test() {
  closed_epoch closed;
  auto counted = std::make_shared<int>(1);
  bool was_run = false;
  auto call = [counted, &was_run] { was_run = true; };
  CHECK_EQ(error_of([&] { closed.owner.defer(call); }), ECANCELED);
  closed.owner.release();
  CHECK_EQ(error_of([&] { closed.owner.defer(call); }), ESTALE);
  static_cast<void>(closed.survivor.release());
  CHECK(!was_run);
  CHECK_EQ(counted.use_count(), 2);
}

}  // namespace

int main() {
  tests_run({defer_order_test, defer_callables_test, defer_place_test, defer_refused_test});
  return 0;
}
