// Containers of Boost in an epoch: by its allocator, and by Boost's own kind of memory resource.
#include <boost/container/flat_map.hpp>
#include <boost/container/pmr/memory_resource.hpp>
#include <boost/container/pmr/polymorphic_allocator.hpp>
#include <boost/container/stable_vector.hpp>
#include <tslab.hpp>

#include <string>

#include "../expect.h"

// --8<-- [start:allocator]
namespace bc = boost::container;
using text = std::basic_string<char, std::char_traits<char>, tslab::allocator<char>>;
using fields = bc::flat_map<int, text, std::less<int>, tslab::allocator<std::pair<int, text>>>;

static fields read_fields(tslab::epoch_ref request, int count) {
  fields read{tslab::allocator<std::pair<int, text>>{request}};
  for (int i = 0; i < count; i++)
    read.emplace(i, text{"a value that is too long to lie in the string itself",
                         tslab::allocator<char>{request}});
  return read;
}
// --8<-- [end:allocator]

// --8<-- [start:resource]
// Boost has a base class of its own for memory resources.
class boost_resource final : public bc::pmr::memory_resource {
 public:
  explicit boost_resource(std::pmr::memory_resource *behind) : behind_(behind) {}

 private:
  void *do_allocate(std::size_t bytes, std::size_t alignment) override {
    return behind_->allocate(bytes, alignment);
  }
  void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override {
    behind_->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const bc::pmr::memory_resource &other) const noexcept override {
    return this == &other;
  }

  std::pmr::memory_resource *behind_;
};

using depths = bc::stable_vector<int, bc::pmr::polymorphic_allocator<int>>;

static int sum_of_depths(const tslab::arena &frame, int count) {
  boost_resource memory{frame.resource()};
  depths all{&memory};
  for (int i = 0; i < count; i++) all.push_back(i);
  EXPECT(tslab::stats(frame).live_bytes >= all.size() * sizeof(int));
  int sum = 0;
  for (int each : all) sum += each;
  return sum;
}
// --8<-- [end:resource]

int main() {
  enum { COUNT = 1000 };
  tslab::epoch request{"GET /upload"};
  {
    fields read = read_fields(request, COUNT);
    EXPECT(tslab_epoch_of(read.at(7).data()) == request.id());
    EXPECT(tslab::stats(request).live_objects > COUNT);
  }
  EXPECT(request.close().objects == 0);

  tslab::arena frame{"frame"};
  EXPECT(sum_of_depths(frame, COUNT) == COUNT * (COUNT - 1) / 2);
  return 0;
}
