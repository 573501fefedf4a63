#include "os/frames.h"

#include "test.h"

enum { MANY = 100000 };

static void what_was_learned_is_found(void) {
  CHECK_EQ(tsl_frames_find(0x1000), TSL_FRAMES_UNKNOWN);
  tsl_frames_learn(0x1000, 48);
  tsl_frames_learn(0x1000, 48);
  CHECK_EQ(tsl_frames_find(0x1000), 48);
  tsl_frames_learn(0x2000, TSL_FRAMES_LAST);
  CHECK_EQ(tsl_frames_find(0x2000), TSL_FRAMES_LAST);
  CHECK_EQ(tsl_frames_find(0x1001), TSL_FRAMES_UNKNOWN);
}

static void a_call_with_several_distances_has_none(void) {
  tsl_frames_learn(0x3000, 48);
  tsl_frames_learn(0x3000, 64);
  CHECK_EQ(tsl_frames_find(0x3000), TSL_FRAMES_UNKNOWN);
  tsl_frames_learn(0x3000, 48);
  CHECK_EQ(tsl_frames_find(0x3000), TSL_FRAMES_UNKNOWN);
}

static void a_full_table_keeps_what_it_has(void) {
  unsigned found = 0;
  tsl_frames_learn(0x1000, 48);
  for (uintptr_t call = 1; call <= MANY; call++) tsl_frames_learn(call << 12 | 5, 8);
  for (uintptr_t call = 1; call <= MANY; call++) {
    int32_t bytes = tsl_frames_find(call << 12 | 5);
    CHECK(bytes == 8 || bytes == TSL_FRAMES_UNKNOWN);
    found += bytes == 8;
  }
  CHECK_GE(found, 10000);
  CHECK_EQ(tsl_frames_find(0x1000), 48);
}

int main(void) {
  RUN(what_was_learned_is_found);
  RUN(a_call_with_several_distances_has_none);
  RUN(a_full_table_keeps_what_it_has);
  return test_status();
}
