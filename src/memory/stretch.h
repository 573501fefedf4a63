// stretch: a part of the region that grows at its end: one of the arrays, or the units.
//
//  T1  [start, end) is readable and writable, and no other mapping lies there
//  T2  `begun` equals `end` except while a step is under way. After a fork in the middle of a step
//      the child cannot tell whether memory up to `begun` was mapped
//
// Where the region is only planned, a step maps memory and enlarges the mapping before it, so that
// a stretch is one mapping. Where it is reserved, a step opens what is mapped.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "os/os.h"

// The lock is growth.c's, above this file: it guards the stretches themselves there.
struct tsl_stretch {
  uintptr_t start;   // [lock:grow]
  uintptr_t end;     // [lock:grow]
  uintptr_t begun;   // [lock:grow]
  bool is_reserved;  // [lock:grow]
};

// T2, between two steps.
static inline bool tsl_stretch_valid(const struct tsl_stretch *stretch) {
  return stretch->start <= stretch->end && stretch->begun == stretch->end;
}

// One without memory yet.
TSL_HIDDEN struct tsl_stretch tsl_stretch_at(uintptr_t start, bool is_reserved);

// Makes the stretch end at `end`, rounded up to a page, or behind it. Nothing changes when the
// system refuses, or when something lies there.
TSL_HIDDEN enum tsl_os_mapped tsl_stretch_reach(struct tsl_stretch *stretch, uintptr_t end);

// Gives memory behind `end` back, which nobody has used; a reservation keeps it.
TSL_HIDDEN void tsl_stretch_retreat(struct tsl_stretch *stretch, uintptr_t end);
