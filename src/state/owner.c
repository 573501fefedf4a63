#include "state/owner.h"

TSL_TLS const struct tsl_home *tsl_owner_acts_for;
