// include/tslab.hpp: owners of epochs, their ends, also by an exception, and their errors.
//
// With the argument "alone" plain new stays the C++ library's; with "preloaded" it lands where the
// thread is; with "exhausted" there is little memory, and the program takes all of it.
#include <tslab.hpp>

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "epochs.hpp"

namespace {

bool is_preloaded;

void error_category_test() {
  std::error_code ended(ECANCELED, tslab::error_category());
  CHECK(ended == std::errc::operation_canceled && ended != std::errc::invalid_argument);
  CHECK(ended.message() == tslab_error_text(ECANCELED));
  CHECK(strcmp(ended.category().name(), "tslab") == 0);
}

template <class Owner>
void owner_traits_test() {
  static_assert(!std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner>);
  static_assert(std::is_nothrow_move_constructible_v<Owner>);
  static_assert(std::is_nothrow_move_assignable_v<Owner>);
  static_assert(!std::is_convertible_v<const char *, Owner>);
  static_assert(std::is_convertible_v<Owner &, tslab::epoch_ref>);
  static_assert(!std::is_convertible_v<Owner, tslab::epoch_ref>, "it would end too early");
}

template <class Owner>
void open_test() {
  tslab::epoch parent{"parent"};
  tslab::epoch_options options;
  CHECK_EQ(options.size, sizeof(tslab_epoch_options));
  options.parent = parent.id();
  Owner plain{"plain"}, child{"child", options};
  CHECK(strcmp(stats_of(plain).label, "plain") == 0);
  CHECK_EQ(stats_of(plain).state, TSLAB_OPEN);
  CHECK_EQ(stats_of(plain).parent, TSLAB_DEFAULT);
  CHECK_EQ(stats_of(child).parent, parent.id());
  CHECK_EQ(live_in(plain), 0);
}

template <class Owner>
void open_refused_test() {
  closed_epoch closed;
  int before = epochs_alive();
  tslab::epoch_options wrong_size, stale, ended;
  wrong_size.size = 1;
  stale.parent = stale_id();
  ended.parent = closed.owner.id();
  CHECK_EQ(error_of([] { Owner{std::string(TSLAB_LABEL_BYTES, 'x').c_str()}; }), EINVAL);
  CHECK_EQ(error_of([&] { Owner("child", wrong_size); }), EINVAL);
  CHECK_EQ(error_of([&] { Owner("child", stale); }), ESTALE);
  CHECK_EQ(error_of([&] { Owner("child", ended); }), ECANCELED);
  CHECK_EQ(epochs_alive(), before);
}

template <class Owner>
void move_test() {
  Owner first{"first"};
  tslab_epoch id = first.id();
  auto *resource = first.resource();
  auto numbers = std::make_unique<std::pmr::vector<int>>(100, 7, resource);
  Owner second{std::move(first)};
  CHECK(second.id() == id && second.resource() == resource);
  CHECK(first.id() == TSLAB_NO_EPOCH && first.resource() == nullptr);
  CHECK_EQ(error_of([&] { first.close(); }), ESTALE);
  CHECK_EQ(error_of([&] { first.defer([] {}); }), ESTALE);
  first.release();
  numbers->resize(1000, 8);
  CHECK_EQ(tslab_epoch_of(numbers->data()), id);
  numbers.reset();
  auto &same = second;
  second = std::move(same);
  CHECK(second.id() == id && second.resource() == resource);
}

template <class Owner>
void move_assign_test() {
  Owner first{"first"}, second{"second"};
  tslab_epoch ended = first.id(), kept = second.id();
  first = std::move(second);
  CHECK(first.id() == kept && second.id() == TSLAB_NO_EPOCH);
  CHECK(is_over(ended) && stats_of(first).state == TSLAB_OPEN);
  second = Owner{"third"};
  CHECK_EQ(stats_of(second).state, TSLAB_OPEN);
}

template <class Owner>
void release_test() {
  Owner owner{"released"};
  tslab_epoch id = owner.id();
  CHECK(tslab_epoch_malloc(id, 100) != nullptr);
  owner.release();
  CHECK(is_over(id) && owner.id() == id);
  owner.release();
  CHECK_EQ(error_of([&] { owner.close(); }), ESTALE);
  CHECK_EQ(refusal_of([&] { static_cast<void>(owner.resource()->allocate(8)); }), ESTALE);
}

template <class Owner>
void close_test() {
  tslab_epoch id;
  void *survivor;
  {
    Owner owner{"closed"};
    id = owner.id();
    survivor = tslab_epoch_malloc(id, 100);
    tslab_survivors left = owner.close();
    CHECK_EQ(left.error, 0);
    CHECK_EQ(left.objects, 1);
    CHECK_GE(left.bytes, tslab_usable_size(survivor));
    if (!TSL_SECURE) CHECK_EQ(left.bytes, tslab_usable_size(survivor));
    CHECK_EQ(error_of([&] { owner.close(); }), ECANCELED);
    Owner last{std::move(owner)};
  }
  CHECK_EQ(stats_of(id).state, TSLAB_CLOSED);
  pattern_fill(survivor, 100, 3);
  pattern_check(survivor, 100, 3);
  tslab_free(survivor);
  CHECK(is_over(id));
}

template <class Owner>
void close_then_release_test() {
  Owner owner{"closed, then released"};
  CHECK(tslab_epoch_malloc(owner.id(), 100) != nullptr);
  CHECK_EQ(owner.close().objects, 1);
  owner.release();
  CHECK(is_over(owner.id()));
}

// In the epoch where its owner was made, it would end with that.
template <class Owner>
void resource_place_test() {
  tslab::epoch around{"around"};
  std::optional<Owner> owner;
  {
    tslab::scope in{around};
    owner.emplace("inner");
    CHECK_EQ(tslab_epoch_of(owner->resource()), TSLAB_DEFAULT);
  }
  CHECK_EQ(live_in(*owner), 0);
  around.release();
  std::pmr::string text(100, 'x', owner->resource());
  CHECK_EQ(tslab_epoch_of(text.data()), owner->id());
}

void destructor_test() {
  tslab_epoch released, closed;
  void *survivor;
  {
    tslab::arena owner{"released"};
    tslab::epoch closing{"closed"};
    released = owner.id();
    closed = closing.id();
    CHECK(tslab_epoch_malloc(released, 100) != nullptr);
    survivor = tslab_epoch_malloc(closed, 100);
  }
  CHECK(is_over(released));
  CHECK_EQ(stats_of(closed).state, TSLAB_CLOSED);
  tslab_free(survivor);
  CHECK(is_over(closed));
}

// What is thrown inside lies inside, and is looked at when the owner is gone.
void exception_escapes_test() {
  tslab_epoch id = TSLAB_NO_EPOCH;
  try {
    tslab::arena owner{"left by an exception"};
    tslab::scope in{owner};
    id = owner.id();
    throw std::runtime_error(std::string(100, 'e'));
  } catch (const std::runtime_error &error) {
    if (is_preloaded) CHECK_EQ(stats_of(id).state, TSLAB_CLOSED);
    tslab::arena other{"next"};
    CHECK(tslab_epoch_malloc(other.id(), 100) != nullptr);
    CHECK(error.what() == std::string(100, 'e'));
  }
  CHECK(is_over(id));
}

void exception_caught_inside_test() {
  tslab::arena owner{"stays"};
  tslab_epoch id = owner.id();
  CHECK(tslab_epoch_malloc(id, 100) != nullptr);
  try {
    tslab::scope in{owner};
    throw std::runtime_error("caught");
  } catch (const std::runtime_error &) {
    CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  }
  { tslab::arena last{std::move(owner)}; }
  CHECK(is_over(id));
}

struct cleanup {
  tslab_epoch *id;
  ~cleanup() {
    tslab::arena owner{"cleanup"};
    *id = owner.id();
    CHECK(tslab_epoch_malloc(owner.id(), 100) != nullptr);
  }
};

// The exception was there before the epoch.
void epoch_within_unwinding_test() {
  tslab_epoch id = TSLAB_NO_EPOCH;
  try {
    cleanup at_end{&id};
    throw std::runtime_error("on its way");
  } catch (const std::runtime_error &) {
    CHECK(is_over(id));
  }
}

void threads_test() {
  tslab::epoch owner{"threads"};
  std::vector<std::thread> threads;
  std::vector<tslab::unique_ptr<int>> made[4];
  std::atomic<int> deferred{0};
  for (auto &mine : made)
    threads.emplace_back([&owner, &mine, &deferred] {
      tslab::scope in{owner};
      std::pmr::list<int> list(200, 1, owner.resource());
      for (int i = 0; i < 200; i++) mine.push_back(tslab::make<int>(owner, i));
      owner.defer([&deferred] { deferred++; });
    });
  for (auto &thread : threads) thread.join();
  for (auto &mine : made) {
    for (int i = 0; i < 200; i++) CHECK_EQ(*mine[static_cast<size_t>(i)], i);
    std::vector<tslab::unique_ptr<int>>().swap(mine);
  }
  owner.release();
  CHECK_EQ(deferred.load(), 4);
}

// No block of any size is left, while the library still has ids to give.
void exhausted_test() {
  tslab::epoch owner{"before"};
  int before = epochs_alive();
  for (size_t size = 16 * MIB; size >= 16; size /= 2)
    while (tslab_malloc(size) != nullptr) continue;
  bool was_run = false;
  CHECK_EQ(error_of([] { tslab::epoch("after"); }), 0);
  CHECK_EQ(refusal_of([&] { static_cast<void>(owner.resource()); }), ENOMEM);
  CHECK_EQ(error_of([&] { owner.defer([&was_run] { was_run = true; }); }), ENOMEM);
  CHECK_EQ(epochs_alive(), before);
  owner.release();
  CHECK(!was_run);
}

template <class Owner>
void owner_test() {
  owner_traits_test<Owner>();
  open_test<Owner>();
  open_refused_test<Owner>();
  move_test<Owner>();
  move_assign_test<Owner>();
  release_test<Owner>();
  close_test<Owner>();
  close_then_release_test<Owner>();
  resource_place_test<Owner>();
}

}  // namespace

int main(int argc, char **argv) {
  CHECK_EQ(argc, 2);
  is_preloaded = strcmp(argv[1], "preloaded") == 0;
  if (strcmp(argv[1], "exhausted") == 0) {
    exhausted_test();
    return 0;
  }
  tests_run({error_category_test, owner_test<tslab::epoch>, owner_test<tslab::arena>,
             destructor_test, exception_escapes_test, exception_caught_inside_test,
             epoch_within_unwinding_test, threads_test});
  return 0;
}
