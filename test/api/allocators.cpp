// include/tslab.hpp: allocators, which containers take by value.
#include <tslab.hpp>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "epochs.hpp"

namespace {

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

}  // namespace

int main() {
  tests_run({allocator_containers_test, allocator_comparison_test, allocator_propagation_test,
             keep_test, allocator_outlives_test, allocator_refused_test});
  return 0;
}
