// An arena of protobuf in an epoch: its blocks, and what its messages allocate beside them.
#include <google/protobuf/arena.h>
#include <google/protobuf/struct.pb.h>
#include <tslab.hpp>

#include <string>

#include "../expect.h"

// --8<-- [start:scope]
static std::string answer(int count) {
  tslab::epoch request{"GET /report"};
  tslab::scope here{request};
  google::protobuf::Arena arena;  // takes its blocks by operator new: they lie in the epoch
  auto *report = google::protobuf::Arena::CreateMessage<google::protobuf::Struct>(&arena);
  for (int i = 0; i < count; i++)
    (*report->mutable_fields())["field " + std::to_string(i)].set_number_value(i);
  EXPECT(tslab::stats(request).live_bytes >= arena.SpaceAllocated());
  tslab::scope keep{tslab::default_epoch};
  return report->SerializeAsString();
}
// --8<-- [end:scope]

// --8<-- [start:blocks]
// Where malloc is not captured, the arena takes its blocks from tslab by name.
static google::protobuf::ArenaOptions in_current_epoch() {
  google::protobuf::ArenaOptions options;
  options.block_alloc = tslab_malloc;
  options.block_dealloc = tslab_free_sized;
  return options;
}
// --8<-- [end:blocks]

static void fill(int count) {
  tslab::epoch request{"GET /report"};
  tslab::scope here{request};
  {
    google::protobuf::Arena arena{in_current_epoch()};
    for (int i = 0; i < count; i++)
      google::protobuf::Arena::CreateMessage<google::protobuf::Value>(&arena)->set_number_value(i);
    EXPECT(arena.SpaceAllocated() > 1024);
    EXPECT(tslab::stats(request).live_bytes >= arena.SpaceAllocated());
  }
  EXPECT(request.close().objects == 0);
}

int main() {
  enum { COUNT = 1000 };
  EXPECT(answer(COUNT).size() > COUNT * sizeof(double));
  fill(COUNT);
  return 0;
}
