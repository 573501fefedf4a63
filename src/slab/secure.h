// secure: what the hardened build (TSL_SECURE) adds to slabs and heaps. In other builds the
// compiler drops all of it.
//  - bins hold nothing, so that every free passes the slab's checks;
//  - blocks are handed out in random order, are wiped when they are freed, and then wait in a
//    quarantine;
//  - the last page of each slab is a guard, where the system has such (Linux 6.13);
//  - a free that says a size is checked;
//  - a block of size 0 is an address that faults (zero.h).
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "os/os.h"

enum { TSL_GUARD_BYTES = TSL_SECURE ? 4096 : 0, TSL_QUARANTINE_BLOCKS = TSL_SECURE ? 64 : 1 };

// One of the bits of a word that is not zero: the lowest, or any, each as likely as the others.
TSL_HIDDEN unsigned tsl_secure_pick_any(uint64_t blocks);
TSL_ALWAYS_INLINE unsigned tsl_secure_pick(uint64_t blocks) {
  return TSL_SECURE ? tsl_secure_pick_any(blocks) : tsl_lowest_bit(blocks);
}

// Whether all bytes are zero.
TSL_HIDDEN bool tsl_secure_is_zero(const void *start, size_t bytes);

static inline void tsl_secure_wipe(void *block, size_t bytes) {
  if (TSL_SECURE) memset(block, 0, bytes);
}

// Makes the last page before `slab_end` a guard; false when it could not. Systems with larger pages
// have no guards: those would take too many blocks away.
static inline bool tsl_secure_guard(uintptr_t slab_end) {
  return TSL_SECURE && tsl_os_page_bytes() == TSL_GUARD_BYTES &&
         tsl_os_guard((void *)(slab_end - TSL_GUARD_BYTES), TSL_GUARD_BYTES, true);
}
static inline bool tsl_secure_unguard(uintptr_t slab_end) {
  return tsl_os_guard((void *)(slab_end - TSL_GUARD_BYTES), TSL_GUARD_BYTES, false);
}
