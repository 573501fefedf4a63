#include "slab/sizeclass.h"

#include "slab/secure.h"

#define CLASS(size, slab_units)                                                      \
  {.bytes = (size),                                                                  \
   .reciprocal = (uint32_t)(((UINT64_C(1) << 32) + (size)-1) / (size)),              \
   .slab_bytes = (slab_units)*TSL_UNIT_BYTES,                                        \
   .capacity = (uint16_t)(((slab_units)*TSL_UNIT_BYTES - TSL_GUARD_BYTES) / (size)), \
   .units = (slab_units)},
#define TINY_4(k) \
  CLASS(16 * (k), 1) CLASS(16 * (k) + 16, 1) CLASS(16 * (k) + 32, 1) CLASS(16 * (k) + 48, 1)
#define TINY_16(k) TINY_4(k) TINY_4((k) + 4) TINY_4((k) + 8) TINY_4((k) + 12)

const struct tsl_sizeclass tsl_sizeclasses[TSL_CLASSES] = {CLASS(16, 1) TINY_16(1) TINY_16(17)
                                                               TINY_16(33) TINY_16(49)
#define SIZE_CLASS(bytes, units) CLASS(bytes, units)
#include "slab/sizeclass.def"
};
