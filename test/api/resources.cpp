// include/tslab.hpp: the memory resources of epochs.
#include <tslab.hpp>

#include <map>
#include <string>
#include <vector>

#include "epochs.hpp"

namespace {

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

}  // namespace

int main() {
  tests_run({resource_containers_test, resource_equality_test, resource_alignment_test,
             resource_ended_test});
  return 0;
}
