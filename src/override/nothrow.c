// nothrow: replaces nothrow.cpp where there is no C++ compiler. An exception of a new-handler then
// leaves a nothrow new, and ends the program.
#include "override/nothrow.h"

bool tsl_call_new_handler(void (*handler)(void)) {
  handler();
  return true;
}
