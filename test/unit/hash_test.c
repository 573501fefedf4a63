#include "base/hash.h"

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

int main(void) {
  RUN(bytes_as_published);
  RUN(words_in_order);
  return test_status();
}
