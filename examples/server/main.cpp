// A server with an epoch for each request, in several modes. Nobody connects: the requests come
// from a list. What the mode costs is printed at the end.
//
//   server MODE [REQUESTS]
#include <cstdlib>
#include <memory>

#include "load.hpp"

namespace {

constexpr long most_requests = 100'000'000;

[[noreturn]] void refuse(const char *why, const char *value) {
  std::fprintf(stderr, "%s: %s\nusage: server MODE [REQUESTS]\nMODE is one of:", why, value);
  for (const char *name : server::mode_names) std::fprintf(stderr, " %s", name);
  std::fputc('\n', stderr);
  std::exit(2);
}

unsigned count_of(const char *text) {
  char *end;
  long count = std::strtol(text, &end, 10);
  if (*end != '\0' || count < 1 || count > most_requests) refuse("not a number of requests", text);
  return static_cast<unsigned>(count);
}

}  // namespace

int main(int count, char **values) {
  if (count < 2 || count > 3) refuse("one or two arguments are wanted", "server");
  auto mode = server::mode_named(values[1]);
  if (!mode) refuse("not a mode", values[1]);
  unsigned requests = count == 3 ? count_of(values[2]) : 200000;

  auto load = std::make_unique<server::load>(*mode);
  server::result all = load->run(requests);
  std::printf("%s: %.1f us of a processor a request, %.1f MB at most, %.1f MB idle, %ld wrong\n",
              values[1], all.cpu_us, all.peak_mb, all.idle_mb, all.wrong);
  return all.wrong == 0 ? 0 : 1;
}
