// Positional and named arguments of the benchmark programs. A bad one ends the program with a
// message and status 2.
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct args {
  int count;
  char **values;
  const char *usage;
} args;

// Drops `flag` from the arguments and says whether it was there.
bool args_take_flag(args *a, const char *flag);

// Drops `name` and the argument behind it, and returns that; NULL when `name` was not there.
const char *args_take_value(args *a, const char *name);

// Drops `name` and the decimal number from 1 on behind it; `fallback` when `name` was not there.
uint64_t args_take_number(args *a, const char *name, uint64_t fallback);
// The same below 2^32.
uint32_t args_take_number32(args *a, const char *name, uint32_t fallback);

// The argument at `index` (0 is the first), a decimal number from 1 on; `fallback` when it is
// missing.
uint64_t args_number(const args *a, int index, uint64_t fallback);
// The same below 2^32, and for a number of threads.
uint32_t args_number32(const args *a, int index, uint32_t fallback);
unsigned args_threads(const args *a, int index, unsigned fallback);

// Call last: refuses arguments from `index` on.
void args_end(const args *a, int index);

__attribute__((noreturn)) void args_refuse(const args *a, const char *reason, const char *value);

args args_open(int argc, char **argv, const char *usage);

#endif
