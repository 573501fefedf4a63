// warm: parts of epochs that were released, or closed without survivors, and that wait for the next
// epoch of the same label, each with the cell that it cut last. Joining that epoch then takes no
// memory, and its first blocks lie where the processor's cache still has the lines. None waits
// while many of its label are in use (part.h): each would take a large cell to an epoch that may
// be small.
//
//  W1  a warm part is sealed, and of no epoch. It has one cell, in which nothing lives and which is
//      of no epoch either, no slabs and no store; it is on its home's list of warm parts alone
//  W2  it is taken by an epoch of the label of the one that left it, and by no other. Both have no
//      options but a parent, and neither the one that takes it nor an ancestor has a limit then: no
//      charge is refused
//  W3  it goes back at the first tick after `purge_delay_ms`, near the soft limit at once, when its
//      thread ends, and when all is trimmed; where all of a home's have waited that long the helper
//      gives them back
//  W4  parts come to the list, and leave it, in changes, or while the helper tends the home. The
//      helper takes the last one off by one store, before anything of the part changes: the child
//      of a fork that comes then finds the list whole
#pragma once

#include "state/heap.h"

// Whether a part that ends may become warm, if nothing lives in it: nobody else needs it. The
// thread that ends it, in a change.
TSL_HIDDEN bool tsl_warm_may_keep(const struct tsl_part *part);

// Takes a part, which has one empty cell, out of its epoch, and keeps it. The caller seals it. Its
// home's owner, in a change.
TSL_HIDDEN void tsl_warm_keep(struct tsl_part *part);

// Keeps one that was taken for an epoch which then refused it. Owner only, in the same change.
TSL_HIDDEN void tsl_warm_return(struct tsl_part *part);

// The home's warm part for an epoch, with its cell, for which the epoch is charged. NULL: there is
// none. Owner only, in a change.
TSL_HIDDEN struct tsl_part *tsl_warm_take(struct tsl_home *home, uint32_t epoch);

// Gives back those that have waited long enough, or all. Owner only.
TSL_HIDDEN void tsl_warm_look(struct tsl_home *home);
TSL_HIDDEN void tsl_warm_drop(struct tsl_home *home);

// Whether all of a home's have waited long enough: its thread sleeps. A moment's value. The helper.
TSL_HIDDEN bool tsl_warm_is_due(const struct tsl_home *home, uint64_t now_ms);

// Gives them back then. By the helper, while it tends the home.
TSL_HIDDEN void tsl_warm_tend(struct tsl_home *home, uint64_t now_ms);

// W1. Owner only.
TSL_HIDDEN bool tsl_warm_valid(const struct tsl_home *home);
