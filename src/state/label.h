// label: the texts that name epochs. Each text is kept once, for ever, and has a number.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/lock.h"

enum {
  TSL_LABEL_BYTES = 64,       // with the 0 at the end
  TSL_MOST_LABELS = 1 << 12,  // further ones are called TSL_LABEL_OTHER
  TSL_LABEL_DEFAULT = 0,
  TSL_LABEL_OTHER = 1,
  TSL_LABEL_FIRST,  // of those that the program names
  TSL_LABEL_WORDS = TSL_LABEL_BYTES / 8,
};

// A text padded with zeros, so that equal texts are equal words; the first zero word is its end.
struct tsl_label {
  union {
    char text[TSL_LABEL_BYTES];
    uint64_t words[TSL_LABEL_WORDS];
  };
};

// [lock:labels, read by any] By number, from TSL_LABEL_FIRST on. Here for readers of core dumps
// (observe/postmortem.c).
TSL_HIDDEN extern struct tsl_label tsl_labels[TSL_MOST_LABELS];

// The number of a text; 0, which no text of the program has, when the text and the 0 at its end are
// more than TSL_LABEL_BYTES bytes. Any thread.
TSL_HIDDEN uint32_t tsl_label_intern(const char *text);

// The text of a number below TSL_LABEL_FIRST.
TSL_HIDDEN const char *tsl_label_reserved(uint32_t label);

// The text of a number. Any thread.
TSL_ALWAYS_INLINE const char *tsl_label_text(uint32_t label) {
  return tsl_likely(label >= TSL_LABEL_FIRST) ? tsl_labels[label].text : tsl_label_reserved(label);
}

// Held while a label is added; finding one needs no lock.
TSL_HIDDEN extern struct tsl_lock tsl_labels_lock;

// In the child of a fork: takes over the lock if a lost thread held it.
TSL_HIDDEN void tsl_labels_after_fork(void);
