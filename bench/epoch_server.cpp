// The server of examples/server, in one of its modes: processor time of a request, what is resident
// at most, and what is when its threads have waited for a while.
#include "../examples/server/load.hpp"
#include "common/epochs.h"

extern "C" {
#include "common/args.h"
#include "common/report.h"
}

namespace {

server::mode mode_take(args *a) {
  server::mode mode = server::mode::plain;
  for (const char *name : server::mode_names) {
    std::string flag = std::string("--") + name;
    if (!args_take_flag(a, flag.c_str())) {
      continue;
    }
    if (mode != server::mode::plain) {
      args_refuse(a, "a second mode", flag.c_str());
    }
    mode = *server::mode_named(name);
  }
  return mode;
}

}  // namespace

int main(int argc, char **argv) {
  args a = args_open(
      argc, argv, "epoch_server [--wrapped|--shared|--annotated|--released|--trusting] [REQUESTS]");
  server::mode mode = mode_take(&a);
  unsigned requests = args_number32(&a, 0, 200000);
  args_end(&a, 1);
  const char *name = server::mode_names[static_cast<size_t>(mode)];
  if (mode != server::mode::plain) {
    epochs_demand();
  }

  server::result all = server::load(mode).run(requests);
  report_open("epoch_server");
  report_text("mode", name);
  report_count("requests", requests);
  report_real("cpu_us", all.cpu_us);
  report_real("peak_mb", all.peak_mb);
  report_real("idle_mb", all.idle_mb);
  report_count("wrong", static_cast<uint64_t>(all.wrong));
  report_close("%s: %.1f us of a processor a request, %.1f MB at most, %.1f MB idle", name,
               all.cpu_us, all.peak_mb, all.idle_mb);
  return all.wrong == 0 ? 0 : 1;
}
