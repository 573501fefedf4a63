// claim: acting for a home as the thread would that has claimed it.
#pragma once

struct tsl_home;

void claim_visit(struct tsl_home *home, void (*visit)(struct tsl_home *));
