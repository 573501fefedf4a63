// Labels that a home has found before, by where their texts lie.
#include <string.h>

#include "records.h"
#include "state/label.h"

// A buffer of the program that holds one text after the other.
static void other_texts_at_the_same_place(void) {
  char text[TSL_LABEL_BYTES] = "tenant 1";
  open_region();
  uint32_t first = tsl_label_intern(text);
  strcpy(text, "tenant 2");
  uint32_t second = tsl_label_intern(text);
  CHECK_NE(first, second);
  strcpy(text, "tenant 1");
  CHECK_EQ(tsl_label_intern(text), first);
  strcpy(text, "tenant");
  CHECK_NE(tsl_label_intern(text), first);
  CHECK_EQ(strcmp(tsl_label_text(tsl_label_intern(text)), "tenant"), 0);
  strcpy(text, "tenant 10");
  CHECK_NE(tsl_label_intern(text), first);
  CHECK_EQ(strcmp(tsl_label_text(tsl_label_intern(text)), "tenant 10"), 0);
}

// Nothing is remembered at first; the number 0 stands for no label, though its text is empty.
static void no_text_at_a_place_of_none(void) {
  open_region();
  uint32_t label = tsl_label_intern("");
  CHECK_GE(label, TSL_LABEL_FIRST);
  CHECK_EQ(tsl_label_intern(""), label);
}

static void threads_without_a_home_remember_none(void) {
  static const char text[] = "early";
  open_region();
  tsl_heap_current = &tsl_home_empty.heap;
  uint32_t label = tsl_label_intern(text);
  tsl_heap_current = &home->heap;
  for (unsigned i = 0; i < TSL_HOME_LABELS; i++) CHECK_EQ(home->own->labels[i], 0);
  CHECK_EQ(tsl_label_intern(text), label);
}

int main(void) {
  RUN(other_texts_at_the_same_place);
  RUN(no_text_at_a_place_of_none);
  RUN(threads_without_a_home_remember_none);
  return test_status();
}
