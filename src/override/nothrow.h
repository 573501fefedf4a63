// nothrow: what a nothrow new does with its new-handler.
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

// Calls the handler. False when it threw, where nothrow.cpp, not nothrow.c, was compiled.
TSL_HIDDEN bool tsl_call_new_handler(void (*handler)(void));
