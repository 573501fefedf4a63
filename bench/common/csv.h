// Tables to which several runs add their rows.
#ifndef BENCH_CSV_H
#define BENCH_CSV_H

#include <stdio.h>

// Opens a table for more rows; a new or empty one gets `header` first. Ends the program when it
// cannot be written, and when it begins with another header. Close it by output_close.
FILE *csv_open(const char *path, const char *header);

#endif
