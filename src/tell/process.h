// process: the row of the process as a whole in the statistics file. Any thread; without a file no
// call has an effect.
#pragma once

#include "tell/rows.h"

// Writes the size classes, of which only what was purged changes.
TSL_HIDDEN void tsl_report_classes(void);

// Counts pages of a slab that went back to the system.
TSL_HIDDEN void tsl_report_purged(unsigned class, size_t bytes);

// Writes the process's name: once it has ended, readers of its file cannot ask the system.
TSL_HIDDEN void tsl_report_name(void);

// Writes the rest of the process's row.
TSL_HIDDEN void tsl_report_process(void);

// The same if memory was opened since the last report, so that the row is right for a process that
// takes memory and then waits.
TSL_HIDDEN void tsl_report_growth(void);

// The same if idle memory has moved, gone back or been refused since the last report. The helper,
// because the program's threads may be silent.
TSL_HIDDEN void tsl_report_idle(void);

// Writes the counts of large blocks, and the peak if it is a new one.
TSL_HIDDEN void tsl_report_all_large(void);

// Writes the soft limit.
TSL_HIDDEN void tsl_report_limit(void);
