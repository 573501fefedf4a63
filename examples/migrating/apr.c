// From a pool of APR, with a cleanup, to an epoch, with a call that is registered for its end.
#include <apr_general.h>
#include <apr_pools.h>

#include "lines.h"

static int cleanups;

// --8<-- [start:before]
static apr_status_t pool_ends(void *count) {
  ++*(int *)count;
  return APR_SUCCESS;
}

static size_t before(void) {
  apr_pool_t *request;
  EXPECT(apr_pool_create(&request, NULL) == APR_SUCCESS);
  apr_pool_cleanup_register(request, &cleanups, pool_ends, apr_pool_cleanup_null);
  struct line *lines = NULL;
  for (int i = 0; i < LINES; i++) lines = line_begin(apr_palloc(request, sizeof *lines), lines, i);
  size_t total = lines_total(lines);
  apr_pool_destroy(request);
  return total;
}
// --8<-- [end:before]

// --8<-- [start:after]
static void epoch_ends(void *count) { ++*(int *)count; }

static size_t after(void) {
  tslab_epoch request = tslab_epoch_open("request", NULL);
  EXPECT_DONE(tslab_epoch_defer(request, epoch_ends, &cleanups));
  struct line *lines = NULL;
  for (int i = 0; i < LINES; i++)
    lines = line_begin(tslab_epoch_malloc(request, sizeof *lines), lines, i);
  size_t total = lines_total(lines);
  EXPECT_DONE(tslab_epoch_release(request));
  return total;
}
// --8<-- [end:after]

int main(void) {
  EXPECT(apr_initialize() == APR_SUCCESS);
  EXPECT(before() == after());
  EXPECT(cleanups == 2);
  apr_terminate();
  return 0;
}
