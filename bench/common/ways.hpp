// A program that does the same work in several ways: by the clock, where the ways take turns round
// by round and the best round of each counts; or by instructions, each way under callgrind.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
#include "common/args.h"
#include "common/callgrind.h"
#include "common/clock.h"
#include "common/report.h"
}
#include "common/epochs.h"

namespace ways {

struct way {
  const char *name;
  void (*run)(uint64_t count);
  unsigned beside;  // the way that it is compared with: its place in the table
};

struct table {
  const char *program;
  void (*start)();  // before the first run
  const way *first;
  size_t count;
};

constexpr const char *usage_of_all = " [COUNT [ROUNDS]] | --instructions|--only WAY [COUNT]";

inline std::vector<double> times(const table &t, uint64_t count, uint64_t rounds) {
  std::vector<double> best(t.count, 1e18);
  for (uint64_t round = 0; round < rounds; round++) {
    for (size_t i = 0; i < t.count; i++) {
      uint64_t start = clock_ns();
      t.first[i].run(count);
      double ns = static_cast<double>(clock_ns() - start);
      best[i] = std::min(best[i], ns / static_cast<double>(count));
    }
  }
  return best;
}

inline std::vector<double> counts(const table &t, uint64_t count) {
  std::vector<double> found;
  std::string text = std::to_string(count);
  for (size_t i = 0; i < t.count; i++) {
    const char *arguments[] = {"--only", t.first[i].name, text.c_str(), nullptr};
    uint64_t all = callgrind_count(arguments);
    found.push_back(static_cast<double>(all) / static_cast<double>(count));
  }
  return found;
}

// Keys are NAME_UNIT and NAME_x, which is over the way beside.
inline void report(const table &t, const std::vector<double> &found, const char *unit) {
  std::string text;
  report_open(t.program);
  for (size_t i = 0; i < t.count; i++) {
    const way &w = t.first[i];
    std::string name = w.name;
    report_real((name + "_" + unit).c_str(), found[i]);
    report_real((name + "_x").c_str(), found[i] / found[w.beside]);
    text += (i == 0 ? "" : ", ") + name + " " + std::to_string(static_cast<uint64_t>(found[i]));
  }
  report_close("%s: %s", unit, text.c_str());
}

inline const way &way_named(const table &t, const args &a, std::string_view name) {
  const way *end = t.first + t.count;
  const way *found = std::find_if(t.first, end, [=](const way &w) { return w.name == name; });
  if (found == end) {
    args_refuse(&a, "not a way", name.data());
  }
  return *found;
}

// `count` is how often each way runs by default, in each of `rounds` rounds.
inline void program_run(const table &t, int argc, char **argv, uint64_t count, uint64_t rounds) {
  std::string usage = std::string(t.program) + usage_of_all;
  args a = args_open(argc, argv, usage.c_str());
  bool by_instructions = args_take_flag(&a, "--instructions");
  const char *only = args_take_value(&a, "--only");
  bool by_clock = !by_instructions && only == nullptr;
  count = args_number(&a, 0, count);
  rounds = by_clock ? args_number(&a, 1, rounds) : 1;
  args_end(&a, by_clock ? 2 : 1);
  const way *chosen = only == nullptr ? nullptr : &way_named(t, a, only);
  epochs_demand();
  if (by_instructions) {
    report(t, counts(t, count), "instructions");
    return;
  }
  t.start();
  if (chosen != nullptr) {
    chosen->run(count);
    callgrind_counted(chosen->run, count);
  } else {
    report(t, times(t, count, rounds), "ns");
  }
}

}  // namespace ways
