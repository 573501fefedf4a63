// json: as much of it as the server's requests need. Values are ordinary containers.
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace json {

struct value;
using array = std::vector<value>;
using object = std::map<std::string, value>;

struct value : std::variant<std::nullptr_t, bool, double, std::string, array, object> {
  using variant::variant;

  // The member of an object; throws where there is none, or where it is of another type.
  template <class T>
  const T &get(const std::string &name) const {
    return std::get<T>(std::get<object>(*this).at(name));
  }
};

class parser {
 public:
  explicit parser(const std::string &text) : at_(text.c_str()) {}

  value whole() {
    value made = next(0);
    if (skip() != '\0') fail("more behind the end");
    return made;
  }

 private:
  static constexpr int most_levels = 32;

  [[noreturn]] static void fail(const char *why) { throw std::runtime_error(why); }

  char skip() {
    while (std::isspace(static_cast<unsigned char>(*at_))) at_++;
    return *at_;
  }

  bool take(char wanted) {
    if (skip() != wanted) return false;
    at_++;
    return true;
  }

  void demand(char wanted) {
    if (!take(wanted)) fail("something else was due");
  }

  value next(int level) {
    if (level > most_levels) fail("too deep");
    switch (skip()) {
      case '{': return members(level);
      case '[': return elements(level);
      case '"': return text();
      case 't': return word("true", true);
      case 'f': return word("false", false);
      case 'n': return word("null", nullptr);
      default: return number();
    }
  }

  value members(int level) {
    object all;
    demand('{');
    if (take('}')) return all;
    do {
      skip();
      std::string name = text();
      demand(':');
      all[name] = next(level + 1);
    } while (take(','));
    demand('}');
    return all;
  }

  value elements(int level) {
    array all;
    demand('[');
    if (take(']')) return all;
    do all.push_back(next(level + 1));
    while (take(','));
    demand(']');
    return all;
  }

  std::string text() {
    std::string all;
    demand('"');
    for (; *at_ != '"'; at_++) {
      if (*at_ == '\\') at_++;
      if (*at_ == '\0') fail("a text without an end");
      all += *at_;
    }
    at_++;
    return all;
  }

  value word(const char *spelt, value meant) {
    for (; *spelt != '\0'; spelt++, at_++)
      if (*at_ != *spelt) fail("no such word");
    return meant;
  }

  value number() {
    char *end;
    double parsed = std::strtod(at_, &end);
    if (end == at_) fail("no value");
    at_ = end;
    return parsed;
  }

  const char *at_;
};

inline value parse(const std::string &text) { return parser(text).whole(); }

}  // namespace json
