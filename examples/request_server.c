// A server gives each request an epoch: what parsers and libraries allocate on the way ends with
// the request, and nobody has to free it.
#include <string.h>
#include <tslab.h>

#include "expect.h"

enum { REQUESTS = 10000, PATHS = 4, FIELDS = 20 };

struct field {
  struct field *next;
  char *name;
};

struct request {
  char *path;
  struct field *fields;
};

static char *cache[PATHS];

static struct request *parse(const char *path) {
  struct request *request = malloc(sizeof *request);
  request->path = strdup(path);
  request->fields = NULL;
  for (int i = 0; i < FIELDS; i++) {
    struct field *field = malloc(sizeof *field);
    field->name = strdup("X-Forwarded-For");
    field->next = request->fields;
    request->fields = field;
  }
  return request;
}

static size_t respond(const struct request *request) {
  size_t bytes = strlen(request->path);
  for (const struct field *field = request->fields; field != NULL; field = field->next)
    bytes += strlen(field->name);
  return bytes;
}

// An entry outlives the request that made it.
static void cache_put(int place, const struct request *request) {
  tslab_scope keep;
  if (cache[place] != NULL) return;
  EXPECT_DONE(tslab_scope_default(&keep));
  cache[place] = strdup(request->path);
  tslab_scope_leave(&keep);
}

static size_t handle(int number) {
  char path[32];
  tslab_scope here;
  tslab_epoch_stats stats = {.size = sizeof stats};
  tslab_epoch epoch = tslab_epoch_open("GET /page", NULL);
  EXPECT_DONE(tslab_scope_enter(&here, epoch));

  snprintf(path, sizeof path, "/page/%d", number % PATHS);
  const struct request *request = parse(path);
  cache_put(number % PATHS, request);
  EXPECT(respond(request) == strlen(path) + FIELDS * strlen("X-Forwarded-For"));
  EXPECT(tslab_epoch_of(request->path) == epoch);

  tslab_scope_leave(&here);
  EXPECT_DONE(tslab_epoch_get_stats(epoch, &stats));
  EXPECT_DONE(tslab_epoch_release(epoch));
  EXPECT(tslab_epoch_get_stats(epoch, &stats) != 0);
  return stats.live_objects;
}

int main(void) {
  size_t ended = 0;
  for (int i = 0; i < REQUESTS; i++) ended += handle(i);
  // At least: a compiler may keep what does not leave a function in registers.
  EXPECT(ended >= (size_t)REQUESTS * 2 * FIELDS);
  printf("%d requests left %zu objects to their epochs\n", REQUESTS, ended);

  for (int i = 0; i < PATHS; i++) {
    EXPECT(tslab_epoch_of(cache[i]) == TSLAB_DEFAULT);
    printf("cached: %s\n", cache[i]);
    free(cache[i]);
  }
  return 0;
}
