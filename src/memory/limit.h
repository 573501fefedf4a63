// limit: the soft limit of the process (option `soft_limit`): how much memory may be resident
// before what is idle goes back at once. It is compared with the bytes of all units that are in use
// or idle, and of a record for each. Units in use count whole, whether the program has touched them
// or not, and whether the pages between their blocks went back or not; idle ones, too, though some
// were never touched. Not counted: granules and cells (up to 4.6 KiB a unit, where an epoch or the
// secure build has some), heaps, epochs, and what the system adds to make a huge page.
//
// It refuses nothing: it only makes idle memory go back sooner.
//
// While a helper finds that the process or the system is short of memory (os/pressure.h), the limit
// counts as near, also where there is none.
//
//  LI1  idle memory may fill the room that memory in use leaves below the limit. A 64th of the
//       limit, and 1 MiB, may be idle in any case
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// Reads the limits of the cgroup if option `soft_limit` asks for them. Called as options are read
// or set; not on a path of malloc.
TSL_HIDDEN void tsl_limit_follow(void);

// The limit in force, in bytes; 0: none.
TSL_HIDDEN uint64_t tsl_limit_bytes(void);

// Tells whether memory is short. Called by the helper, with false as it ends, and after a fork.
TSL_HIDDEN void tsl_limit_set_pressed(bool is_pressed);

// Whether less than an eighth of the limit is left, or memory is short. A moment's value.
TSL_HIDDEN bool tsl_limit_is_near(void);

// The idle units that are to go back: 0 while LI1 holds, otherwise somewhat more than it takes, so
// that the next ones can go back together. A moment's value.
TSL_HIDDEN size_t tsl_limit_excess(void);

// Milliseconds that free memory must go unneeded: option `purge_delay_ms`, less where the limit is
// near.
TSL_HIDDEN uint64_t tsl_limit_delay_ms(void);
