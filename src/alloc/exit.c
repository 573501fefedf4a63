// exit: what option `leaks_at_exit` asks for, once the program's own destructors have run.
#include "alloc/exit.h"

#include <stdio.h>
#include <unistd.h>

#include "base/options.h"
#include "observe/leaks.h"

enum leaks_at_exit { IGNORE, REPORT, FAIL };
enum { FAILED_STATUS = 23 };  // LeakSanitizer's

__attribute__((destructor)) static void exit_look_for_leaks(void) {
  uint64_t wanted = tsl_option(leaks_at_exit);
  if (wanted == IGNORE || tsl_leaks_report() == 0 || wanted != FAIL) return;
  fflush(NULL);
  _exit(FAILED_STATUS);
}

bool tsl_exit_is_handled(void) { return true; }
