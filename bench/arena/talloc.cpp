#include <talloc.h>

#include "arena/libraries.hpp"

void arena_serve_talloc(requests::request &r) {
  void *context = talloc_new(nullptr);
  memory_demand(context);
  for (unsigned i = 0; i < requests::object_count; i++) {
    char *object = static_cast<char *>(talloc_size(context, r.sizes[i]));
    memory_demand(object);
    object[0] = 1;
    r.objects[i] = object;
  }
  talloc_free(context);
}
