// hermit: a program that is linked statically to an allocator of its own, which never frees.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BYTES = 1 << 20, ALIGN = 16 };

static _Alignas(ALIGN) unsigned char memory[BYTES];
static size_t used;

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *block, size_t bytes);
void free(void *block);

void *malloc(size_t bytes) {
  size_t taken = (bytes + ALIGN - 1) / ALIGN * ALIGN;
  if (taken < bytes || taken > BYTES - used) return NULL;
  used += taken;
  return memory + used - taken;
}

void *calloc(size_t count, size_t bytes) {
  if (bytes != 0 && count > SIZE_MAX / bytes) return NULL;
  return malloc(count * bytes);
}

void *realloc(void *block, size_t bytes) {
  void *next = malloc(bytes);
  if (block != NULL && next != NULL) memmove(next, block, bytes);
  return next;
}

void free(void *block) { (void)block; }

int main(void) { return malloc(1000) == NULL; }
