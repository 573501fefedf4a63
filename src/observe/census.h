// census: what the process's memory is made of, found by walking all of it. Exact while no other
// thread allocates or frees; otherwise of several moments. Changes nothing.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// All in bytes but `objects`. What is resident is asked of the system.
struct tsl_census {
  size_t live_objects;
  size_t live_bytes;       // usable bytes of live blocks
  size_t large_bytes;      // of these: blocks of whole units
  size_t hot_bytes;        // free blocks that threads keep at hand
  size_t free_bytes;       // of slabs and cells: free blocks, ends and gaps
  size_t cached_bytes;     // empty units, kept by threads and for all
  size_t dirty_bytes;      // nobody's, and not given back
  size_t metadata_bytes;   // the allocator's own records
  size_t untouched_bytes;  // of live and hot blocks: never written to, so that no memory is there
  size_t resident_bytes;   // live + hot + free + cached + dirty + metadata - untouched
};

TSL_HIDDEN void tsl_census_take(struct tsl_census *census);
