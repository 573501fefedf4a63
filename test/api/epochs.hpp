// epochs: what the programs about epochs in C++ share.
#ifndef TSLAB_TEST_EPOCHS_HPP
#define TSLAB_TEST_EPOCHS_HPP

#include <initializer_list>
#include <tslab.hpp>

#include "blocks.h"

inline tslab_epoch_stats stats_of(tslab::epoch_ref epoch) {
  tslab_epoch_stats stats{};
  stats.size = sizeof stats;
  CHECK_EQ(tslab_epoch_get_stats(epoch.id(), &stats), 0);
  return stats;
}

inline size_t live_in(tslab::epoch_ref epoch) { return stats_of(epoch).live_objects; }

inline bool is_over(tslab_epoch id) {
  tslab_epoch_stats stats{};
  stats.size = sizeof stats;
  return tslab_epoch_get_stats(id, &stats) == ESTALE;
}

inline int count_epoch(tslab_epoch, void *count) {
  ++*static_cast<int *>(count);
  return 0;
}

inline int epochs_alive() {
  int count = 0;
  CHECK_EQ(tslab_epochs_each(count_epoch, &count), 0);
  return count;
}

inline tslab_epoch stale_id() { return tslab::epoch("stale").id(); }

// An epoch that was closed, and what keeps it from being over.
struct closed_epoch {
  tslab::epoch owner{"closed"};
  tslab::unique_ptr<int> survivor = tslab::make<int>(owner, 1);
  closed_epoch() { CHECK_EQ(owner.close().objects, 1); }
};

struct alignas(256) Wide {
  char bytes[256];
};

// After each test the thread is in the default epoch, and as many epochs are left as before.
inline void tests_run(std::initializer_list<void (*)()> tests) {
  int before = epochs_alive();
  for (auto *test : tests) {
    test();
    CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
    CHECK_EQ(epochs_alive(), before);
  }
}

// The errno value of the system_error that `call` throws; 0 when it throws none.
template <class Call>
int error_of(Call &&call) {
  try {
    call();
  } catch (const std::system_error &error) {
    CHECK(error.code().category() == tslab::error_category());
    CHECK(strstr(error.what(), tslab_error_text(error.code().value())) != nullptr);
    return error.code().value();
  }
  return 0;
}

// The same for std::bad_alloc, which leaves its reason in errno.
template <class Call>
int refusal_of(Call &&call) {
  errno = 0;
  try {
    call();
  } catch (const std::bad_alloc &) {
    return errno;
  }
  return 0;
}

#endif
