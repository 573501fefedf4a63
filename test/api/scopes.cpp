// include/tslab.hpp: scopes.
//
// With the argument "alone" plain new stays the C++ library's; with "preloaded" it lands where the
// thread is.
#include <tslab.hpp>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "epochs.hpp"

namespace {

bool is_preloaded;

void scope_test() {
  static_assert(!std::is_copy_constructible_v<tslab::scope>);
  static_assert(!std::is_move_constructible_v<tslab::scope>);
  static_assert(!std::is_constructible_v<tslab::scope, tslab::epoch>);
  tslab::epoch outer{"outer"};
  tslab::epoch inner{"inner"};
  {
    tslab::scope in_outer{outer};
    CHECK_EQ(tslab_epoch_current(), outer.id());
    {
      tslab::scope in_inner{inner};
      tslab::scope again{outer.id()};
      CHECK_EQ(tslab_epoch_of(
                   std::unique_ptr<void, decltype(&tslab_free)>(tslab_malloc(9), tslab_free).get()),
               outer.id());
      tslab::scope out{tslab::default_epoch};
      CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
    }
    CHECK_EQ(tslab_epoch_current(), outer.id());
  }
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

void scope_refused_test() {
  closed_epoch closed;
  tslab::epoch owner{"stays"}, moved{"moved"};
  tslab::epoch taken{std::move(moved)};
  tslab::scope in{owner};
  CHECK_EQ(error_of([] { tslab::scope{stale_id()}; }), ESTALE);
  CHECK_EQ(error_of([&] { tslab::scope{moved}; }), ESTALE);
  CHECK_EQ(error_of([&] { tslab::scope{closed.owner}; }), ECANCELED);
  CHECK_EQ(tslab_epoch_current(), owner.id());
}

// The thread stays where it is, and the program goes on.
void leave_out_of_order() {
  tslab::epoch owner{"outer"}, other{"inner"};
  std::optional<tslab::scope> outer, inner;
  outer.emplace(owner);
  inner.emplace(other);
  outer.reset();
  CHECK_EQ(tslab_epoch_current(), other.id());
  inner.reset();
  CHECK_EQ(tslab_epoch_current(), owner.id());
}

// Only the end of its thread leaves the outer one.
void misuse_test() {
  CHECK_EQ(tslab_option_set("on_error", "ignore"), 0);
  std::thread{leave_out_of_order}.join();
  CHECK_EQ(tslab_option_set("on_error", "abort"), 0);
}

void plain_new_test() {
  CHECK_EQ(tslab::captures_malloc(), is_preloaded);
  tslab::epoch owner{"plain new"};
  tslab::scope in{owner};
  auto text = std::make_unique<std::string>(100, 'x');
  auto wide = std::make_unique<Wide>();
  tslab_epoch expected = is_preloaded ? owner.id() : TSLAB_NO_EPOCH;
  CHECK_EQ(tslab_epoch_of(text.get()), expected);
  CHECK_EQ(tslab_epoch_of(text->data()), expected);
  CHECK_EQ(tslab_epoch_of(wide.get()), expected);
  CHECK(is_aligned(wide.get(), alignof(Wide)));
}

}  // namespace

int main(int argc, char **argv) {
  CHECK_EQ(argc, 2);
  is_preloaded = strcmp(argv[1], "preloaded") == 0;
  tests_run({scope_test, scope_refused_test, plain_new_test, misuse_test});
  return 0;
}
