// resident: what is resident of a program, and no file's, as the program looks at it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct resident {
  size_t peak_bytes, lowest_bytes;  // the lowest is behind the peak
};

static inline size_t resident_bytes(void) {
  char line[256];
  size_t kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  if (status == NULL) abort();
  while (kib == 0 && fgets(line, sizeof line, status) != NULL) {
    if (strncmp(line, "RssAnon:", 8) == 0) kib = strtoul(line + 8, NULL, 10);
  }
  fclose(status);
  return kib * 1024;
}

static inline void resident_look(struct resident *resident, bool may_rise) {
  size_t bytes = resident_bytes();
  if (may_rise && bytes > resident->peak_bytes)
    resident->peak_bytes = resident->lowest_bytes = bytes;
  if (bytes < resident->lowest_bytes) resident->lowest_bytes = bytes;
}

static inline void resident_print(const struct resident *resident) {
  printf("{\"peak_bytes\": %zu, \"trough_bytes\": %zu}\n", resident->peak_bytes,
         resident->lowest_bytes);
}
