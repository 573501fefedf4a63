#include "memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void memory_demand(const void *block) {
  if (block == NULL) {
    fputs("out of memory\n", stderr);
    exit(1);
  }
}

static void *memory_map_as(int sharing, size_t bytes) {
  int flags = sharing | MAP_ANONYMOUS | MAP_POPULATE;
  void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  memory_demand(block == MAP_FAILED ? NULL : block);
  return block;
}

void *memory_map(size_t bytes) { return memory_map_as(MAP_PRIVATE, bytes); }

void *memory_share(size_t bytes) { return memory_map_as(MAP_SHARED, bytes); }

static size_t file_read(const char *path, char *buffer, size_t capacity) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, buffer, capacity - 1);
  if (file >= 0) {
    close(file);
  }
  buffer[length < 0 ? 0 : length] = '\0';
  return length < 0 ? 0 : (size_t)length;
}

static uint64_t rollup_bytes(const char *key) {
  char text[2048];
  file_read("/proc/self/smaps_rollup", text, sizeof text);
  const char *line = strstr(text, key);
  if (line == NULL) {
    fputs("cannot read /proc/self/smaps_rollup\n", stderr);
    exit(1);
  }
  return strtoull(line + strlen(key), NULL, 10) * 1024;
}

uint64_t memory_resident_bytes(void) { return rollup_bytes("\nRss:"); }

uint64_t memory_lazy_bytes(void) { return rollup_bytes("\nLazyFree:"); }

uint64_t memory_resident_bytes_about(void) {
  char text[256];
  file_read("/proc/self/statm", text, sizeof text);
  const char *second = strchr(text, ' ');
  if (second == NULL) {
    fputs("cannot read /proc/self/statm\n", stderr);
    exit(1);
  }
  return strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}
