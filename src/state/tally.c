#include "state/tally.h"

const uint8_t tsl_tally_most_untold[TSL_BINS] = {
#define TINY(least, bytes) [TSL_CLASS_OF_##bytes] = 32,
#define MEDIUM(bytes, units) [TSL_CLASS_OF_##bytes] = (bytes) > 16384 ? 1 : 4,
#include "slab/sizeclass.def"
#undef TINY
#undef MEDIUM
    [TSL_CELL_4K... TSL_BINS - 1] = UINT8_MAX,  // nobody is told of cells
};
