// include/tslab.hpp: owners, scopes, resources, allocators and made objects, their ends and their
// errors.
//
// With the argument "alone" plain new stays the C++ library's; with "preloaded" it lands where the
// thread is; with "exhausted" there is little memory, and the program takes all of it.
#include <tslab.hpp>

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "epochs.hpp"

namespace {

bool is_preloaded;

struct alignas(256) Wide {
  char bytes[256];
};

tslab_epoch stale_id() { return tslab::epoch("stale").id(); }

// An epoch that was closed, and what keeps it from being over.
struct closed_epoch {
  tslab::epoch owner{"closed"};
  tslab::unique_ptr<int> survivor = tslab::make<int>(owner, 1);
  closed_epoch() { CHECK_EQ(owner.close().objects, 1); }
};

// ---- Errors ----

void error_category_test() {
  std::error_code ended(ECANCELED, tslab::error_category());
  CHECK(ended == std::errc::operation_canceled && ended != std::errc::invalid_argument);
  CHECK(ended.message() == tslab_error_text(ECANCELED));
  CHECK(strcmp(ended.category().name(), "tslab") == 0);
}

// ---- Owners ----

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

// ---- Exceptions that leave an epoch ----

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

// ---- Deferred calls ----

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

// ---- Scopes ----

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

// ---- Memory resources ----

void resource_containers_test() {
  tslab::epoch owner{"pmr"};
  {
    std::pmr::map<int, std::pmr::string> names(owner.resource());
    std::pmr::vector<Wide> wide(10, owner.resource());
    for (int i = 0; i < 500; i++) names.emplace(i, std::string(100, 'n'));
    CHECK_EQ(tslab_epoch_of(names.at(499).data()), owner.id());
    CHECK(tslab_epoch_of(wide.data()) == owner.id() && is_aligned(wide.data(), alignof(Wide)));
    CHECK_EQ(live_in(owner), 1001);
    for (int i = 0; i < 250; i++) names.erase(i);
    CHECK_EQ(live_in(owner), 501);
  }
  CHECK_EQ(live_in(owner), 0);
}

void resource_equality_test() {
  tslab::epoch first{"first"}, second{"second"};
  tslab::memory_resource by_owner{first}, by_id{first.id()}, plain{tslab::default_epoch};
  CHECK(by_owner == by_id && by_owner == *first.resource() && by_owner.id() == first.id());
  CHECK(by_owner != *second.resource() && by_owner != plain);
  CHECK(by_owner != *std::pmr::new_delete_resource());
  std::pmr::vector<int> from(100, 1, &by_owner), to(second.resource());
  to = std::move(from);
  CHECK_EQ(tslab_epoch_of(to.data()), second.id());
}

void resource_alignment_test() {
  tslab::epoch owner{"alignment"};
  auto *resource = owner.resource();
  for (size_t alignment = 1; alignment <= MIB; alignment *= 2) {
    void *block = resource->allocate(100, alignment);
    CHECK_THAT(is_aligned(block, alignment), "alignment %zu gave %p", alignment, block);
    CHECK_EQ(tslab_epoch_of(block), owner.id());
    resource->deallocate(block, 100, alignment);
  }
  CHECK_EQ(live_in(owner), 0);
}

void resource_ended_test() {
  tslab::epoch owner{"ended"};
  tslab_epoch id = owner.id();
  {
    std::pmr::vector<int> numbers(100, 1, owner.resource());
    CHECK_EQ(owner.close().objects, 1);
    CHECK_EQ(refusal_of([&] { numbers.resize(1000); }), ECANCELED);
    CHECK(numbers.size() == 100 && numbers.back() == 1);
  }
  CHECK(is_over(id));
  CHECK_EQ(refusal_of([&] { static_cast<void>(owner.resource()->allocate(100, 64)); }), ESTALE);
  tslab::epoch open{"open"};
  CHECK_EQ(refusal_of([&] { static_cast<void>(open.resource()->allocate(SIZE_IMPOSSIBLE)); }),
           ENOMEM);
}

// ---- Allocators ----

template <class T>
using vector_in = std::vector<T, tslab::allocator<T>>;

void allocator_containers_test() {
  tslab::epoch owner{"containers"};
  {
    tslab::allocator<int> numbers{owner};
    vector_in<Wide> wide(10, tslab::allocator<Wide>(numbers));
    std::list<int, tslab::allocator<int>> list(100, 1, numbers);
    std::map<int, int, std::less<>, tslab::allocator<std::pair<const int, int>>> map(numbers);
    std::unordered_map<int, int, std::hash<int>, std::equal_to<>,
                       tslab::allocator<std::pair<const int, int>>>
        hashed(0, numbers);
    for (int i = 0; i < 100; i++) map[i] = hashed[i] = i;
    auto shared = std::allocate_shared<Wide>(numbers);
    CHECK(is_aligned(wide.data(), alignof(Wide)) && is_aligned(shared.get(), alignof(Wide)));
    CHECK_EQ(tslab_epoch_of(wide.data()), owner.id());
    CHECK_GE(live_in(owner), 302);
  }
  CHECK_EQ(live_in(owner), 0);
}

void allocator_comparison_test() {
  tslab::epoch first{"first"}, second{"second"};
  tslab::allocator<int> ours{first}, theirs{second};
  CHECK(ours == tslab::allocator<char>(first.id()) && !(ours != tslab::allocator<char>(ours)));
  CHECK(ours != theirs && !(ours == theirs) && ours.id() == first.id());
  CHECK_EQ(tslab::allocator<int>(tslab::default_epoch).id(), TSLAB_DEFAULT);
}

void allocator_propagation_test() {
  tslab::epoch first{"first"}, second{"second"};
  vector_in<int> one(100, 1, tslab::allocator<int>(first));
  vector_in<int> two(50, 2, tslab::allocator<int>(second));
  vector_in<int> copy(one), moved(std::move(one));
  CHECK(copy.get_allocator().id() == first.id() && moved.get_allocator().id() == first.id());
  two = copy;
  CHECK(two == copy && tslab_epoch_of(two.data()) == second.id());
  two = std::move(moved);
  CHECK(two.size() == 100 && tslab_epoch_of(two.data()) == second.id());
  copy.swap(two);
  CHECK_EQ(tslab_epoch_of(copy.data()), second.id());
  CHECK(copy.get_allocator().id() == second.id() && two.get_allocator().id() == first.id());
}

void keep_test() {
  tslab_epoch id;
  int *kept = nullptr;
  {
    tslab::arena arena{"arena"};
    id = arena.id();
    kept = tslab::allocator<int>(id).allocate(100);
    kept[99] = 7;
    tslab::keep(kept);
  }
  CHECK_EQ(tslab_epoch_of(kept), id);
  CHECK_EQ(kept[99], 7);
  tslab::allocator<int>(id).deallocate(kept, 100);
  CHECK(is_over(id));
  int local = 0;
  CHECK_EQ(error_of([&] { tslab::keep(&local); }), EFAULT);
}

// By value: it needs nothing of the owner, who is gone when the container ends.
void allocator_outlives_test() {
  tslab_epoch id;
  {
    std::optional<tslab::epoch> owner("drained");
    id = owner->id();
    vector_in<int> numbers(100, 1, tslab::allocator<int>(*owner));
    owner.reset();
    CHECK_EQ(stats_of(id).state, TSLAB_CLOSED);
    CHECK_EQ(numbers.back(), 1);
    CHECK_EQ(refusal_of([&] { numbers.resize(1000); }), ECANCELED);
  }
  CHECK(is_over(id));
}

void allocator_refused_test() {
  tslab::allocator<int> stale{stale_id()}, open{tslab::default_epoch};
  CHECK_EQ(refusal_of([&] { static_cast<void>(stale.allocate(1)); }), ESTALE);
  CHECK_EQ(refusal_of([&] { static_cast<void>(open.allocate(SIZE_MAX / 8)); }), ENOMEM);
  bool overflowed = false;
  try {
    static_cast<void>(open.allocate(SIZE_MAX / sizeof(int) + 1));
  } catch (const std::bad_array_new_length &) {
    overflowed = true;
  }
  CHECK(overflowed);
}

// ---- Made objects ----

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

// ---- Threads ----

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

void (*const tests[])() = {
    error_category_test,
    owner_test<tslab::epoch>,
    owner_test<tslab::arena>,
    destructor_test,
    exception_escapes_test,
    exception_caught_inside_test,
    epoch_within_unwinding_test,
    defer_order_test,
    defer_callables_test,
    defer_place_test,
    defer_refused_test,
    scope_test,
    scope_refused_test,
    plain_new_test,
    resource_containers_test,
    resource_equality_test,
    resource_alignment_test,
    resource_ended_test,
    allocator_containers_test,
    allocator_comparison_test,
    allocator_propagation_test,
    keep_test,
    allocator_outlives_test,
    allocator_refused_test,
    make_test,
    make_derived_test,
    make_refused_test,
    threads_test,
};

}  // namespace

int main(int argc, char **argv) {
  CHECK_EQ(argc, 2);
  is_preloaded = strcmp(argv[1], "preloaded") == 0;
  if (strcmp(argv[1], "exhausted") == 0) {
    exhausted_test();
    return 0;
  }
  int before = epochs_alive();
  for (auto *test : tests) {
    test();
    CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
    CHECK_EQ(epochs_alive(), before);
  }
  return 0;
}
