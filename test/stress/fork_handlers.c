#include "fork_handlers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 40 };

static bool allocate;
static unsigned ran;

// Many sizes: some need memory that the thread does not have at hand.
static void handler(void) {
  void *blocks[BLOCKS];
  if (!allocate) return;
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(i * i * i * 8);
    if (blocks[i] == NULL) abort();
    memset(blocks[i], 1, i * i * i * 8);
  }
  for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
  ran++;
}

__attribute__((constructor)) static void register_handlers(void) {
  if (pthread_atfork(handler, handler, handler) != 0) abort();
}

void fork_handlers_allocate(bool wanted) { allocate = wanted; }
unsigned fork_handlers_ran(void) { return ran; }
