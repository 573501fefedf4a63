#include "scenario.h"

#include <errno.h>

tslab_epoch epoch;
void *blocks[MOST_BLOCKS];
tslab_scope scopes[MODEL_THREADS];

static unsigned allocated, begun, ended;

// With hot blocks for what the library itself allocates.
static void warm(void) {
  tslab_free(tslab_malloc(BLOCK_BYTES));
  tslab_free(tslab_malloc(32));
}

void warm_all(void) {
  for (int i = 0; i < MODEL_THREADS; i++) model_as(i, warm);
}

tslab_epoch open_slabs(void) {
  tslab_epoch_options options = {.size = sizeof options, .first_cell_bytes = TSLAB_NO_CELLS};
  return tslab_epoch_open("slabs", &options);
}

tslab_epoch open_cells(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_OWN};
  return tslab_epoch_open("cells", &options);
}

static struct order {
  unsigned first, count;
  size_t bytes;
} order;

static void allocate(void) {
  for (unsigned i = order.first; i < order.first + order.count; i++) {
    blocks[i] = tslab_epoch_malloc(epoch, order.bytes);
    EXPECT(blocks[i] != NULL);
  }
}

void allocate_in_epoch(int thread, unsigned first, unsigned count, size_t bytes) {
  order = (struct order){first, count, bytes};
  allocated += count;
  model_as(thread, allocate);
}

void free_block(unsigned index) {
  void *block = blocks[index];
  begun++;
  blocks[index] = NULL;
  tslab_free(block);
  ended++;
}

void close_counted(void) {
  unsigned before = ended;
  tslab_survivors survivors = tslab_epoch_close(epoch);
  EXPECT(survivors.error == 0);
  EXPECT(survivors.objects <= allocated - before);
  EXPECT(survivors.objects >= allocated - begun);
}

void close_epoch(void) {
  int error = tslab_epoch_close(epoch).error;
  EXPECT(error == 0 || error == ECANCELED || error == ESTALE);
}

// EBUSY: it was closed, and somebody is still on the way out.
void release_epoch(void) {
  int error = tslab_epoch_release(epoch);
  EXPECT(error == 0 || error == ESTALE || error == EBUSY);
}

void release_rest(void) {
  int error = tslab_epoch_release(epoch);
  EXPECT(error == 0 || error == ESTALE);
}

void free_rest(void) {
  for (unsigned i = 0; i < MOST_BLOCKS; i++) {
    if (blocks[i] != NULL) free_block(i);
  }
}
