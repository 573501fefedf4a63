#include "args.h"

#include "threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MOST (1ull << 48)

args args_open(int argc, char **argv, const char *usage) {
  args a = {argc - 1, argv + 1, usage};
  if (args_take_flag(&a, "--help")) {
    printf("usage: %s\n", usage);
    exit(0);
  }
  return a;
}

void args_refuse(const args *a, const char *reason, const char *value) {
  fprintf(stderr, "%s: %s\nusage: %s\n", reason, value, a->usage);
  exit(2);
}

static void args_drop(args *a, int index) {
  a->count--;
  memmove(&a->values[index], &a->values[index + 1], (size_t)(a->count - index) * sizeof(char *));
}

bool args_take_flag(args *a, const char *flag) {
  for (int i = 0; i < a->count; i++) {
    if (strcmp(a->values[i], flag) == 0) {
      args_drop(a, i);
      return true;
    }
  }
  return false;
}

const char *args_take_value(args *a, const char *name) {
  for (int i = 0; i < a->count; i++) {
    if (strcmp(a->values[i], name) == 0) {
      args_drop(a, i);
      if (i == a->count) {
        args_refuse(a, "wants a value", name);
      }
      const char *value = a->values[i];
      args_drop(a, i);
      return value;
    }
  }
  return NULL;
}

static uint64_t args_parse(const args *a, const char *text, uint64_t most) {
  char *end = NULL;
  errno = 0;
  uint64_t number = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0') {
    args_refuse(a, "not a number", text);
  }
  if (errno != 0 || number < 1 || number > most) {
    args_refuse(a, "out of range", text);
  }
  return number;
}

static uint64_t args_number_most(const args *a, int index, uint64_t fallback, uint64_t most) {
  return index < a->count ? args_parse(a, a->values[index], most) : fallback;
}

static uint64_t args_take_number_most(args *a, const char *name, uint64_t fallback, uint64_t most) {
  const char *text = args_take_value(a, name);
  return text == NULL ? fallback : args_parse(a, text, most);
}

uint64_t args_take_number(args *a, const char *name, uint64_t fallback) {
  return args_take_number_most(a, name, fallback, NUMBER_MOST);
}

uint32_t args_take_number32(args *a, const char *name, uint32_t fallback) {
  return (uint32_t)args_take_number_most(a, name, fallback, UINT32_MAX);
}

uint64_t args_number(const args *a, int index, uint64_t fallback) {
  return args_number_most(a, index, fallback, NUMBER_MOST);
}

uint32_t args_number32(const args *a, int index, uint32_t fallback) {
  return (uint32_t)args_number_most(a, index, fallback, UINT32_MAX);
}

unsigned args_threads(const args *a, int index, unsigned fallback) {
  return (unsigned)args_number_most(a, index, fallback, THREADS_MAX);
}

void args_end(const args *a, int index) {
  if (a->count > index) {
    args_refuse(a, "unexpected argument", a->values[index]);
  }
}
