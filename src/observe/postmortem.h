// postmortem: where the allocator's records lie and how they are laid out, told in the process's
// own memory, so that `tslab core` finds its way through a core dump. The compiler fills the
// numbers in from the structs: they cannot drift from them. A reader finds each one by its name.
// The description lies in writable memory, which every core dump has.
//
//  PM1  `self` is its own address once the process uses the allocator. A copy of it elsewhere in
//       the dump is not taken for it
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "state/heap.h"

enum {
  TSL_POSTMORTEM_ABI = 1,  // changes when an older reader would misread
  TSL_POSTMORTEM_NUMBERS = 67,
};

#define TSL_POSTMORTEM_MAGIC "tslab postmortem"  // 16 bytes, without a 0

// A value, or an address that the loader knows.
struct tsl_postmortem_number {
  char name[24];
  union {
    uint64_t value;       // [const]
    const void *address;  // [const]
  };
};

struct tsl_postmortem_class {
  uint32_t bytes;  // [const] of a block
  uint32_t units;  // [const] of a slab
};

struct tsl_postmortem {
  char magic[16];
  uint64_t self;      // [remote] PM1
  uint32_t abi;       // [const]
  uint32_t numbers;   // [const]
  uint32_t classes;   // [const]
  uint32_t class_at;  // [const] of the first of `by_class`, from here
  struct tsl_postmortem_number number[TSL_POSTMORTEM_NUMBERS];
  struct tsl_postmortem_class by_class[TSL_BINS];
};

TSL_HIDDEN extern struct tsl_postmortem tsl_postmortem;

// Sets `self`. Any thread, any number of times.
TSL_HIDDEN void tsl_postmortem_tell(void);
