#include "claim.h"

#include "state/owner.h"

void claim_visit(struct tsl_home *home, void (*visit)(struct tsl_home *)) {
  tsl_owner_act_for(home);
  visit(home);
  tsl_owner_act_for(NULL);
}
