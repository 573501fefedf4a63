// service: what the server does for its requests, and what outlives them: a cache of pages and the
// sessions. Any number of threads serve. It is written as if there were no epochs, but for
// `survivors` where something is kept, and `kept_by_library` where a library keeps something.
#pragma once

#include <ctime>
#include <deque>
#include <future>
#include <iomanip>
#include <list>
#include <locale>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <tslab.hpp>
#include <unordered_map>
#include <vector>

#include "json.hpp"

namespace server {

enum class annotations { none, own, libraries };

// What is made while one of these lives is to outlive the request, and lies outside of its epoch
// where the server says so at all.
class survivors {
 public:
  explicit survivors(annotations wanted) {
    if (wanted != annotations::none) outside_.emplace(tslab::default_epoch);
  }

 private:
  std::optional<tslab::scope> outside_;
};

// The pages that were asked for last.
class page_cache {
 public:
  explicit page_cache(annotations wanted) : annotations_(wanted) {}

  std::optional<std::string> get(int item) {
    std::lock_guard locked(lock_);
    auto found = places_.find(item);
    if (found == places_.end()) return std::nullopt;
    pages_.splice(pages_.begin(), pages_, found->second);
    return found->second->text;
  }

  void put(int item, const std::string &text) {
    survivors kept(annotations_);
    std::lock_guard locked(lock_);
    if (places_.count(item) != 0) return;  // another thread was faster
    pages_.push_front({item, text});
    places_[item] = pages_.begin();
    if (pages_.size() <= most) return;
    places_.erase(pages_.back().item);
    pages_.pop_back();
  }

 private:
  static constexpr std::size_t most = 4000;
  struct page {
    int item;
    std::string text;
  };

  annotations annotations_;
  std::mutex lock_;
  std::list<page> pages_;
  std::unordered_map<int, std::list<page>::iterator> places_;
};

// Who has logged in lately.
class session_table {
 public:
  explicit session_table(annotations wanted) : annotations_(wanted) {}

  void open(const std::string &user, const json::object &settings) {
    survivors kept(annotations_);
    std::lock_guard locked(lock_);
    if (sessions_.insert_or_assign(user, settings).second) order_.push_back(user);
    if (order_.size() <= most) return;
    sessions_.erase(order_.front());
    order_.pop_front();
  }

  std::size_t size() {
    std::lock_guard locked(lock_);
    return sessions_.size();
  }

 private:
  static constexpr std::size_t most = 2000;

  annotations annotations_;
  std::mutex lock_;
  std::map<std::string, json::object> sessions_;
  std::deque<std::string> order_;
};

class service {
 public:
  explicit service(annotations wanted)
      : annotations_(wanted), cache_(wanted), sessions_(wanted), locale_("C.UTF-8") {
    // A locale caches at its first use how it writes numbers.
    if (wanted == annotations::libraries) page(0);
  }

  // The answer to a request.
  std::string answer(const std::string &path, const std::string &body) try {
    json::value asked = json::parse(body);
    if (path == "/item") return item(static_cast<int>(asked.get<double>("item")));
    if (path == "/login") return login(asked);
    if (path == "/search") return search(asked);
    if (path == "/report") return report(asked);
    return "404";
  } catch (const std::exception &wrong) {
    return std::string("400 ") + wrong.what();
  }

 private:
  // For calls of libraries that keep some of what they allocate: a release of the request's epoch
  // would end that, too.
  template <class Call>
  auto kept_by_library(Call call) const {
    bool said = annotations_ == annotations::libraries;
    survivors kept(said ? annotations_ : annotations::none);
    return call();
  }

  std::string item(int number) {
    if (auto known = cache_.get(number)) return *known;
    std::string made = page(number);
    cache_.put(number, made);
    return made;
  }

  std::string page(int number) const {
    std::ostringstream out;
    out.imbue(locale_);
    out << "200 item " << std::to_string(number) << " costs " << std::fixed << std::setprecision(2)
        << number / 7.0 << "; in stock: " << std::boolalpha << (number % 3 != 0) << '\n';
    for (int line = 0; line < 30 + number % 40; line++)
      out << "part " << line << " of " << number << ": " << std::setw(10) << number * line << '\n';
    return out.str();
  }

  std::string login(const json::value &asked) {
    const auto &user = asked.get<std::string>("user");
    sessions_.open(user, asked.get<json::object>("settings"));
    char when[32];
    std::time_t now = std::time(nullptr);
    std::tm parts;
    kept_by_library([&] { return localtime_r(&now, &parts); });  // the time zone
    std::strftime(when, sizeof when, "%c", &parts);
    return "200 welcome " + user + ", it is " + when;
  }

  static std::string search(const json::value &asked) {
    std::regex wanted(asked.get<std::string>("expression"));
    std::string found;
    for (const auto &line : asked.get<json::array>("lines")) {
      std::smatch match;
      if (std::regex_search(std::get<std::string>(line), match, wanted)) found += match.str() + ' ';
    }
    return "200 found " + found;
  }

  // Half of the work is another thread's.
  std::string report(const json::value &asked) {
    const auto &rows = asked.get<json::array>("rows");
    auto middle = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
    auto sum = [](auto from, auto to) {
      return std::accumulate(from, to, 0.0, [](double all, const json::value &row) {
        return all + std::get<double>(row);
      });
    };
    auto first = kept_by_library([&] {  // the thread's vector of thread-local memory
      return std::async(std::launch::async, sum, rows.begin(), middle);
    });
    double second = sum(middle, rows.end());
    std::string all = std::to_string(static_cast<long>(first.get() + second));
    if (rows.size() >= long_rows)
      kept_by_library([&] {  // the buffer of stdout
        return std::printf("a long report: %zu rows, %zu sessions\n", rows.size(),
                           sessions_.size());
      });
    return "200 sum " + all;
  }

  static constexpr std::size_t long_rows = 124;

  annotations annotations_;
  page_cache cache_;
  session_table sessions_;
  std::locale locale_;
};

}  // namespace server
