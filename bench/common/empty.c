#include "empty.h"

int empty_enter(tslab_scope *scope, tslab_epoch epoch) {
  (void)scope;
  (void)epoch;
  return 0;
}

int empty_leave(tslab_scope *scope) {
  (void)scope;
  return 0;
}
