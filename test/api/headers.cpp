// All headers compile without a warning in each standard, with what their macros become.
#include <tslab.h>
#include <tslab_stats.h>
#include <tslab_stats_read.h>
#include <tslab.hpp>

#include <string>

tslab_epoch no_epoch(bool wanted) { return wanted ? TSLAB_NO_EPOCH : TSLAB_DEFAULT; }

// What is a template is compiled where it is used.
void use(tslab::arena &arena, tslab::rotation &rotation) {
  tslab::scope in{arena};
  tslab::deferred call = arena.defer([] {});
  auto text = tslab::make<std::string>(rotation.current(), "text");
  auto number = tslab::make_handle<int>(arena, 1);
  std::pmr::string copy(*text, arena.resource());
  std::basic_string<char, std::char_traits<char>, tslab::allocator<char>> mine{
      tslab::allocator<char>{tslab::default_epoch}};
  if (call.cancel() && number.free()) mine = copy;
}
