// change: what a thread does to the lists of its heaps, and to counts that belong together. A fork
// may come in the middle of it, and the helper may tend a home in which none is on.
//
//  C1  between begin and end `changing` of the home is not 0. The child of a fork that finds it so
//      leaves all heaps of that home as they are, for ever
//  C2  outside of a change each list is whole at every moment, and each count follows from a list
//  C3  a change may lie within another one; the program's own code runs in none
//  C4  outside of a change no slab of a home's own heap, or of its parts, is opened, closed,
//      collected or taken from, no part gets a store or is sealed, no cell of a part comes, goes or
//      begins anew, no part comes to `grown`, and no empty unit at hand and no warm part comes or
//      goes. So the helper may tend the home: it sets `tended`, makes all threads pass a barrier,
//      and then finds `changing` 0. A change that begins meanwhile waits until the helper has done
//  C5  who acts for the owner of a part, because the part's epoch ends or nobody is in it, shuts
//      the part first: the helper, which looks after it has set `tended`, passes it over
#pragma once

#include "state/heap.h"

struct tsl_change {
  struct tsl_home *home;  // the empty home: there is nothing to change
  uint32_t before;
};

// Returns when the helper does not tend the home.
TSL_HIDDEN void tsl_change_wait(const struct tsl_home *home);

static inline void tsl_change_set(struct tsl_home *home, uint32_t changing) {
  if (home == &tsl_home_empty) return;
  tsl_compiler_fence();                          // pairs: change
  tsl_store_release(&home->changing, changing);  // pairs: tend
  tsl_compiler_fence();                          // pairs: change, tend
  if (changing == 0) return;
  if (tsl_unlikely(tsl_load_acquire(&home->tended) != 0)) tsl_change_wait(home);  // pairs: tend
}

// The owner of `home`.
static inline struct tsl_change tsl_change_begin(struct tsl_home *home) {
  struct tsl_change change = {home, home->changing};
  tsl_change_set(home, 1);
  return change;
}

static inline void tsl_change_end(struct tsl_change change) {
  tsl_change_set(change.home, change.before);
}

// While the program's own code runs in the middle of one (C3); ends as a change does.
static inline struct tsl_change tsl_change_pause(struct tsl_home *home) {
  struct tsl_change change = {home, home->changing};
  tsl_change_set(home, 0);
  return change;
}

// Whether a fork that comes now finds the heaps of the home half changed.
static inline bool tsl_change_is_on(const struct tsl_home *home) {
  return tsl_load_acquire(&home->changing) != 0;  // pairs: change
}

// Whether homes can be tended: the system has a barrier. Set once, as the library is initialised.
TSL_HIDDEN extern bool tsl_tend_is_possible;

// C5. Around all that a thread does to a part; no effect for those of its own home, whose changes
// keep the helper away. Returns when the helper does not tend the part.
TSL_HIDDEN void tsl_change_shut(struct tsl_part *part);
TSL_HIDDEN void tsl_change_reopen(struct tsl_part *part);

// Whether somebody acts for the owner. The helper, while it tends the home.
TSL_HIDDEN bool tsl_change_is_shut(const struct tsl_part *part);

// C4, by the helper alone. False when the home is in the middle of a change. Little is done
// between the two calls: the owner may wait for the second.
TSL_HIDDEN bool tsl_tend_begin(struct tsl_home *home);
TSL_HIDDEN void tsl_tend_end(struct tsl_home *home);
