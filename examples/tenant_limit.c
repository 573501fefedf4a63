// A service gives each tenant an epoch with a hard limit, and each request of the tenant an epoch
// below: a greedy request is refused memory, and neighbours notice nothing. Before it is refused,
// the tenant's own cache has to go.
#include <errno.h>
#include <tslab.h>

#include "expect.h"

#define MIB ((size_t)1 << 20)
#define BLOCK_BYTES ((size_t)16 << 10)
// Room for 3 MiB of blocks also where the hardened build adds a quarter to each.
#define LIMIT_BYTES (4 * MIB + MIB / 2)

struct tenant {
  const char *name;
  tslab_epoch epoch;
  tslab_epoch cache;
  int evictions;
};

static void make_room(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                      size_t wanted_bytes, void *context) {
  struct tenant *tenant = context;
  EXPECT(epoch == tenant->epoch && limit == TSLAB_HARD_LIMIT);
  EXPECT(held_bytes + wanted_bytes > LIMIT_BYTES);
  if (tenant->cache == TSLAB_NO_EPOCH) return;
  tslab_epoch cache = tenant->cache;
  tenant->cache = TSLAB_NO_EPOCH;
  EXPECT_DONE(tslab_epoch_release(cache));
  tenant->evictions++;
}

static tslab_epoch open_below(const char *label, const struct tenant *tenant) {
  tslab_epoch_options below = {.size = sizeof below, .parent = tenant->epoch};
  tslab_epoch epoch = tslab_epoch_open(label, &below);
  EXPECT(epoch != TSLAB_NO_EPOCH);
  return epoch;
}

static void tenant_open(struct tenant *tenant, const char *name) {
  tslab_epoch_options options = {
      .size = sizeof options,
      .hard_limit_bytes = LIMIT_BYTES,
      .on_limit = make_room,
      .limit_context = tenant,
  };
  *tenant = (struct tenant){.name = name, .epoch = tslab_epoch_open("tenant", &options)};
  EXPECT(tenant->epoch != TSLAB_NO_EPOCH);
  tenant->cache = open_below("cache", tenant);
}

// Ordinary code, which meets a malloc that fails.
static size_t fill(tslab_epoch epoch, size_t wanted_bytes) {
  tslab_scope here;
  void **last = NULL;
  size_t got_bytes = 0;
  EXPECT_DONE(tslab_scope_enter(&here, epoch));
  for (size_t asked_bytes = 0; asked_bytes < wanted_bytes; asked_bytes += BLOCK_BYTES) {
    void **block = malloc(BLOCK_BYTES);
    EXPECT(block != NULL || errno == ENOMEM);
    if (block == NULL) break;
    *block = last;
    last = block;
  }
  tslab_scope_leave(&here);
  for (; last != NULL; last = *last) got_bytes += BLOCK_BYTES;
  return got_bytes;
}

static size_t request(struct tenant *tenant, size_t wanted_bytes) {
  tslab_epoch epoch = open_below("request", tenant);
  size_t got_bytes = fill(epoch, wanted_bytes);
  printf("%s: a request wanted %2zu MiB and got %s%s\n", tenant->name, wanted_bytes / MIB,
         got_bytes == wanted_bytes ? "them" : "ENOMEM",
         tenant->evictions != 0 ? "; the cache is evicted" : "");
  EXPECT_DONE(tslab_epoch_release(epoch));
  return got_bytes;
}

int main(void) {
  struct tenant modest, greedy;
  tenant_open(&modest, "modest");
  tenant_open(&greedy, "greedy");
  EXPECT(fill(modest.cache, 2 * MIB) == 2 * MIB);
  EXPECT(fill(greedy.cache, 2 * MIB) == 2 * MIB);

  EXPECT(request(&greedy, 1 * MIB) == 1 * MIB && greedy.evictions == 0);
  EXPECT(request(&greedy, 3 * MIB) == 3 * MIB && greedy.evictions == 1);
  size_t got_bytes = request(&greedy, 64 * MIB);
  EXPECT(got_bytes > 3 * MIB && got_bytes <= LIMIT_BYTES && greedy.evictions == 1);
  EXPECT(request(&modest, 1 * MIB) == 1 * MIB && modest.evictions == 0);

  EXPECT_DONE(tslab_epoch_release(greedy.epoch));
  EXPECT_DONE(tslab_epoch_release(modest.epoch));
  EXPECT(tslab_epoch_release(modest.cache) == ESTALE);
  return 0;
}
