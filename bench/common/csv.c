#include "csv.h"

#include "output.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 256

FILE *csv_open(const char *path, const char *header) {
  FILE *file = output_open(path, "a+");
  char first[HEADER_BYTES];
  rewind(file);
  if (fgets(first, sizeof first, file) == NULL) {
    fprintf(file, "%s\n", header);
    return file;
  }
  first[strcspn(first, "\r\n")] = '\0';
  if (strcmp(first, header) != 0) {
    fprintf(stderr, "%s is another table: it begins with %s\n", path, first);
    exit(1);
  }
  // Between reading a stream and writing it stands a seek.
  fseek(file, 0, SEEK_END);
  return file;
}
