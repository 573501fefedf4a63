// Labels that a home has found before, by where their texts lie.
#include <string.h>
#include <sys/mman.h>

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

enum { PAGE = 4096 };

// Two pages, of which nobody may read the second.
static char *page_before_a_gap(void) {
  char *start = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(start != MAP_FAILED && mprotect(start + PAGE, PAGE, PROT_NONE) == 0);
  return start;
}

// Twice: the second time the home knows the text.
static void stands_again(const char *text) {
  uint32_t label = tsl_label_intern(text);
  CHECK_EQ(tsl_label_intern(text), label);
  CHECK_EQ(strcmp(tsl_label_text(label), text), 0);
}

static void texts_that_end_with_their_page(void) {
  char *start = page_before_a_gap();
  open_region();
  for (size_t length = 0; length < TSL_LABEL_BYTES; length++) {
    char *text = start + PAGE - 1 - length;
    memset(text, 'x', length);
    text[length] = '\0';
    stands_again(text);
    if (length == 0) continue;
    uint32_t label = tsl_label_intern(text);
    text[length - 1] = 'y';
    CHECK_NE(tsl_label_intern(text), label);
    stands_again(text);
  }
  munmap(start, 2 * PAGE);
}

static void bytes_behind_a_text_are_no_part_of_it(void) {
  char room[2 * TSL_LABEL_BYTES];
  open_region();
  for (size_t length = 0; length < TSL_LABEL_BYTES; length++) {
    memset(room, 'x', length);
    room[length] = '\0';
    memset(room + length + 1, 'a', sizeof room - length - 1);
    uint32_t label = tsl_label_intern(room);
    memset(room + length + 1, 'b', sizeof room - length - 1);
    CHECK_EQ(tsl_label_intern(room), label);
    room[length + 1] = '\0';
    room[length] = 'x';
    CHECK_NE(tsl_label_intern(room), label);
    room[length] = '\0';
    CHECK_EQ(tsl_label_intern(room), label);
    room[length] = '\x80';
    CHECK_NE(tsl_label_intern(room), label);
  }
}

// Each difference in the last text is in another word of it.
static void every_byte_counts(void) {
  char text[TSL_LABEL_BYTES];
  open_region();
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  uint32_t label = tsl_label_intern(text);
  for (size_t at = 0; at < sizeof text - 1; at++) {
    text[at] = '\x80';
    CHECK_NE(tsl_label_intern(text), label);
    stands_again(text);
    text[at] = 'x';
    CHECK_EQ(tsl_label_intern(text), label);
  }
}

int main(void) {
  RUN(other_texts_at_the_same_place);
  RUN(no_text_at_a_place_of_none);
  RUN(threads_without_a_home_remember_none);
  RUN(texts_that_end_with_their_page);
  RUN(bytes_behind_a_text_are_no_part_of_it);
  RUN(every_byte_counts);
  return test_status();
}
