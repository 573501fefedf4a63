// operator new with a hint, as compilers emit it from a profile: cold objects lie together, and
// everything else is as without one.
#include <tslab.h>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "blocks.h"

enum class __hot_cold_t : std::uint8_t {};

void *operator new(std::size_t, __hot_cold_t);
void *operator new[](std::size_t, __hot_cold_t);
void *operator new(std::size_t, const std::nothrow_t &, __hot_cold_t) noexcept;
void *operator new[](std::size_t, const std::nothrow_t &, __hot_cold_t) noexcept;
void *operator new(std::size_t, std::align_val_t, __hot_cold_t);
void *operator new[](std::size_t, std::align_val_t, __hot_cold_t);
void *operator new(std::size_t, std::align_val_t, const std::nothrow_t &, __hot_cold_t) noexcept;
void *operator new[](std::size_t, std::align_val_t, const std::nothrow_t &, __hot_cold_t) noexcept;

namespace {

constexpr std::align_val_t kWide{256};
constexpr auto kColdest = __hot_cold_t{0}, kCold = __hot_cold_t{127}, kNotCold = __hot_cold_t{128},
               kHot = __hot_cold_t{255};
constexpr int kForms = 8;

bool is_wide(int form) { return form >= 4; }
bool is_nothrow(int form) { return form % 4 >= 2; }

void *allocate(int form, std::size_t size, __hot_cold_t hint) {
  switch (form) {
    case 0: return ::operator new(size, hint);
    case 1: return ::operator new[](size, hint);
    case 2: return ::operator new(size, std::nothrow, hint);
    case 3: return ::operator new[](size, std::nothrow, hint);
    case 4: return ::operator new(size, kWide, hint);
    case 5: return ::operator new[](size, kWide, hint);
    case 6: return ::operator new(size, kWide, std::nothrow, hint);
    default: return ::operator new[](size, kWide, std::nothrow, hint);
  }
}

void release(int form, void *block) {
  switch (form) {
    case 0:
    case 2: return ::operator delete(block);
    case 1:
    case 3: return ::operator delete[](block);
    case 4:
    case 6: return ::operator delete(block, kWide);
    default: return ::operator delete[](block, kWide);
  }
}

void place_test() {
  for (int form = 0; form < kForms; form++)
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{64}, 40 * KIB, 3 * MIB}) {
      void *cold = allocate(form, size, kCold), *coldest = allocate(form, size, kColdest);
      void *warm = allocate(form, size, kNotCold), *hot = allocate(form, size, kHot);
      CHECK(cold != nullptr && coldest != nullptr && cold != coldest);
      CHECK(tslab_epoch_of(warm) == TSLAB_DEFAULT && tslab_epoch_of(hot) == TSLAB_DEFAULT);
      CHECK(tslab_epoch_of(cold) == tslab_epoch_of(coldest));
      tslab_epoch_stats stats{};
      stats.size = sizeof stats;
      CHECK(tslab_epoch_get_stats(tslab_epoch_of(cold), &stats) == 0);
      CHECK(std::strcmp(stats.label, "cold") == 0 && stats.state == TSLAB_SHARED);
      for (void *block : {cold, coldest, warm, hot}) {
        if (is_wide(form)) CHECK(reinterpret_cast<std::uintptr_t>(block) % 256 == 0);
        std::memset(block, 1, size);
        release(form, block);
      }
    }
}

// What a request allocates ends with the request, cold or not.
void scope_test() {
  tslab_epoch request = tslab_epoch_open("request", nullptr);
  tslab_scope here;
  CHECK(tslab_scope_enter(&here, request) == 0);
  for (int form = 0; form < kForms; form++)
    CHECK(tslab_epoch_of(allocate(form, 64, kCold)) == request);
  CHECK(tslab_scope_leave(&here) == 0);
  CHECK(tslab_epoch_release(request) == 0);
}

void out_of_memory_test() {
  for (int form = 0; form < kForms; form++) {
    bool has_thrown = false;
    void *block = nullptr;
    try {
      block = allocate(form, SIZE_REFUSED_BY_KERNEL, kCold);
    } catch (const std::bad_alloc &) {
      has_thrown = true;
    }
    CHECK(block == nullptr && has_thrown == !is_nothrow(form));
  }
}

// Objects of several threads, freed by others.
void threads_test() {
  std::vector<void *> blocks[4];
  std::vector<std::thread> threads;
  for (auto &mine : blocks)
    threads.emplace_back([&mine] {
      for (int i = 0; i < 1000; i++) mine.push_back(allocate(i % kForms, 100, kCold));
    });
  for (auto &thread : threads) thread.join();
  for (auto &mine : blocks)
    for (int i = 0; i < 1000; i++) release(i % kForms, mine[static_cast<std::size_t>(i)]);
}

}  // namespace

int main() {
  place_test();
  scope_test();
  out_of_memory_test();
  threads_test();
  return 0;
}
