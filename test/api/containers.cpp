// What C++ programs do all day: containers, strings, threads, exceptions, memory resources,
// thread_local objects.
#include <atomic>
#include <deque>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "blocks.h"

namespace {

struct alignas(512) Wide {
  char bytes[512];
};

void containers_test() {
  std::map<std::string, std::vector<int>> ordered;
  std::unordered_map<int, std::string> hashed;
  std::deque<std::list<int>> lists;
  for (int i = 0; i < 20000; i++) {
    ordered["key " + std::to_string(i % 997)].push_back(i);
    hashed[i * 7919] = std::string(static_cast<size_t>(i % 300), 'a');
    if (i % 100 == 0) lists.emplace_back(50, i);
  }
  size_t total = 0;
  for (const auto &entry : ordered) total += entry.second.size();
  CHECK_EQ(total, 20000);
  for (int i = 0; i < 20000; i++) CHECK_EQ(hashed.at(i * 7919).size(), i % 300);
  CHECK_EQ(lists.size(), 200);
}

void over_aligned_test() {
  std::vector<Wide> wide(100);
  auto single = std::make_unique<Wide>();
  CHECK(is_aligned(wide.data(), 512) && is_aligned(single.get(), 512));
}

thread_local std::vector<std::string> thread_words;

void thread_local_test() {
  std::atomic<size_t> bytes{0};
  for (int round = 0; round < 50; round++) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
      threads.emplace_back([&bytes] {
        for (int word = 0; word < 200; word++) thread_words.emplace_back(64, 'w');
        for (const auto &word : thread_words) bytes += word.size();
      });
    for (auto &thread : threads) thread.join();
  }
  CHECK_EQ(bytes.load(), 50 * 4 * 200 * 64);
}

// What one thread makes and another destroys.
void handed_over_test() {
  for (int round = 0; round < 100; round++) {
    auto task = std::async(std::launch::async, [] {
      auto words = std::make_shared<std::vector<std::string>>();
      for (int i = 0; i < 500; i++) words->push_back(std::string(40, 'h'));
      return words;
    });
    CHECK_EQ(task.get()->size(), 500);
  }
}

void exceptions_test() {
  for (int i = 0; i < 5000; i++) {
    try {
      std::string message(100, 'e');
      throw std::runtime_error(message + std::to_string(i));
    } catch (const std::exception &error) {
      CHECK_GE(strlen(error.what()), 101);
    }
  }
}

void memory_resource_test() {
  std::pmr::unsynchronized_pool_resource pool(std::pmr::new_delete_resource());
  std::pmr::map<int, std::pmr::string> map(&pool);
  for (int i = 0; i < 5000; i++) map.emplace(i, std::pmr::string(100, 'p', &pool));
  CHECK_EQ(map.size(), 5000);
}

}  // namespace

int main() {
  containers_test();
  over_aligned_test();
  thread_local_test();
  handed_over_test();
  exceptions_test();
  memory_resource_test();
  return 0;
}
