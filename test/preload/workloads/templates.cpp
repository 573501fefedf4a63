// A compiler's labour: recursive templates, variants, regular expressions, ranges of containers.
#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <regex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

template <int N>
struct Fibonacci {
  static constexpr unsigned long long value = Fibonacci<N - 1>::value + Fibonacci<N - 2>::value;
};
template <>
struct Fibonacci<0> {
  static constexpr unsigned long long value = 0;
};
template <>
struct Fibonacci<1> {
  static constexpr unsigned long long value = 1;
};

template <typename... Types>
using Wide = std::tuple<std::vector<Types>..., std::map<Types, std::string>...>;

template <size_t... Index>
auto table(std::index_sequence<Index...>) {
  return std::array<unsigned long long, sizeof...(Index)>{Fibonacci<Index>::value...};
}

using Value = std::variant<int, double, std::string, std::vector<int>>;

struct Length {
  size_t operator()(int) const { return 1; }
  size_t operator()(double) const { return 2; }
  size_t operator()(const std::string &text) const { return text.size(); }
  size_t operator()(const std::vector<int> &numbers) const { return numbers.size(); }
};

template <typename T>
T folded(const std::vector<T> &values, const std::function<T(T, T)> &step) {
  return std::accumulate(values.begin(), values.end(), T{}, step);
}

}  // namespace

int main() {
  auto numbers = table(std::make_index_sequence<80>());
  Wide<int, long, char, double, std::string> wide;
  std::get<0>(wide).assign(numbers.begin(), numbers.begin() + 20);
  std::vector<Value> values{1, 2.5, std::string("text"), std::vector<int>{1, 2, 3}};
  size_t total = 0;
  for (const auto &value : values) total += std::visit(Length(), value);
  std::unordered_map<std::string, std::vector<std::smatch>> matches;
  std::string text = "alpha=1, beta=22, gamma=333";
  std::regex pair("([a-z]+)=([0-9]+)");
  size_t pairs = static_cast<size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), pair), std::sregex_iterator()));
  std::cout << numbers.back() << ' ' << total << ' ' << pairs << ' '
            << folded<int>(std::get<0>(wide), std::plus<int>()) << '\n';
  return 0;
}
