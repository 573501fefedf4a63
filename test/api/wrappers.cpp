// include/tslab.hpp: what is about more than one epoch's memory: deferred calls and their
// cancellation, limits, user pointers, handles, rotations, statistics, walks.
//
// The argument says whether plain new stays the C++ library's, "alone", or is ours, "preloaded".
#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "epochs.hpp"

namespace {

using std::chrono::milliseconds;

// ---- Owners ----

// Nobody who does not ask for the resource pays for it.
void no_allocation_test() {
  size_t before = tslab::stats().live_objects;
  tslab::epoch owner{"bare"};
  tslab::arena other{"bare"};
  CHECK_EQ(tslab::stats().live_objects, before);
  auto *resource = owner.resource();
  CHECK_EQ(tslab::stats().live_objects, before + 1);
  CHECK(owner.resource() == resource);
}

void one_resource_for_all_threads_test() {
  tslab::epoch owner{"shared"};
  std::pmr::memory_resource *seen[4] = {};
  std::vector<std::thread> threads;
  for (auto &mine : seen) threads.emplace_back([&] { mine = owner.resource(); });
  for (auto &thread : threads) thread.join();
  for (auto *other : seen) CHECK(other != nullptr && other == owner.resource());
}

void user_pointer_test() {
  int user = 0;
  tslab::epoch owner{"user"};
  CHECK(owner.user() == nullptr);
  owner.set_user(&user);
  CHECK(owner.user() == &user && tslab_epoch_get_user(owner.id()) == &user);
  owner.close();
  CHECK(owner.user() == nullptr);
  CHECK_EQ(error_of([&] { owner.set_user(&user); }), ESTALE);
}

void limits_test() {
  tslab::arena owner{"limits"};
  owner.set_limits(0, 1 * MIB);
  CHECK_EQ(refusal_of([&] { static_cast<void>(owner.resource()->allocate(2 * MIB)); }), ENOMEM);
  owner.set_limits(0, 0);
  CHECK_EQ(tslab_epoch_of(owner.resource()->allocate(2 * MIB)), owner.id());
  owner.release();
  CHECK_EQ(error_of([&] { owner.set_limits(0, 0); }), ESTALE);
}

// ---- Deferred calls ----

void cancel_test() {
  std::string order;
  auto counted = std::make_shared<int>(1);
  {
    tslab::epoch owner{"cancelled"};
    tslab::deferred first = owner.defer([&order] { order += "a"; });
    tslab::deferred second = owner.defer([&order, counted] { order += "b"; });
    CHECK_EQ(counted.use_count(), 2);
    tslab::deferred same = second;
    CHECK(second.cancel() && !second.cancel() && !same.cancel());
    CHECK_EQ(counted.use_count(), 1);
    CHECK(!tslab::deferred().cancel());
    owner.close();
    CHECK(!first.cancel());
  }
  CHECK_THAT(order == "a", "%s", order.c_str());
}

// ---- Handles ----

struct Point {
  int x, y;
  Point(int right, int up) : x(right), y(up) {
    if (right < 0) throw std::runtime_error("left");
  }
};

void handle_test() {
  tslab::epoch owner{"handles"};
  auto point = tslab::make_handle<Point>(owner, 3, 4);
  auto constant = tslab::make_handle<const int>(owner, 5);
  static_assert(std::is_same_v<decltype(constant.get()), const int *>);
  CHECK(point.get() != nullptr && point.get()->x == 3 && point.get()->y == 4);
  CHECK(*constant.get() == 5 && live_in(owner) == 2);
  auto same = point;
  CHECK(same.get() == point.get());
  CHECK(point.free() && !same.free() && same.get() == nullptr);
  CHECK(tslab::handle<int>().get() == nullptr && !tslab::handle<int>().free());
  owner.release();
  CHECK(constant.get() == nullptr && !constant.free());
}

void handle_refused_test() {
  tslab::epoch owner{"handles"};
  bool was_thrown = false;
  try {
    static_cast<void>(tslab::make_handle<Point>(owner, -1, 0));
  } catch (const std::runtime_error &) {
    was_thrown = true;
  }
  CHECK(was_thrown);
  CHECK_EQ(live_in(owner), 0);
  owner.close();
  CHECK_EQ(refusal_of([&] { static_cast<void>(tslab::make_handle<int>(owner, 1)); }), ESTALE);
}

// ---- Rotations ----

void rotation_by_requests_test() {
  tslab::rotation_options options;
  options.every_requests = 2;
  tslab::rotation turns{std::string("turns").c_str(), options};
  tslab_epoch first = turns.current();
  CHECK(turns.current() == first && turns.current() != first);
  CHECK(strcmp(tslab::stats(first).label, "turns") == 0);
  turns.end();
  CHECK(is_over(first));
  CHECK(turns.current() != TSLAB_NO_EPOCH);
}

void rotation_by_hand_test() {
  tslab_epoch first, second, third;
  {
    tslab::rotation turns{"by hand"};
    first = turns.current();
    second = turns.advance();
    CHECK(turns.current() == second && tslab::stats(first).state == TSLAB_OPEN);
    tslab::unique_ptr<int> object = tslab::make<int>(second, 7);
    third = turns.advance();
    CHECK(is_over(first) && tslab_epoch_of(object.get()) == second);
  }
  CHECK(is_over(second) && is_over(third));
}

void rotation_by_time_test() {
  tslab::rotation_options options;
  options.every = milliseconds(1);
  tslab::rotation turns{"time", options};
  tslab_epoch first = turns.current();
  std::this_thread::sleep_for(milliseconds(5));
  CHECK(turns.current() != first);
}

void rotation_options_test() {
  tslab::arena parent{"parent"};
  tslab::rotation_options options;
  options.epochs.parent = parent.id();
  tslab::rotation turns{"child", options};
  CHECK_EQ(tslab::stats(turns.current()).parent, parent.id());
}

void rotation_refused_test() {
  tslab::rotation_options negative, stale;
  negative.every = milliseconds(-1);
  stale.epochs.parent = TSLAB_NO_EPOCH;
  tslab::rotation turns{"stale", stale};
  std::string label(TSLAB_LABEL_BYTES, 'x');
  CHECK_EQ(error_of([&] { tslab::rotation{label.c_str()}; }), EINVAL);
  CHECK_EQ(error_of([&] { tslab::rotation("negative", negative); }), EINVAL);
  CHECK_EQ(error_of([&] { turns.current(); }), ESTALE);
  CHECK_EQ(error_of([&] { turns.advance(); }), ESTALE);
}

// ---- Statistics ----

void stats_test() {
  tslab::epoch owner{"stats"};
  auto object = tslab::make<int>(owner, 1);
  tslab_epoch_stats one = tslab::stats(owner);
  CHECK(one.epoch == owner.id() && one.live_objects == 1 && strcmp(one.label, "stats") == 0);
  tslab_stats all = tslab::stats();
  CHECK(all.live_objects >= 1 && all.resident_bytes >= one.live_bytes);
  object.reset();
  owner.close();
  CHECK_EQ(error_of([&] { static_cast<void>(tslab::stats(owner)); }), ESTALE);
}

// ---- Walks ----

// An epoch of its own, since that of a label has no blocks of its own.
tslab::epoch_options own_place() {
  tslab::epoch_options options;
  options.place = TSLAB_PLACE_OWN;
  return options;
}

void epochs_walk_test() {
  tslab::epoch first{"first"}, second{"second"};
  std::vector<tslab_epoch> seen;
  tslab::for_each_epoch([&](tslab_epoch epoch) { seen.push_back(epoch); });
  CHECK_EQ(seen.size(), static_cast<size_t>(epochs_alive()));
  for (const tslab::epoch *owner : {&first, &second})
    CHECK_EQ(std::count(seen.begin(), seen.end(), owner->id()), 1);
  size_t calls = 0;
  tslab::for_each_epoch([&](tslab_epoch) { return ++calls < 2; });
  CHECK_EQ(calls, 2);
}

void blocks_walk_test() {
  tslab::epoch owner{"blocks", own_place()};
  auto one = tslab::make<int>(owner, 1), two = tslab::make<int>(owner, 2);
  int sum = 0;
  auto add = [&](const void *block, size_t bytes) {
    CHECK(bytes >= sizeof(int));
    sum += *static_cast<const int *>(block);
  };
  tslab::for_each_block(owner, add);
  CHECK_EQ(sum, 3);
  size_t calls = 0;
  tslab::for_each_block(owner, [&](void *, size_t) { return ++calls < 1; });
  CHECK_EQ(calls, 1);
}

// The number of calls of a visit that throws at once, which the walk throws on.
template <class Walk>
int calls_until_thrown(Walk &&walk) {
  int calls = 0;
  try {
    walk([&](auto...) { throw ++calls; });
  } catch (int thrown) {
    CHECK_EQ(thrown, calls);
    return calls;
  }
  return 0;
}

void thrown_in_a_walk_test() {
  tslab::epoch owner{"thrown", own_place()}, other{"other"};
  auto one = tslab::make<int>(owner, 1), two = tslab::make<int>(owner, 2);
  CHECK_EQ(calls_until_thrown([&](auto visit) { tslab::for_each_block(owner, visit); }), 1);
  CHECK_EQ(calls_until_thrown([](auto visit) { tslab::for_each_epoch(visit); }), 1);
}

void walk_refused_test() {
  auto ignore = [](auto...) {};
  CHECK_EQ(error_of([&] { tslab::for_each_block(stale_id(), ignore); }), ESTALE);
  CHECK_EQ(error_of([&] { tslab::for_each_block(tslab::default_epoch, ignore); }), EPERM);
}

}  // namespace

int main(int argc, char **argv) {
  CHECK_EQ(argc, 2);
  CHECK_EQ(tslab::captures_malloc(), strcmp(argv[1], "preloaded") == 0);
  tests_run({no_allocation_test, one_resource_for_all_threads_test, user_pointer_test, limits_test,
             cancel_test, handle_test, handle_refused_test, rotation_by_requests_test,
             rotation_by_hand_test, rotation_by_time_test, rotation_options_test,
             rotation_refused_test, stats_test, epochs_walk_test, blocks_walk_test,
             thrown_in_a_walk_test, walk_refused_test});
  return 0;
}
