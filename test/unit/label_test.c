#include "state/label.h"

#include "base/atomic.h"
#include "threads.h"
#include "tslab.h"

enum { TEXTS = 500, ROUNDS = 20 };

static bool stands(uint32_t label, const char *text) {
  return strcmp(tsl_label_text(label), text) == 0;
}

static void equal_texts_are_one_label(void) {
  char text[] = "request";
  uint32_t label = tsl_label_intern("request");
  CHECK_EQ(tsl_label_intern(text), label);
  text[0] = 'R';
  CHECK_NE(tsl_label_intern(text), label);
  CHECK(stands(label, "request"));
  CHECK(stands(tsl_label_intern(text), "Request"));
  CHECK(tsl_label_text(label) == tsl_label_text(tsl_label_intern("request")));
}

static void similar_texts_are_many_labels(void) {
  static const char *texts[] = {"a",
                                "b",
                                "aa",
                                "ab",
                                "ba",
                                "a\x01",
                                "12345678",
                                "12345678a",
                                "a2345678",
                                "1234567812345678",
                                "123456781234567"};
  uint32_t labels[11];
  for (int i = 0; i < 11; i++) labels[i] = tsl_label_intern(texts[i]);
  for (int i = 0; i < 11; i++) {
    CHECK(stands(labels[i], texts[i]));
    for (int j = 0; j < i; j++) CHECK_NE(labels[i], labels[j]);
  }
}

static void texts_of_every_length(void) {
  char text[TSL_LABEL_BYTES] = "";
  CHECK_EQ(TSL_LABEL_BYTES, TSLAB_LABEL_BYTES);
  for (size_t length = 0; length < TSL_LABEL_BYTES; length++) {
    memset(text, 'x', length);
    uint32_t label = tsl_label_intern(text);
    CHECK_EQ(label, length + 2);
    CHECK(stands(label, text));
  }
  memset(text, 'x', sizeof text);
  CHECK_EQ(tsl_label_intern(text), 0);
}

static void texts_that_differ_at_the_end(void) {
  char text[TSL_LABEL_BYTES] = "";
  memset(text, 'x', TSL_LABEL_BYTES - 1);
  uint32_t label = tsl_label_intern(text);
  text[TSL_LABEL_BYTES - 2] = 'y';
  CHECK_NE(tsl_label_intern(text), label);
  CHECK_EQ(strlen(tsl_label_text(label)), TSL_LABEL_BYTES - 1);
}

static void any_bytes(void) {
  static const char *texts[] = {"\xc3\x9f", "\xe6\x97\xa5\xe6\x9c\xac", "\xff\xfe", "\n\"'",
                                "\xf0\x9f\x90\xa6"};
  for (int i = 0; i < 5; i++) CHECK(stands(tsl_label_intern(texts[i]), texts[i]));
  for (int i = 0; i < 5; i++) CHECK_EQ(tsl_label_intern(texts[i]), (uint32_t)i + 2);
}

static void no_text_is_a_text(void) {
  uint32_t label = tsl_label_intern("");
  CHECK(label != TSL_LABEL_DEFAULT && label != TSL_LABEL_OTHER);
  CHECK(stands(label, ""));
  CHECK_EQ(tsl_label_intern(""), label);
}

static void reserved_labels(void) {
  CHECK(stands(TSL_LABEL_DEFAULT, "default"));
  CHECK(stands(TSL_LABEL_OTHER, "other"));
  CHECK_NE(tsl_label_intern("default"), TSL_LABEL_DEFAULT);
  CHECK(stands(tsl_label_intern("other"), "other"));
}

static const char *numbered(unsigned number) {
  static __thread char text[32];
  snprintf(text, sizeof text, "%u", number * 7919);
  return text;
}

static void further_texts_are_other(void) {
  enum { KEPT = TSL_MOST_LABELS - 2 };
  CHECK_EQ(KEPT, 4094);
  for (unsigned i = 0; i < KEPT; i++) CHECK_EQ(tsl_label_intern(numbered(i)), i + 2);
  for (unsigned i = KEPT; i < KEPT + 100; i++)
    CHECK_EQ(tsl_label_intern(numbered(i)), TSL_LABEL_OTHER);
  for (unsigned i = 0; i < KEPT; i++) {
    CHECK_EQ(tsl_label_intern(numbered(i)), i + 2);
    CHECK(stands(i + 2, numbered(i)));
  }
}

// Threads that bring the same texts in different orders agree on their numbers.
static uint32_t agreed[TEXTS];
static uint32_t seeds;

static void *intern_all(void *first) {
  unsigned start = tsl_add_relaxed(&seeds, 1) * 131;
  for (unsigned i = 0; i < TEXTS; i++) {
    unsigned number = (start + i) % TEXTS;
    uint32_t label = tsl_label_intern(numbered(*(unsigned *)first + number)), none = 0;
    CHECK(stands(label, numbered(*(unsigned *)first + number)));
    if (!tsl_cas_relaxed(&agreed[number], &none, label) && none != 0) CHECK_EQ(label, none);
  }
  return NULL;
}

static void threads_agree(void) {
  for (unsigned round = 0; round < ROUNDS / 3; round++) {
    unsigned first = round * TEXTS;
    memset(agreed, 0, sizeof agreed);
    threads_run(intern_all, &first);
    for (unsigned i = 0; i < TEXTS; i++) {
      CHECK_EQ(tsl_label_intern(numbered(first + i)), agreed[i]);
      CHECK_LE(agreed[i], first + TEXTS + 1);
      for (unsigned j = 0; j < i; j++) {
        if (agreed[i] == agreed[j]) CHECK_NE(agreed[i], agreed[j]);
      }
    }
  }
}

static void known_labels_need_no_lock(void) {
  tsl_lock_acquire(&tsl_labels_lock);
  tsl_lock_release(&tsl_labels_lock);
  CHECK_EQ(tsl_label_intern("first"), 2);
  tsl_lock_acquire(&tsl_labels_lock);
  CHECK_EQ(tsl_label_intern("first"), 2);
  tsl_lock_release(&tsl_labels_lock);
  CHECK_EQ(tsl_label_intern("second"), 3);
}

int main(void) {
  RUN(equal_texts_are_one_label);
  RUN(similar_texts_are_many_labels);
  RUN(texts_of_every_length);
  RUN(texts_that_differ_at_the_end);
  RUN(any_bytes);
  RUN(no_text_is_a_text);
  RUN(reserved_labels);
  RUN(further_texts_are_other);
  RUN(threads_agree);
  RUN(known_labels_need_no_lock);
  return test_status();
}
