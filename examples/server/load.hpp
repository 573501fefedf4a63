// load: threads that serve requests, in one of several modes, and what that took.
#pragma once

#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "service.hpp"

namespace server {

// How a request meets epochs.
enum class mode {
  plain,      // not at all
  wrapped,    // an epoch each, and nothing said of what survives
  shared,     // one epoch for all requests of a path, open as long as the server
  annotated,  // an epoch each, and what survives is made outside
  released,   // released at its end, and what survives or libraries keep is made outside
  trusting,   // the same, but what libraries keep is left to the allocator
};

constexpr std::array mode_names{"plain", "wrapped", "shared", "annotated", "released", "trusting"};

inline std::optional<mode> mode_named(const char *name) {
  for (std::size_t i = 0; i < mode_names.size(); i++)
    if (std::strcmp(mode_names[i], name) == 0) return static_cast<mode>(i);
  return std::nullopt;
}

struct request {
  const char *path;
  std::string begin;        // of the body
  const std::string *rest;  // of the body
  std::string expected;     // how the answer begins
};

struct result {
  double cpu_us;  // of a request
  double peak_mb;
  double idle_mb;  // when nothing was asked for a while, and the workers wait
  long wrong;      // answers
};

// Requests of every kind, made beforehand, by their number. Many share the rest of their bodies.
class request_list {
 public:
  request_list() {
    for (unsigned i = 0; i < rest_count; i++) {
      tags_.push_back(list(i, [](unsigned n) { return quoted(n, " is the number of a tag"); }));
      lines_.push_back(list(40, [=](unsigned n) { return quoted(n + i, " is where a line is"); }));
      rows_.push_back(list(2 * i, [](unsigned n) { return std::to_string(n); }));
    }
    for (unsigned i = 0; i < count; i++) all_.push_back(make(i));
  }

  const request &operator[](unsigned number) const { return all_[number % count]; }

 private:
  static constexpr unsigned count = 20000, rest_count = 64;
  static constexpr unsigned items = 20000, users = 5000;

  static std::string quoted(unsigned number, const char *text) {
    return '"' + std::to_string(number) + text + '"';
  }

  // The rest of a body whose last member is a list.
  template <class Element>
  static std::string list(unsigned length, Element element) {
    std::string all;
    for (unsigned i = 0; i < length; i++) all += (i == 0 ? "" : ", ") + element(i);
    return all + "]}";
  }

  request make(unsigned i) const {
    unsigned chance = i * 2654435761u >> 8, rest = chance % rest_count;
    if (i % 500 == 0) return {"/item", "{\"item\": [", &tags_[rest], "400 "};
    if (i % 50 == 1) return report(rest);
    if (i % 10 == 2) return search(rest);
    if (i % 5 == 3) return login(chance % users, rest);
    return item(chance % items, rest);
  }

  request item(unsigned number, unsigned rest) const {
    std::string text = std::to_string(number);
    return {"/item", "{\"item\": " + text + ", \"tags\": [", &tags_[rest],
            "200 item " + text + " costs"};
  }

  request login(unsigned number, unsigned rest) const {
    std::string user = "somebody with a name and the number " + std::to_string(number);
    return {"/login", R"({"user": ")" + user + R"(", "settings": {"rows": 25}, "tags": [)",
            &tags_[rest], "200 welcome " + user};
  }

  request search(unsigned rest) const {
    std::string wanted = std::to_string(rest + 7);
    return {"/search", R"({"expression": "^)" + wanted + R"([^0-9]", "lines": [)", &lines_[rest],
            "200 found " + wanted};
  }

  request report(unsigned rest) const {
    return {"/report", R"({"rows": [)", &rows_[rest],
            "200 sum " + std::to_string(rest * (2 * rest - 1))};
  }

  std::vector<std::string> tags_, lines_, rows_;
  std::vector<request> all_;
};

class load {
 public:
  explicit load(mode how) : mode_(how), service_(annotations_of(how)) {
    if (how == mode::shared)
      for (const char *path : {"/item", "/login", "/search", "/report"})
        epochs_.emplace_back(std::string(path), tslab::epoch{path});
  }

  result run(unsigned count) {
    std::vector<std::thread> workers;
    double before_us = cpu_us();
    left_ = count;
    for (unsigned i = 0; i < worker_count; i++) workers.emplace_back([this] { work(); });
    wait([this] { return asleep_ == worker_count; });
    result all{};
    all.cpu_us = (cpu_us() - before_us) / count;
    all.peak_mb = status_mb("VmHWM:");
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    all.idle_mb = status_mb("VmRSS:");
    all.wrong = wrong_;
    tell([this] { may_end_ = true; });
    for (auto &each : workers) each.join();
    return all;
  }

 private:
  static constexpr unsigned worker_count = 4;

  static annotations annotations_of(mode how) {
    switch (how) {
      case mode::plain:
      case mode::wrapped:
      case mode::shared: return annotations::none;
      case mode::annotated:
      case mode::trusting: return annotations::own;
      case mode::released: return annotations::libraries;
    }
    return annotations::none;
  }

  void work() {
    for (long number; (number = --left_) >= 0;) {
      if (!serve(requests_[static_cast<unsigned>(number)])) wrong_++;
    }
    tell([this] { asleep_++; });
    wait([this] { return may_end_; });
  }

  bool serve(const request &r) {
    switch (mode_) {
      case mode::plain: return handle(r);
      case mode::shared: {
        tslab::scope here{epoch_of(r.path)};
        return handle(r);
      }
      case mode::wrapped:
      case mode::annotated: {
        tslab::epoch epoch{r.path};
        tslab::scope here{epoch};
        return handle(r);
      }
      case mode::released:
      case mode::trusting: {
        tslab::arena memory{r.path};
        tslab::scope here{memory};
        return handle(r);
      }
    }
    return false;
  }

  bool handle(const request &r) {
    return service_.answer(r.path, r.begin + *r.rest).compare(0, r.expected.size(), r.expected) ==
           0;
  }

  const tslab::epoch &epoch_of(const char *path) const {
    for (const auto &[known, epoch] : epochs_)
      if (known == path) return epoch;
    std::abort();
  }

  template <class Change>
  void tell(Change change) {
    std::lock_guard locked(lock_);
    change();
    changed_.notify_all();
  }

  template <class Condition>
  void wait(Condition holds) {
    std::unique_lock locked(lock_);
    changed_.wait(locked, holds);
  }

  static double cpu_us() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    auto us = [](const timeval &t) {
      return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
    };
    return us(used.ru_utime) + us(used.ru_stime);
  }

  static double status_mb(const std::string &wanted) {
    std::ifstream file("/proc/self/status");
    for (std::string name; file >> name;) {
      double kib = 0;
      if (name == wanted && file >> kib) return kib / 1024;
    }
    return 0;
  }

  mode mode_;
  request_list requests_;
  service service_;
  std::vector<std::pair<std::string, tslab::epoch>> epochs_;
  std::atomic<long> left_{0};
  std::atomic<long> wrong_{0};
  std::mutex lock_;
  std::condition_variable changed_;
  unsigned asleep_ = 0;
  bool may_end_ = false;
};

}  // namespace server
