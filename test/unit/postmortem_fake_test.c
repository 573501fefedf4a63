#include "observe/postmortem.h"

#include <string.h>

#include "test.h"

// PM1: a copy has another address in it.
static void it_knows_its_own_address(void) {
  tsl_postmortem_tell();
  CHECK(tsl_postmortem.self == (uintptr_t)&tsl_postmortem);
  CHECK(memcmp(tsl_postmortem.magic, TSL_POSTMORTEM_MAGIC, sizeof tsl_postmortem.magic) == 0);
}

static void each_number_has_a_name_of_its_own(void) {
  const struct tsl_postmortem_number *number = tsl_postmortem.number;
  for (unsigned i = 0; i < tsl_postmortem.numbers; i++) {
    CHECK(number[i].name[0] != '\0');
    CHECK(number[i].name[sizeof number[i].name - 1] == '\0');
    for (unsigned j = 0; j < i; j++) CHECK(strcmp(number[i].name, number[j].name) != 0);
  }
}

static void classes_are_those_of_the_table(void) {
  CHECK(tsl_postmortem.classes == TSL_BINS);
  for (unsigned class = 0; class < TSL_BINS; class += 1) {
    CHECK(tsl_postmortem.by_class[class].bytes == tsl_sizeclasses[class].bytes);
    CHECK(tsl_postmortem.by_class[class].units == tsl_sizeclasses[class].units);
  }
}

int main(void) {
  RUN(it_knows_its_own_address);
  RUN(each_number_has_a_name_of_its_own);
  RUN(classes_are_those_of_the_table);
  return test_status();
}
