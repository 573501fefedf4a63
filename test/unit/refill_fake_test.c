#include "upkeep/refill.h"

#include "blocks.h"
#include "state.h"
#include "takes.h"

static struct tsl_heap *heap, *other;

static void open_heaps(void) { blocks_open((size_t)1 << 27, &heap, &other); }

static void no_memory_and_again(void) {
  open_heaps();
  os_fake_fail_all(OS_FAKE_COMMIT);
  for (size_t bytes = 16; bytes <= TSL_SMALL_LIMIT; bytes *= 2) {
    CHECK(tsl_fast_malloc(bytes) == NULL);
    CHECK(tsl_heap_refill(heap, takes_class(bytes)) == NULL);
  }
  state_check();
  os_fake_recover();
  for (size_t bytes = 16; bytes <= TSL_SMALL_LIMIT; bytes *= 2) alloc(bytes);
  state_check();
}

int main(void) {
  RUN(no_memory_and_again);
  return test_status();
}
