#include "synthetic/figures.h"

#include "common/allocator.h"
#include "common/csv.h"
#include "common/output.h"
#include "common/report.h"

#include <stdio.h>
#include <stdlib.h>

#define HEADER_BYTES 256u

static figure *figure_add(figures *f, const char *key) {
  if (f->count == FIGURES_MAX) {
    fputs("too many figures\n", stderr);
    exit(1);
  }
  figure *added = &f->list[f->count++];
  added->key = key;
  return added;
}

void figures_count(figures *f, const char *key, uint64_t value) {
  figure *added = figure_add(f, key);
  snprintf(added->text, sizeof added->text, "%llu", (unsigned long long)value);
}

void figures_real(figures *f, const char *key, double value) {
  figure *added = figure_add(f, key);
  snprintf(added->text, sizeof added->text, "%.4f", value);
}

void figures_text(figures *f, const char *key, const char *value) {
  figure *added = figure_add(f, key);
  snprintf(added->text, sizeof added->text, "%s", value);
}

void figures_none(figures *f, const char *key) { figure_add(f, key); }

void figures_report(const figures *f) {
  report_open(f->program);
  for (unsigned i = 0; i < f->count; i++) {
    if (f->list[i].text[0] != '\0') {
      report_text(f->list[i].key, f->list[i].text);
    }
  }
}

void figures_append(const figures *f, const char *path) {
  char header[HEADER_BYTES];
  int length = snprintf(header, sizeof header, "allocator,version");
  for (unsigned i = 0; i < f->count && length < (int)sizeof header; i++) {
    length += snprintf(header + length, sizeof header - (size_t)length, ",%s", f->list[i].key);
  }
  char version[64];
  allocator_version(version, sizeof version);
  FILE *file = csv_open(path, header);
  fprintf(file, "%s,%s", allocator_file(), version);
  for (unsigned i = 0; i < f->count; i++) {
    fprintf(file, ",%s", f->list[i].text);
  }
  fputc('\n', file);
  output_close(file, path);
}
