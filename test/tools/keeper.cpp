// keeper: keeps blocks that a template in a namespace allocates, says so, and waits.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace shop {

template <class Item>
struct cart {
  std::vector<char *> items;

  // Not a tail call: each has a frame.
  __attribute__((noinline)) char *add(const Item &item) {
    items.push_back(static_cast<char *>(std::malloc(item.size())));
    return items.back();
  }
};

}  // namespace shop

int main() {
  enum { ITEMS = 2000, BYTES = 1000 };
  shop::cart<std::string> cart;
  const std::string item(BYTES, 'x');
  for (int i = 0; i < ITEMS; i++) *cart.add(item) = 'y';
  std::puts("ready");
  std::fflush(stdout);
  return std::getchar() == 'y';
}
