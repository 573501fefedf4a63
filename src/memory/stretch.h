// stretch: a part of the region that grows at its end: one of the arrays, or the units.
//
//  T1  [start, end) is readable and writable; nobody's own memory lies there otherwise
//  T2  begun is end but while a step is under way. A fork may come in its middle: then the child
//      has lost the thread, and the step up to begun may have been done or not
//
// Where the region is only planned, a step maps memory and enlarges the mapping before it, so that
// a stretch is one mapping. Where it is reserved, a step opens what is mapped.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "os/os.h"

struct tsl_stretch {
  uintptr_t start;   // [lock:grow]
  uintptr_t end;     // [lock:grow]
  uintptr_t begun;   // [lock:grow]
  bool is_reserved;  // [lock:grow]
};

// One without memory yet.
TSL_HIDDEN struct tsl_stretch tsl_stretch_at(uintptr_t start, bool is_reserved);

// Makes the stretch end at `end`, rounded up to a page, or behind it. Nothing changes when the
// system refuses, or when something lies there.
TSL_HIDDEN enum tsl_os_mapped tsl_stretch_reach(struct tsl_stretch *stretch, uintptr_t end);

// Gives memory behind `end` back, which nobody has used; a reservation keeps it.
TSL_HIDDEN void tsl_stretch_retreat(struct tsl_stretch *stretch, uintptr_t end);
