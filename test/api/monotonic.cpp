// include/tslab.hpp: a memory resource that cuts pieces off chunks of an epoch.
#include <tslab.hpp>

#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "epochs.hpp"

namespace {

enum { FIRST_CHUNK_PIECES = (1024 - 48) / 16, BIG = 3000 };

struct piece {
  unsigned char *begin;
  size_t bytes;
};

piece piece_of(std::pmr::memory_resource *resource, size_t bytes, size_t alignment, unsigned seed) {
  auto *begin = static_cast<unsigned char *>(resource->allocate(bytes, alignment));
  CHECK(is_aligned(begin, alignment));
  pattern_fill(begin, bytes, seed);
  return {begin, bytes};
}

// No two share a byte, whatever their sizes and alignments.
void pieces_test() {
  tslab::epoch owner{"pieces"};
  std::vector<piece> pieces;
  for (unsigned i = 0; i < 2000; i++) {
    size_t bytes = i % 97 == 0 ? i * 8 : i % 61, alignment = size_t{1} << i % 13;
    pieces.push_back(piece_of(owner.monotonic(), bytes, alignment, i));
  }
  for (unsigned i = 0; i < pieces.size(); i++) pattern_check(pieces[i].begin, pieces[i].bytes, i);
  CHECK_EQ(tslab_epoch_of(owner.monotonic()), TSLAB_DEFAULT);
}

void containers_test() {
  tslab::epoch owner{"containers"};
  {
    std::pmr::map<int, std::pmr::string> names(owner.monotonic());
    std::pmr::list<std::pmr::vector<int>> lists(owner.monotonic());
    for (int i = 0; i < 500; i++) {
      names.emplace(i, std::to_string(i) + std::string(50, 'n'));
      lists.emplace_back(static_cast<size_t>(i), i);
    }
    for (int i = 0; i < 500; i++)
      CHECK(std::string_view(names.at(i)) == std::to_string(i) + std::string(50, 'n'));
    int i = 0;
    for (const auto &list : lists) CHECK(list == std::pmr::vector<int>(list.size(), i++));
  }
  CHECK(live_in(owner) != 0);
  owner.monotonic()->release();
  CHECK_EQ(live_in(owner), 0);
}

// Chunks are the epoch's objects; each is twice as large as the one before.
void chunks_test() {
  tslab::epoch owner{"chunks"};
  auto *resource = owner.monotonic();
  CHECK_EQ(live_in(owner), 0);
  for (int i = 0; i < FIRST_CHUNK_PIECES; i++) static_cast<void>(piece_of(resource, 16, 16, 1));
  CHECK_EQ(live_in(owner), 1);
  for (int i = 0; i < 2 * FIRST_CHUNK_PIECES; i++) static_cast<void>(piece_of(resource, 16, 16, 1));
  CHECK_EQ(live_in(owner), 2);
  static_cast<void>(piece_of(resource, BIG, 1, 1));
  CHECK_EQ(live_in(owner), 3);
  static_cast<void>(piece_of(resource, 16, 16, 1));
  CHECK_EQ(live_in(owner), 3);
}

// What was cut last is cut again; pieces of no size are pieces of their own.
void given_back_test() {
  tslab::epoch owner{"given back"};
  std::pmr::memory_resource *resource = owner.monotonic();
  void *kept = resource->allocate(100, 8), *last = resource->allocate(50, 1);
  resource->deallocate(last, 50, 1);
  CHECK(resource->allocate(50, 1) == last);
  resource->deallocate(kept, 100, 8);
  CHECK(resource->allocate(100, 8) != kept);
  void *none = resource->allocate(0, 1);
  CHECK(resource->allocate(0, 1) != none);
}

void release_test() {
  tslab::epoch owner{"released"};
  tslab::monotonic_resource resource{owner};
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 1000; i++)
      static_cast<void>(piece_of(&resource, i % 10 == 0 ? BIG : 100, 8, 1));
    CHECK_GE(live_in(owner), 10);
    resource.release();
    CHECK_EQ(live_in(owner), 0);
  }
}

void destructor_test() {
  size_t before = tslab::stats().live_objects;
  tslab_epoch id;
  {
    tslab::epoch owner{"destroyed"};
    tslab::monotonic_resource resource{owner}, plain{tslab::default_epoch};
    id = owner.id();
    CHECK(resource.id() == id && plain.id() == TSLAB_DEFAULT);
    CHECK_EQ(tslab_epoch_of(owner.monotonic()), TSLAB_DEFAULT);
    for (auto *each : {&resource, &plain, owner.monotonic()})
      for (size_t bytes : {size_t{BIG}, size_t{100}})
        static_cast<void>(piece_of(each, bytes, 8, 1));
    CHECK_EQ(live_in(owner), 4);
  }
  CHECK(is_over(id));
  CHECK_EQ(tslab::stats().live_objects, before);
}

