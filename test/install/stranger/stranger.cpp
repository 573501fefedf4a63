#include <tslab.h>

#include <memory>
#include <string>
#include <vector>

int main() {
  std::unique_ptr<void, decltype(&tslab_free)> ours(tslab_malloc(100), &tslab_free);
  std::vector<std::string> any(100, std::string(100, 'x'));
  return ours != nullptr && any.back().size() == 100 ? 0 : 1;
}
