// lines: what each of these programs makes twice, with another library and with tslab: a list of
// lines that end together.
#pragma once

#include <stdio.h>
#include <string.h>

#include "../expect.h"

enum { LINES = 1000 };

struct line {
  struct line *next;
  char text[40];
};

static inline struct line *line_begin(void *memory, struct line *next, int number) {
  EXPECT(memory != NULL);
  struct line *line = (struct line *)memory;
  line->next = next;
  snprintf(line->text, sizeof line->text, "line %d", number);
  return line;
}

static inline size_t lines_total(const struct line *first) {
  size_t total = 0;
  for (const struct line *line = first; line != NULL; line = line->next)
    total += strlen(line->text);
  return total;
}
