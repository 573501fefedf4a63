// label: the texts that name epochs. Each stands once, for ever, and has a number.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
  TSL_LABEL_BYTES = 64,       // with the 0 at the end
  TSL_MOST_LABELS = 1 << 12,  // further ones are called TSL_LABEL_OTHER
  TSL_LABEL_DEFAULT = 0,
  TSL_LABEL_OTHER = 1,
};

// The number of a text of less than TSL_LABEL_BYTES bytes. Any thread.
TSL_HIDDEN uint32_t tsl_label_intern(const char *text, size_t length);

TSL_HIDDEN const char *tsl_label_text(uint32_t label);

// For fork: no label is added between the two.
TSL_HIDDEN void tsl_labels_lock(void);
TSL_HIDDEN void tsl_labels_unlock(void);
