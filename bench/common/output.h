// Files that a program writes on demand. They are opened at the end, so that stdio's own blocks do
// not lie among those that are measured.
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include "args.h"

#include <stdio.h>

// Drops `name` and the path behind it, and returns that; NULL when `name` was not there. Refuses a
// path that cannot be written, before the program has worked in vain.
const char *output_take(args *a, const char *name);

// Opens as fopen does, closes; both end the program when that fails.
FILE *output_open(const char *path, const char *mode);
void output_close(FILE *file, const char *path);

#endif
