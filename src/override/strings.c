// strings: copies of strings that the program asks for. The C library's own would lie in the
// default epoch (libraries.h), which is no place for what the program allocates. Where another
// malloc comes first, they are that malloc's.
#include <stdlib.h>
#include <string.h>

#include "override/override.h"

static char *copy_of(const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (tsl_unlikely(copy == NULL)) return NULL;
  copy[length] = '\0';
  return memcpy(copy, text, length);
}

FACE char *strdup(const char *text) {  // NOLINT(readability-inconsistent-*): the system's names
  return copy_of(text, strlen(text));
}

FACE char *strndup(const char *text, size_t most) {  // NOLINT(readability-inconsistent-*)
  return copy_of(text, strnlen(text, most));
}
