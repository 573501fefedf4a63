// Instructions as valgrind's callgrind counts them: at nearly full speed beside single steps, so
// that what an allocator does by the clock stays rare.
#ifndef BENCH_CALLGRIND_H
#define BENCH_CALLGRIND_H

#include <stdint.h>

// Runs this program under callgrind with `arguments`, whose last one is NULL and of which there are
// at most 8, and returns how many instructions it executed in callgrind_counted. Ends the program
// where valgrind is missing or the run fails.
uint64_t callgrind_count(const char *const *arguments);

// Calls `run(count)`: what is counted.
void callgrind_counted(void (*run)(uint64_t count), uint64_t count);

#endif
