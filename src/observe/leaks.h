// leaks: closed epochs in which objects still live.
#pragma once

#include <stddef.h>

#include "base/compiler.h"

// Writes a line to stderr for each label of closed epochs in which objects live, and for each whose
// shared epoch has objects while none that shares it is open. Returns the number of labels. Changes
// nothing. One thread at a time.
TSL_HIDDEN size_t tsl_leaks_report(void);
