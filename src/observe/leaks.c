#include "observe/leaks.h"

#include "base/check.h"
#include "epoch/inspect.h"

static int report_epoch(tslab_epoch epoch, void *count) {
  tslab_epoch_stats stats = {.size = sizeof stats};
  if (!tsl_inspect_epoch(epoch, &stats)) return 0;
  if (stats.state != TSLAB_CLOSED || stats.live_objects == 0) return 0;
  tsl_warn("leak: epoch %zu \"%s\", closed %zu ms ago: %zu objects, %zu bytes", (size_t)epoch,
           stats.label, (size_t)stats.closed_ms, stats.live_objects, stats.live_bytes);
  ++*(size_t *)count;
  return 0;
}

size_t tsl_leaks_report(void) {
  size_t count = 0;
  tsl_inspect_epochs(report_epoch, &count);
  return count;
}
