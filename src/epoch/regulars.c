#include "epoch/regulars.h"

#include "state/heap.h"

bool tsl_regulars_come(uint32_t host) {
  const struct tsl_home *home = tsl_heap_current->home;
  if (home == &tsl_home_empty) return false;
  struct tsl_regular *regulars = home->own->regulars, came = {host, 0};
  unsigned at = 0;
  while (at < TSL_HOME_REGULARS - 1 && regulars[at].host != host) at++;
  if (regulars[at].host == host) came = regulars[at];
  for (; at != 0; at--) regulars[at] = regulars[at - 1];
  if (came.times < TSL_REGULARS_OFTEN) came.times++;
  regulars[0] = came;
  return came.times == TSL_REGULARS_OFTEN;
}
