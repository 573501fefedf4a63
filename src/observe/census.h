// census: the make-up of the process's memory, counted by a walk through all of it. Exact while no
// other thread allocates or frees; otherwise its figures are of several moments. It is taken again
// where it met the helper at emptying bins. Changes nothing. Any thread.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// FIELD(name): all in bytes, except `live_objects`. The system is asked which pages are resident.
#define TSL_CENSUS_FIELDS(FIELD)                                                               \
  FIELD(live_objects)                                                                          \
  FIELD(live_bytes)      /* usable bytes of live blocks */                                     \
  FIELD(large_bytes)     /* of these: blocks of whole units */                                 \
  FIELD(hot_bytes)       /* free blocks that threads keep at hand */                           \
  FIELD(free_bytes)      /* of slabs and cells: free blocks, ends and gaps */                  \
  FIELD(cached_bytes)    /* empty units, kept by threads and for all */                        \
  FIELD(dirty_bytes)     /* nobody's, and not given back */                                    \
  FIELD(metadata_bytes)  /* the allocator's own records */                                     \
  FIELD(untouched_bytes) /* of live and hot blocks: never written to, so no memory is there */ \
  FIELD(resident_bytes)  /* live + hot + free + cached + dirty + metadata - untouched */

#define TSL_CENSUS_FIELD(name) size_t name;
struct tsl_census {
  TSL_CENSUS_FIELDS(TSL_CENSUS_FIELD)
};
#undef TSL_CENSUS_FIELD

TSL_HIDDEN void tsl_census_take(struct tsl_census *census);
