// Functions of a shared library that do nothing: what calls across its boundary cost at least.
#ifndef BENCH_EMPTY_H
#define BENCH_EMPTY_H

#include <tslab.h>

int empty_enter(tslab_scope *scope, tslab_epoch epoch);
int empty_leave(tslab_scope *scope);

#endif
