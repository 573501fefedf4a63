#include "os/code.h"

#include "test.h"

// What lies beside the allocator in this program is the program's.
static void a_program_is_no_library(void) {
  struct tsl_code place = tsl_code_place();
  CHECK(place.start == 0 && place.end == 0);
}

int main(void) {
  RUN(a_program_is_no_library);
  return test_status();
}
