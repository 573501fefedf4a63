// process: what the kernel says of this process, read without allocating.
#ifndef TSLAB_TEST_PROCESS_H
#define TSLAB_TEST_PROCESS_H

#include <fcntl.h>
#include <stdint.h>
#include <time.h>

#include "check.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static inline void process_pages(size_t *mapped_pages, size_t *resident_pages) {
  char text[128];
  int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  CHECK(file >= 0);
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  CHECK(length > 0);
  text[length] = '\0';
  char *rest;
  *mapped_pages = strtoul(text, &rest, 10);
  *resident_pages = strtoul(rest, NULL, 10);
}

static inline size_t process_resident_bytes(void) {
  size_t mapped_pages, resident_pages;
  process_pages(&mapped_pages, &resident_pages);
  return resident_pages * (size_t)sysconf(_SC_PAGESIZE);
}

// What a file of /proc says in KiB behind a name, in bytes; 0 when it does not have the name.
static inline size_t process_file_bytes(const char *path, const char *name) {
  char text[4096];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(file >= 0);
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  CHECK(length > 0);
  text[length] = '\0';
  const char *line = strstr(text, name);
  return line == NULL ? 0 : strtoul(line + strlen(name), NULL, 10) * KIB;
}

static inline size_t process_mapped_bytes(void) {
  size_t mapped_pages, resident_pages;
  process_pages(&mapped_pages, &resident_pages);
  return mapped_pages * (size_t)sysconf(_SC_PAGESIZE);
}

static inline uint64_t process_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
