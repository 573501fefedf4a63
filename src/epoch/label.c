#include "epoch/label.h"

#include <stdbool.h>
#include <string.h>

#include "base/atomic.h"

enum { PLACES = 2 * TSL_MOST_LABELS, WORDS = TSL_LABEL_BYTES / 8 };

// A text padded with zeros, so that equal texts are equal words.
struct label {
  uint64_t words[WORDS];
};

static struct label labels[TSL_MOST_LABELS] = {{{0}}, {{0}}};
static uint32_t count = 2;       // [lock:labels]
static uint32_t places[PLACES];  // [lock:labels, read by any] numbers by hash; 0: empty
struct tsl_lock tsl_labels_lock;

// FNV-1a over words instead of bytes (Fowler, Noll, Vo), its high bits folded in.
static uint32_t label_hash(const struct label *label) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (unsigned w = 0; w < WORDS && label->words[w] != 0; w++)
    hash = (hash ^ label->words[w]) * UINT64_C(1099511628211);
  return (uint32_t)(hash ^ hash >> 32);
}

static bool labels_equal(const struct label *a, const struct label *b) {
  uint64_t different = 0;
  for (unsigned w = 0; w < WORDS; w++) different |= a->words[w] ^ b->words[w];
  return different == 0;
}

// Where the label stands, or the empty place where it would.
static uint32_t *find_place(const struct label *label) {
  for (uint32_t at = label_hash(label);; at++) {
    uint32_t *place = &places[at % PLACES];
    uint32_t number = tsl_load_acquire(place);  // pairs: label
    if (number == 0 || labels_equal(&labels[number], label)) return place;
  }
}

static uint32_t label_add(const struct label *label) {
  tsl_lock_acquire(&tsl_labels_lock);
  uint32_t *place = find_place(label), number = *place;
  if (number == 0) number = count < TSL_MOST_LABELS ? count++ : TSL_LABEL_OTHER;
  if (number != TSL_LABEL_OTHER && *place == 0) {
    labels[number] = *label;
    tsl_store_release(place, number);  // pairs: label
  }
  tsl_lock_release(&tsl_labels_lock);
  return number;
}

uint32_t tsl_label_intern(const char *text, size_t length) {
  struct label label = {{0}};
  memcpy(label.words, text, length);
  // Another thread may have put another text in the place that was found empty.
  uint32_t number = tsl_load_acquire(find_place(&label));  // pairs: label
  bool is_known = number != 0 && labels_equal(&labels[number], &label);
  return is_known ? number : label_add(&label);
}

const char *tsl_label_text(uint32_t label) {
  if (label == TSL_LABEL_DEFAULT) return "default";
  return label == TSL_LABEL_OTHER ? "other" : (const char *)labels[label].words;
}

// A number whose label was not in its place yet is nobody's for ever.
void tsl_labels_after_fork(void) { tsl_lock_take_over(&tsl_labels_lock); }
