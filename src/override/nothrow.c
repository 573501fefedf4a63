// nothrow: stands for nothrow.cpp where there is no C++ compiler. What a new-handler throws then
// goes through a nothrow new, and ends the program.
#include <stdbool.h>

#include "base/compiler.h"

TSL_HIDDEN bool tsl_call_new_handler(void (*handler)(void));

bool tsl_call_new_handler(void (*handler)(void)) {
  handler();
  return true;
}
