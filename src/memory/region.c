#include "memory/region.h"

// What a malloc and a free read of it lies on one line.
TSL_ON_LINE struct tsl_region tsl_region;
