// A game gives each frame an arena, the epoch that is released with its block: ordinary containers
// for what the frame needs, no free list, and the same pages again in the next frame.
#include <algorithm>
#include <memory_resource>
#include <string>
#include <tslab.hpp>
#include <vector>

#include "expect.h"

namespace {

constexpr int frames = 600;

struct entity {
  int x, y;
};

struct draw {
  const entity *what;
  int depth;
};

struct world {
  std::vector<entity> entities;
  std::vector<std::string> achievements;
};

std::vector<const entity *> cull(const world &w, int frame) {
  std::vector<const entity *> visible;
  for (const auto &e : w.entities)
    if ((e.x + frame) % 100 < 50) visible.push_back(&e);
  return visible;
}

// The list of achievements outlives the frame, and so must its strings.
void achieve(world &w, int frame) {
  tslab::scope keep{tslab::default_epoch};
  w.achievements.push_back("survived to frame " + std::to_string(frame));
}

std::size_t render(world &w, int frame, const tslab::arena &epoch) {
  tslab::scope in{epoch};
  auto visible = cull(w, frame);
  std::pmr::vector<draw> draws{epoch.resource()};
  for (auto *e : visible) draws.push_back({e, e->y});
  std::sort(draws.begin(), draws.end(), [](auto &a, auto &b) { return a.depth < b.depth; });
  EXPECT(tslab_epoch_of(visible.data()) == epoch.id());
  EXPECT(tslab_epoch_of(draws.data()) == epoch.id());
  if (frame % 200 == 199) achieve(w, frame);
  return draws.size();
}

std::size_t held_bytes(const tslab::arena &epoch) {
  tslab_epoch_stats stats{};
  stats.size = sizeof stats;
  EXPECT_DONE(tslab_epoch_get_stats(epoch.id(), &stats));
  return stats.held_bytes;
}

}  // namespace

int main() {
  world w;
  for (int i = 0; i < 5000; i++) w.entities.push_back({i * 7 % 1000, i * 13 % 1000});

  tslab::epoch_options options;
  options.purge = TSLAB_PURGE_KEEP;  // the next frame wants as much again

  std::size_t drawn = 0, most_bytes = 0;
  for (int frame = 0; frame < frames; frame++) {
    tslab::arena epoch{"frame", options};
    drawn += render(w, frame, epoch);
    most_bytes = std::max(most_bytes, held_bytes(epoch));
  }
  EXPECT(drawn == frames * w.entities.size() / 2);
  EXPECT(w.achievements.size() == 3 && w.achievements.back() == "survived to frame 599");

  std::printf("%d frames drew %zu entities\n", frames, drawn);
  std::printf("the largest frame held %zu KiB\n", most_bytes / 1024);
  for (const auto &text : w.achievements) std::printf("%s\n", text.c_str());
}
