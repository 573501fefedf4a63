#include <obstack.h>

#include "arena/libraries.hpp"

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

void arena_serve_obstack(requests::request &r) {
  obstack arena;
  obstack_init(&arena);
  for (unsigned i = 0; i < requests::object_count; i++) {
    char *object = static_cast<char *>(obstack_alloc(&arena, r.sizes[i]));
    object[0] = 1;
    r.objects[i] = object;
  }
  obstack_free(&arena, nullptr);
}
