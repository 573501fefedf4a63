#include "os/code.h"

__attribute__((weak)) struct tsl_code tsl_code_place(void) { return (struct tsl_code){0, 0}; }
