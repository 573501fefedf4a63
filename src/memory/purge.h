// purge: gives pages that nobody needed for a while back to the system.
// Once per `purge_delay_ms` it looks at the least amount of free dirty memory during that time: so
// much was not needed, half of it goes back, one bounded step a millisecond for the whole process,
// by whoever comes along a slow path.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// One step when one is due. Any thread; cheap when none is. True when there is more to do.
TSL_HIDDEN bool tsl_purge_tick(void);

// Whether there is free memory that may turn out not to be needed.
TSL_HIDDEN bool tsl_purge_waits(void);

// Gives the pages of [start, start + bytes) back of which `is_dead` says that nothing lies there.
// Whoever owns them. Returns the calls that took.
TSL_HIDDEN unsigned tsl_purge_dead(uintptr_t start, size_t bytes,
                                   bool (*is_dead)(const void *, size_t offset, size_t page_bytes),
                                   const void *context);

// So much free memory stays from now on, until tsl_purge_all: somebody will want it again soon.
TSL_HIDDEN void tsl_purge_keep(size_t bytes);

// Everything that is free goes back at once, by the helper when there is one: then soon after.
TSL_HIDDEN void tsl_purge_now(void);

// For the helper, while it runs: sleeps for about so long, or until it is to purge; then it does.
TSL_HIDDEN void tsl_purge_help(uint64_t ms);
TSL_HIDDEN void tsl_purge_set_helper(bool runs);

// Everything that is free goes back at once, but for `keep_bytes`. Returns the bytes given back.
TSL_HIDDEN size_t tsl_purge_all(size_t keep_bytes);
