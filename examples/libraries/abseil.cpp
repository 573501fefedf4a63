// A hash table of Abseil in an epoch, by its allocator. Folly's F14 tables take theirs in the same
// place.
#include <absl/container/flat_hash_map.h>
#include <tslab.hpp>

#include <string>

#include "../expect.h"

// --8<-- [start:table]
using plain = absl::flat_hash_map<int, std::string>;
using sessions = absl::flat_hash_map<int, std::string, plain::hasher, plain::key_equal,
                                     tslab::allocator<plain::value_type>>;

static sessions read_sessions(tslab::epoch_ref tenant, int count) {
  sessions read{tslab::allocator<plain::value_type>{tenant}};
  tslab::scope here{tenant};  // the strings have std::allocator: they lie where the thread is
  for (int i = 0; i < count; i++) read.emplace(i, std::string(100, 'x'));
  return read;
}
// --8<-- [end:table]

int main() {
  enum { COUNT = 1000 };
  tslab::epoch tenant{"tenant"};
  {
    sessions read = read_sessions(tenant, COUNT);
    EXPECT(read.size() == COUNT);
    EXPECT(tslab_epoch_of(read.at(7).data()) == tenant.id());
    EXPECT(tslab::stats(tenant).live_objects > COUNT);
  }
  EXPECT(tenant.close().objects == 0);
  return 0;
}
