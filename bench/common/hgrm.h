// Histograms as text that other programs merge. A section is one comment line,
//   # ABOUT allocator=FILE version=VERSION ns_per_tick=NS
// where ABOUT is `program=NAME operation=NAME` and what else tells it from others, and a line
// `value_ns count` for each bucket that is not empty, with the bucket's least value.
#ifndef BENCH_HGRM_H
#define BENCH_HGRM_H

#include "histogram.h"

// Makes `path` a file of one section.
void hgrm_write(const char *path, const char *about, const histogram *h, double ns_per_tick);

// Adds a section.
void hgrm_append(const char *path, const char *about, const histogram *h, double ns_per_tick);

#endif
