#include "state/label.h"

#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/tools.h"
#include "state/heap.h"

enum { LABEL_PLACES_LOG2 = 13, LABEL_PLACES = 1 << LABEL_PLACES_LOG2 };
enum { LABEL_WORDS = TSL_LABEL_WORDS };

_Static_assert(LABEL_PLACES >= 2 * TSL_MOST_LABELS, "half of the places stay empty");

struct tsl_label tsl_labels[TSL_MOST_LABELS];
static uint32_t label_places[LABEL_PLACES];  // [lock:labels, read by any] numbers by hash; 0: empty
struct tsl_lock tsl_labels_lock = {.rank = TSL_RANK_LABELS};
static uint32_t label_count TSL_GUARDED_BY(tsl_labels_lock) = TSL_LABEL_FIRST;  // [lock:labels]

// Texts that end in numbers may differ in the last bytes of a word alone, which reach only the
// upper bits of this hash.
static uint32_t label_hash(const struct tsl_label *label) {
  uint64_t hash = TSL_HASH_EMPTY;
  for (unsigned w = 0; w < LABEL_WORDS && label->words[w] != 0; w++)
    hash = tsl_hash_add(hash, label->words[w]);
  return (uint32_t)tsl_hash_place(hash, LABEL_PLACES_LOG2);
}

static bool labels_equal(const struct tsl_label *a, const struct tsl_label *b) {
  unsigned w = 0;
  while (w < LABEL_WORDS - 1 && a->words[w] == b->words[w] && a->words[w] != 0) w++;
  return a->words[w] == b->words[w];
}

// The label's number and the place where it stands; 0 and the empty place where it would.
static uint32_t label_find(const struct tsl_label *label, uint32_t **place) {
  for (uint32_t at = label_hash(label);; at++) {
    *place = &label_places[at % LABEL_PLACES];
    uint32_t number = tsl_load_acquire(*place);  // pairs: label
    if (number == 0 || labels_equal(&tsl_labels[number], label)) return number;
  }
}

static uint32_t label_add(const struct tsl_label *label) {
  uint32_t *place;
  tsl_lock_acquire(&tsl_labels_lock);
  uint32_t number = label_find(label, &place);
  bool is_new = number == 0 && label_count < TSL_MOST_LABELS;
  if (number == 0) number = is_new ? label_count++ : TSL_LABEL_OTHER;
  if (is_new) {
    tsl_labels[number] = *label;
    tsl_store_release(place, number);  // pairs: label
  }
  tsl_lock_release(&tsl_labels_lock);
  return number;
}

static uint32_t label_look_up(const char *text) {
  struct tsl_label label = {.text = {0}};
  uint32_t *place;
  size_t length = strnlen(text, TSL_LABEL_BYTES);
  if (length == TSL_LABEL_BYTES) return 0;
  memcpy(label.text, text, length);
  uint32_t number = label_find(&label, &place);
  return number != 0 ? number : label_add(&label);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a word's first byte is its lowest");

// The bits of a word's bytes up to its first 0; 0 where it has none.
static uint64_t bits_to_end(uint64_t word) {
  uint64_t ends = (word - tsl_each_byte(1)) & ~word & tsl_each_byte(0x80);
  return ends == 0 ? 0 : ends ^ (ends - 1);
}

// Eight bytes of a text, wherever it lies.
typedef uint64_t __attribute__((may_alias, aligned(1))) text_word;

// After a pause of the thread a call of strcmp takes 100 ns (decision 020). Eight bytes are read at
// once, some of them perhaps behind the text.
TSL_NOT_SANITIZED static bool says(const struct tsl_label *label, const char *text) {
  if (tsl_unlikely(tsl_tools_watch)) return strcmp(label->text, text) == 0;
  for (const uint64_t *word = label->words;; word++, text += sizeof *word) {
    uint64_t end = bits_to_end(*word);
    if ((uintptr_t)text % TSL_READABLE_BYTES > TSL_READABLE_BYTES - sizeof(text_word))
      return strcmp((const char *)word, text) == 0;
    uint64_t said = *(const text_word *)text;
    if (end != 0) return ((said ^ *word) & end) == 0;
    if (said != *word) return false;
  }
}

static bool is_label(uint32_t number, const char *text) {
  return number >= TSL_LABEL_FIRST && says(&tsl_labels[number], text);
}

// Most programs name their epochs by few texts, each at the same address every time.
uint32_t tsl_label_intern(const char *text) {
  struct tsl_home *home = tsl_heap_current->home;
  if (home == &tsl_home_empty) return label_look_up(text);
  uint32_t *last = &home->own->labels[(uintptr_t)text / 8 % TSL_HOME_LABELS];
  if (!is_label(*last, text)) *last = label_look_up(text);
  return *last;
}

// Two texts in the table would make it initialised data: 256 KiB of the library's file, of which
// the first read brings in 64 KiB.
const char *tsl_label_reserved(uint32_t label) {
  return label == TSL_LABEL_DEFAULT ? "default" : "other";
}

// A number that the lost thread had taken, but not stored in its place, is never used.
void tsl_labels_after_fork(void) { tsl_lock_take_over(&tsl_labels_lock); }
