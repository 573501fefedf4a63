// thread_local: C++ objects of a thread whose destructors allocate, free, and touch each other as
// the thread ends.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../process.h"

namespace {

constexpr int kWarm = 500, kThreads = 4000;
constexpr size_t kBytesLeft = 8 * MIB;

struct Late {
  std::vector<std::string> words;
  ~Late() {
    std::vector<std::string> copies(words);
    copies.emplace_back(1000, 'l');
    CHECK_EQ(copies.size(), words.size() + 1);
  }
};

thread_local Late late;

// Its destructor is the first to touch `late`, which is therefore made while the thread ends.
struct Early {
  std::unique_ptr<std::string> text = std::make_unique<std::string>(500, 'e');
  ~Early() {
    for (int i = 0; i < 20; i++) late.words.push_back(*text + std::to_string(i));
    auto large = std::make_unique<char[]>(200 * KIB);
    large[0] = large[200 * KIB - 1] = 1;
  }
};

thread_local Early early;

void threads_run(int count) {
  for (int i = 0; i < count; i += 2) {
    std::thread first([] { CHECK_EQ(early.text->size(), 500); });
    std::thread second([] { CHECK_EQ(early.text->size() + late.words.size(), 500); });
    first.join();
    second.join();
  }
}

}  // namespace

int main() {
  threads_run(kWarm);
  size_t before = process_resident_bytes();
  threads_run(kThreads);
  CHECK_LE(process_resident_bytes(), before + kBytesLeft);
  return 0;
}
