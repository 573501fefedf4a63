#include "synthetic/period.h"

#include "common/epochs.h"

static void period_open(period *p) {
  const pattern *wanted = &p->settings->pattern;
  tslab_epoch_options shape = {.size = sizeof shape, .purge = wanted->purge};
  // An epoch for all requests is long and loses objects one by one.
  shape.first_cell_bytes = wanted->batch == 0 ? TSLAB_NO_CELLS : 0;
  p->epoch = epochs_open(wanted->name, &shape);
  p->opened++;
  p->living = 0;
}

static void period_close(period *p) {
  p->survivors += epochs_close(p->epoch).objects;
  p->left += p->living;
  p->requests = 0;
}

void period_enter(period *p) {
  if (!p->settings->has_epochs) {
    return;
  }
  if (p->requests == 0) {
    period_open(p);
  }
  epochs_check(tslab_scope_enter(&p->scope, p->epoch));
}

void period_leave(period *p) {
  if (!p->settings->has_epochs) {
    return;
  }
  epochs_check(tslab_scope_leave(&p->scope));
  p->requests++;
  if (p->requests == p->settings->pattern.batch) {
    period_close(p);
  }
}

void period_end(period *p) {
  if (p->requests != 0) {
    period_close(p);
  }
}
