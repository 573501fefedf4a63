#include "slab/sizeclass.h"

#include "slab/secure.h"

#define CLASS(size, slab_units)                                                      \
  {.bytes = (size),                                                                  \
   .slab_bytes = (slab_units)*TSL_UNIT_BYTES,                                        \
   .slab_mask = (slab_units)*TSL_UNIT_BYTES - 1,                                     \
   .capacity = (uint16_t)(((slab_units)*TSL_UNIT_BYTES - TSL_GUARD_BYTES) / (size)), \
   .units = (slab_units)},
#define TINY(least, bytes) CLASS(bytes, 1)
#define MEDIUM(bytes, units) CLASS(bytes, units)
const struct tsl_sizeclass tsl_sizeclasses[TSL_BINS] = {
#include "slab/sizeclass.def"
    CLASS(4096, 1) CLASS(16384, 1) CLASS(65536, 1)};
#undef CLASS

#define CLASS(size, slab_units) UINT64_MAX / (size) + 1,
const uint64_t tsl_reciprocals[TSL_BINS] = {
#include "slab/sizeclass.def"
    CLASS(4096, 1) CLASS(16384, 1) CLASS(65536, 1)};
#undef TINY
#undef MEDIUM

const uint16_t tsl_tiny_offsets[TSL_TINY_LIMIT + 1] = {
#define TINY(least, bytes) [least... bytes] = TSL_CLASS_OF_##bytes * TSL_BIN_BYTES,
#define MEDIUM(bytes, units)
#include "slab/sizeclass.def"
#undef TINY
#undef MEDIUM
};
