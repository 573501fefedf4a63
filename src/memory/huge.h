// huge: in which steps of 2 MiB the system may make huge pages. With option `thp:auto` these are
// the ones that large blocks cover: there the first touch of a step is the program's intent.
//
//  HP1  a step may become a huge page only while one block of TSL_HUGE_LEAST_UNITS or more covers
//       it whole, or while it is free after such a block: a few small blocks there would make 2 MiB
//       resident, again after each purge, and so would the end of a large one
//  HP2  a step of which a part was purged may not: the system would make it whole again
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "memory/region.h"

enum { TSL_HUGE_LEAST_UNITS = (4 << 20) / TSL_UNIT_BYTES };  // of a block that gets huge pages

// Learns what option `thp` says. Called once.
TSL_HIDDEN void tsl_huge_init(void);

// Whether all memory may get huge pages, whatever lies there.
TSL_HIDDEN bool tsl_huge_is_everywhere(void);

// Whether the unit may be part of a huge page. Any thread.
TSL_HIDDEN bool tsl_huge_at(size_t unit);

// Tells the system anew what it may do with units that were mapped anew.
TSL_HIDDEN void tsl_huge_renew(size_t first, size_t end);

// After `count` units were taken for one block, or for slabs, and after it got longer or shorter
// (HP1). Whoever has them.
TSL_HIDDEN void tsl_huge_suit(tsl_unit first, size_t count);

// Before units are purged: no huge pages in the steps of which they are a part (HP2). Whoever has
// them.
TSL_HIDDEN void tsl_huge_part(size_t first, size_t count);

// No huge pages in any step that the units touch. Whoever has them.
TSL_HIDDEN void tsl_huge_end(size_t first, size_t count);

// Where so many runs of steps may become huge pages, no further ones may: at both ends of each the
// system needs a mapping more, of the 65,530 that a process may have. A test lowers it.
TSL_HIDDEN extern size_t tsl_huge_most_runs;
