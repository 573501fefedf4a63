// hold: what keeps an epoch from retiring (E2). Any thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// Adds one to `undrained`, unless the epoch has retired.
TSL_HIDDEN bool tsl_epoch_hold(uint32_t slot);

// Takes `count` off `undrained`; the last one retires the epoch.
TSL_HIDDEN void tsl_epoch_drain(uint32_t slot, uint32_t count);
