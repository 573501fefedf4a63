// The benchmark's own memory, kept out of the allocator under test, and what the process holds
// resident.
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stddef.h>
#include <stdint.h>

// Zeroed and already faulted in; never given back. Ends the program when there is none.
void *memory_map(size_t bytes);

// The same, but seen by children, too.
void *memory_share(size_t bytes);

// Exact, from smaps_rollup: statm is batched per processor and lags behind.
uint64_t memory_resident_bytes(void);

// Those of the resident bytes that the allocator offered to the system (MADV_FREE), which has not
// taken them yet.
uint64_t memory_lazy_bytes(void);

// From statm: some hundred KiB off, but quick however much is resident.
uint64_t memory_resident_bytes_about(void);

// Ends the program when the allocator under test gave no block.
void memory_demand(const void *block);

// Writes the ends of a block, as every user of one would.
static inline void memory_touch(char *block, size_t bytes) {
  block[0] = (char)bytes;
  block[bytes - 1] = 1;
}

#endif
