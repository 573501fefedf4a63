// The figures of a run, in one order for the result line and for a CSV file.
#ifndef BENCH_SYNTHETIC_FIGURES_H
#define BENCH_SYNTHETIC_FIGURES_H

#include <stdint.h>

#define FIGURES_MAX 64u

typedef struct figure {
  const char *key;
  char text[64];  // empty: there is no such figure in this run
} figure;

typedef struct figures {
  const char *program;
  unsigned count;
  figure list[FIGURES_MAX];
} figures;

void figures_count(figures *f, const char *key, uint64_t value);
void figures_real(figures *f, const char *key, double value);
void figures_text(figures *f, const char *key, const char *value);
void figures_none(figures *f, const char *key);

// The result line, without its end.
void figures_report(const figures *f);

// Appends a row of them to a table, behind the allocator and its version.
void figures_append(const figures *f, const char *path);

#endif
