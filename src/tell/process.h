// process: the row of the process as a whole in the statistics file. Any thread; without a file no
// call has an effect.
#pragma once

#include "tell/rows.h"

// Writes the size classes, which never change.
TSL_HIDDEN void tsl_report_classes(void);

// Writes the process's name: once it has ended, readers of its file cannot ask the system.
TSL_HIDDEN void tsl_report_name(void);

// Writes the rest of the process's row.
TSL_HIDDEN void tsl_report_process(void);

// The same if memory was opened since the last report, so that the row is right for a process that
// takes memory and then waits.
TSL_HIDDEN void tsl_report_growth(void);

// Writes the counts of large blocks, and the peak if it is a new one.
TSL_HIDDEN void tsl_report_all_large(void);
