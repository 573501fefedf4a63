// reports: when a process makes its statistics file, and the reports that its threads repeat.
#pragma once

#include "state/heap.h"

// Makes the file, and begins to sample if that is asked for, unless option `stats` is off or an
// attempt was made before. Any thread.
TSL_HIDDEN void tsl_report_start(void);

// Reports the home, the part that its thread is in, and the process, at most once a millisecond.
// Makes the file once the process has lived for option `stats_delay_ms`. Owner only.
TSL_HIDDEN void tsl_report_tick(struct tsl_home *home);

// Makes the file once the process has opened much memory since it began, in case that it falls
// silent before its next tick; with option sample_bytes or sample_events at once. Owner only.
TSL_HIDDEN void tsl_report_at_refill(void);

// The same when a large block was allocated or resized, which refills nothing; also once the
// process has lived for option `stats_delay_ms`. Any thread.
TSL_HIDDEN void tsl_report_at_large(void);

// In the child of a fork, which makes a file of its own.
TSL_HIDDEN void tsl_report_after_fork(void);
