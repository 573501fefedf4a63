// poison: with option `release:poison`, epochs that were released and whose memory waits. It can be
// neither read nor written, and goes back when enough epochs were released or reset after it. What
// a reset ends waits in an epoch of its own (reset.c).
//
//  PO1  an epoch that waits is held. Its cells and slabs are sealed, its large blocks on its list
//  PO2  whoever takes it out makes its memory accessible, and gives it back
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { TSL_POISON_EPOCHS = 64 };  // that wait

// Learns whether released epochs are to wait. Called once.
TSL_HIDDEN void tsl_poison_init(void);

// Makes the memory of an epoch inaccessible, and reports who uses it from now on. The epoch has
// been released, and nobody allocates in it.
TSL_HIDDEN void tsl_poison_begin(uint32_t slot);

// Makes it accessible and zero. False, and it must wait on, when the system refuses.
TSL_HIDDEN bool tsl_poison_end(uint32_t slot);

// Puts an epoch in. Takes the one out that has waited longest, and returns it; 0: none.
TSL_HIDDEN uint32_t tsl_poison_swap(uint32_t slot);
