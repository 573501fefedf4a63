#include <tslab.h>
#include <tslab.hpp>

#include <memory>
#include <string>
#include <vector>

static std::size_t survivors() {
  tslab::epoch epoch{"stranger"};
  std::pmr::vector<int> numbers(100, 1, epoch.resource());
  tslab::unique_ptr<int> number;
  {
    tslab::scope inside{epoch};
    number = tslab::make<int>(tslab_epoch_current(), 1);
  }
  return epoch.close().objects;
}

int main() {
  std::unique_ptr<void, decltype(&tslab_free)> ours(tslab_malloc(100), &tslab_free);
  std::vector<std::string> any(100, std::string(100, 'x'));
  return ours != nullptr && any.back().size() == 100 && survivors() == 2 ? 0 : 1;
}
