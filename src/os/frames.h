// frames: a table from a return address to the distance, on the stack, from it to its caller's
// return address. That distance is nearly always the same each time a function is at the same call,
// so what the unwinder found once need not be unwound again. Calls for which it varies (functions
// with alloca) have no distance.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
  TSL_FRAMES_UNKNOWN = 0,
  TSL_FRAMES_LAST = -1,  // the outermost call: it has no caller
};

// Bytes from the return address `call` to that of its caller, or one of the above. Any thread.
TSL_HIDDEN int32_t tsl_frames_find(uintptr_t call);

// Notes what the unwinder found: bytes above 0, or TSL_FRAMES_LAST. Any thread.
TSL_HIDDEN void tsl_frames_learn(uintptr_t call, int32_t bytes);