void refused_test() {
  tslab::arena owner{"refused"};
  auto *resource = owner.monotonic();
  piece kept = piece_of(resource, 100, 8, 1);
  auto refused = [&](size_t bytes, size_t alignment) {
    return refusal_of([&] { static_cast<void>(resource->allocate(bytes, alignment)); });
  };
  for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 - 1, size_t{PTRDIFF_MAX}})
    CHECK_EQ(refused(bytes, 8), ENOMEM);
  CHECK_EQ(refused(1, SIZE_MAX / 2 + 1), ENOMEM);
  owner.set_limits(0, stats_of(owner).held_bytes);
  CHECK_EQ(refused(MIB, 8), ENOMEM);
  owner.set_limits(0, 0);
  static_cast<void>(piece_of(resource, MIB, 8, 2));
  pattern_check(kept.begin, kept.bytes, 1);
}

void equality_test() {
  tslab::epoch owner{"equality"};
  tslab::monotonic_resource other{owner};
  CHECK(*owner.monotonic() == *owner.monotonic() && other != *owner.monotonic());
  CHECK(other != *owner.resource());
}

// ---- Ends of the epoch ----

// Nothing more is cut, also where the chunk has room. What is there stays until the owner ends.
void closed_test() {
  std::optional<tslab::epoch> owner("closed");
  tslab_epoch id = owner->id();
  piece kept = piece_of(owner->monotonic(), 100, 8, 1);
  CHECK_EQ(owner->close().objects, 1);
  CHECK_EQ(refusal_of([&] { static_cast<void>(owner->monotonic()->allocate(8)); }), ECANCELED);
  pattern_check(kept.begin, kept.bytes, 1);
  CHECK_EQ(stats_of(id).state, TSLAB_CLOSED);
  owner.reset();
  CHECK(is_over(id));
}

void reset_test() {
  tslab::arena owner{"frames"};
  for (int frame = 0; frame < 3; frame++) {
    for (int i = 0; i < 100; i++) static_cast<void>(piece_of(owner.monotonic(), 100, 8, 1));
    CHECK(live_in(owner) != 0);
    owner.reset();
    CHECK_EQ(live_in(owner), 0);
  }
}

void ended_test() {
  tslab::arena owner{"ended"};
  static_cast<void>(piece_of(owner.monotonic(), 100, 8, 1));
  owner.release();
  CHECK(is_over(owner.id()));
  CHECK_EQ(refusal_of([&] { static_cast<void>(owner.monotonic()->allocate(8)); }), ESTALE);
}

// Chunks that have ended are not freed, whatever lies there now.
void ended_by_id_test() {
  tslab::epoch owner{"by id"}, other{"other"};
  tslab::monotonic_resource resource{owner};
  for (int i = 0; i < 100; i++) static_cast<void>(piece_of(&resource, 100, 8, 1));
  CHECK_EQ(tslab_epoch_reset(owner.id()), 0);
  void *again = tslab_epoch_malloc(owner.id(), 1000);
  resource.release();
  CHECK_EQ(live_in(owner), 1);
  tslab_free(again);
  static_cast<void>(piece_of(&resource, 100, 8, 1));
  CHECK_EQ(tslab_epoch_release(owner.id()), 0);
  for (int i = 0; i < 100; i++) CHECK(tslab_epoch_malloc(other.id(), 1000) != nullptr);
  resource.release();
  CHECK_EQ(live_in(other), 100);
  other.release();
}

void shared_test() {
  tslab::epoch_options options;
  options.place = TSLAB_PLACE_SHARED;
  tslab_epoch place;
  {
    tslab::epoch owner{"shared", options};
    static_cast<void>(piece_of(owner.monotonic(), BIG, 8, 1));
    place = tslab::stats(owner).place;
    CHECK(place != owner.id() && live_in(place) == 1);
    tslab::monotonic_resource outlives{owner};
    static_cast<void>(piece_of(&outlives, 100, 8, 1));
    owner.close();
    CHECK_EQ(live_in(place), 2);
  }
  CHECK_EQ(live_in(place), 0);
}

void move_test() {
  tslab::arena first{"first"}, second{"second"};
  auto *resource = first.monotonic();
  piece kept = piece_of(resource, 100, 8, 1);
  CHECK_EQ(second.monotonic()->id(), second.id());
  second = std::move(first);
  CHECK(second.monotonic() == resource && resource->id() == second.id());
  CHECK(first.monotonic() == nullptr);
  pattern_check(kept.begin, kept.bytes, 1);
}

}  // namespace

int main() {
  tests_run({pieces_test, containers_test, chunks_test, given_back_test, release_test,
             destructor_test, refused_test, equality_test, closed_test, reset_test, ended_test,
             ended_by_id_test, move_test});
  shared_test();
  return 0;
}
