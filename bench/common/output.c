#include "output.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

const char *output_take(args *a, const char *name) {
  const char *path = args_take_value(a, name);
  if (path == NULL) {
    return NULL;
  }
  int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) {
    args_refuse(a, "cannot be written", path);
  }
  close(file);
  return path;
}

static void output_check(int ok, const char *path) {
  if (!ok) {
    fprintf(stderr, "cannot write %s\n", path);
    exit(1);
  }
}

FILE *output_open(const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  output_check(file != NULL, path);
  return file;
}

void output_close(FILE *file, const char *path) {
  int failed = ferror(file);
  output_check(fclose(file) == 0 && failed == 0, path);
}
