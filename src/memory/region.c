#include "memory/region.h"

struct tsl_region tsl_region;
