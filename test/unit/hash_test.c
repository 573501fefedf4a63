#include "base/hash.h"

#include <stdbool.h>
#include <string.h>

#include "test.h"

static uint64_t hash_text(const char *text) {
  uint64_t hash = TSL_HASH_EMPTY;
  for (; *text != 0; text++) hash = tsl_hash_add(hash, (uint8_t)*text);
  return hash;
}

// From the authors' list of test vectors.
static void bytes_as_published(void) {
  CHECK_EQ(hash_text(""), UINT64_C(0xcbf29ce484222325));
  CHECK_EQ(hash_text("a"), UINT64_C(0xaf63dc4c8601ec8c));
  CHECK_EQ(hash_text("foobar"), UINT64_C(0x85944171f73967e8));
}

static void words_in_order(void) {
  uint64_t one = tsl_hash_add(TSL_HASH_EMPTY, UINT64_C(1) << 40);
  CHECK(one != tsl_hash_add(TSL_HASH_EMPTY, UINT64_C(1) << 41));
  CHECK(tsl_hash_add(one, 2) != tsl_hash_add(tsl_hash_add(TSL_HASH_EMPTY, 2), UINT64_C(1) << 40));
}

enum { LOG2 = 13, BYTES = 256 };

static unsigned places_of(uint64_t (*value_of)(uint64_t byte, unsigned at), unsigned at) {
  static bool taken[1 << LOG2];
  unsigned places = 0;
  memset(taken, 0, sizeof taken);
  for (uint64_t byte = 0; byte < BYTES; byte++) {
    bool *place = &taken[tsl_hash_place(value_of(byte, at), LOG2)];
    places += !*place;
    *place = true;
  }
  return places;
}

static uint64_t as_it_is(uint64_t byte, unsigned at) { return byte << 8 * at; }

// Behind the word "label ", as in state/label.c.
static uint64_t hashed(uint64_t byte, unsigned at) {
  return tsl_hash_add(tsl_hash_add(TSL_HASH_EMPTY, UINT64_C(0x206c6562616c)), byte << 8 * at);
}

// Also of values that differ in one byte alone, whichever it is.
static void places_of_their_own(void) {
  for (unsigned at = 0; at < 8; at++) {
    CHECK_EQ(places_of(as_it_is, at), BYTES);
    CHECK_GE(places_of(hashed, at), BYTES - BYTES / 8);
  }
}

int main(void) {
  RUN(bytes_as_published);
  RUN(words_in_order);
  RUN(places_of_their_own);
  return test_status();
}
