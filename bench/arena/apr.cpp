#include <apr_general.h>
#include <apr_pools.h>

#include "arena/libraries.hpp"

namespace {

// A connection's pool, with an allocator of its own, as servers have one in each thread.
apr_pool_t *connection;

void status_check(apr_status_t status) {
  if (status != APR_SUCCESS) {
    fprintf(stderr, "apr refuses: error %d\n", status);
    exit(1);
  }
}

}  // namespace

void arena_start_apr() {
  apr_allocator_t *allocator;
  status_check(apr_initialize());
  status_check(apr_allocator_create(&allocator));
  status_check(apr_pool_create_ex(&connection, nullptr, nullptr, allocator));
}

void arena_serve_apr(requests::request &r) {
  apr_pool_t *pool;
  status_check(apr_pool_create(&pool, connection));
  for (unsigned i = 0; i < requests::object_count; i++) {
    char *object = static_cast<char *>(apr_palloc(pool, r.sizes[i]));
    memory_demand(object);
    object[0] = 1;
    r.objects[i] = object;
  }
  apr_pool_destroy(pool);
}
