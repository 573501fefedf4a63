// The random numbers of os_linux.
#include <sys/auxv.h>

#include "os/os.h"
#include "test.h"

static void random_bits_differ(void) {
  uint64_t ones = 0, zeros = 0, last = tsl_os_random();
  for (int i = 0; i < 64; i++) {
    uint64_t next = tsl_os_random();
    CHECK_NE(next, last);
    ones |= next, zeros |= ~next, last = next;
  }
  CHECK_EQ(ones & zeros, ~UINT64_C(0));
}

// Splitmix64 from the kernel's bits on; other tests' numbers were drawn before.
static void numbers_are_of_the_known_sequence(void) {
  uint64_t drawn = tsl_os_random(), state, found = 0;
  memcpy(&state, (const char *)getauxval(AT_RANDOM) + 8, sizeof state);
  for (int i = 0; i < 1000 && found != drawn; i++) found = test_random(&state);
  CHECK_EQ(found, drawn);
}

int main(void) {
  RUN(random_bits_differ);
  RUN(numbers_are_of_the_known_sequence);
  return test_status();
}
