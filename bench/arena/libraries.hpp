// Ways to serve a request with the arenas of other libraries. Each is null where its library was
// not there when this was built.
#pragma once

#include "common/request.hpp"

#define ARENA_OPTIONAL __attribute__((weak))

ARENA_OPTIONAL void arena_serve_talloc(requests::request &r);
ARENA_OPTIONAL void arena_serve_obstack(requests::request &r);
ARENA_OPTIONAL void arena_serve_apr(requests::request &r);
ARENA_OPTIONAL void arena_start_apr();
