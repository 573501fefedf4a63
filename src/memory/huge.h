// huge: in which steps of 2 MiB the system may make huge pages. With option `thp:auto` these are
// the ones that large blocks cover: there the first touch of a step is the program's intent.
//
//  HP1  in a step that may become a huge page lies nothing that was taken in units of less than
//       TSL_HUGE_LEAST_UNITS: a few small blocks would make 2 MiB resident, again after each purge
//  HP2  a step of which a part was purged may not either: the system would make it whole again
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

// After `count` units were taken for one block, or for slabs (HP1). Whoever has them.
TSL_HIDDEN void tsl_huge_suit(tsl_unit first, size_t count);

// Before units are purged (HP2). Whoever has them.
TSL_HIDDEN void tsl_huge_part(size_t first, size_t count);
