// tslab_error_text: a text of its own for every error that the header names, and for nothing else.
#include <ctype.h>
#include <errno.h>

#include "test.h"
#include "tslab.h"

enum { NUMBERS = 4096 };

static const struct {
  const char *name;
  int error;
} errors[] = {
    {"EPERM", EPERM},   {"ENOENT", ENOENT},   {"ENOMEM", ENOMEM},       {"EFAULT", EFAULT},
    {"EBUSY", EBUSY},   {"EINVAL", EINVAL},   {"ERANGE", ERANGE},       {"ELOOP", ELOOP},
    {"ESTALE", ESTALE}, {"ENOTSUP", ENOTSUP}, {"ECANCELED", ECANCELED},
};
enum { ERRORS = sizeof errors / sizeof *errors };

static char header[256 << 10];

static void header_read(void) {
  FILE *file = fopen(TSLAB_HEADER, "r");
  CHECK_THAT(file != NULL, "%s", TSLAB_HEADER);
  size_t bytes = fread(header, 1, sizeof header - 1, file);
  CHECK(bytes > 0 && bytes < sizeof header - 1);
  fclose(file);
}

static int error_named(const char *name, size_t length) {
  for (size_t i = 0; i < ERRORS; i++)
    if (strlen(errors[i].name) == length && memcmp(errors[i].name, name, length) == 0)
      return errors[i].error;
  CHECK_THAT(false, "the header names %.*s, which this test does not know", (int)length, name);
  return 0;
}

static bool is_of_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

// Of the words in capitals those that begin with E are errors.
static void header_errors(bool *named) {
  for (const char *at = header; *at != '\0';) {
    size_t length = 0, capitals = 0;
    for (; is_of_word(at[length]); length++) capitals += isupper((unsigned char)at[length]) != 0;
    if (*at == 'E' && length > 3 && capitals == length) named[error_named(at, length)] = true;
    at += length == 0 ? 1 : length;
  }
}

static void every_error_has_a_text(void) {
  static bool named[NUMBERS];
  const char *unknown = tslab_error_text(-1);
  header_read();
  header_errors(named);
  for (size_t i = 0; i < ERRORS; i++) CHECK_THAT(named[errors[i].error], "%s", errors[i].name);
  named[0] = true;
  for (int error = 0; error < NUMBERS; error++)
    CHECK_THAT((strcmp(tslab_error_text(error), unknown) != 0) == named[error], "%d", error);
}

static void texts_differ(void) {
  for (size_t i = 0; i < ERRORS; i++) {
    const char *text = tslab_error_text(errors[i].error);
    CHECK_THAT(strlen(text) > 10, "%s: %s", errors[i].name, text);
    CHECK_THAT(strcmp(text, tslab_error_text(0)) != 0, "%s", errors[i].name);
    CHECK(tslab_error_text(errors[i].error) == text);
    for (size_t other = 0; other < i; other++)
      CHECK_THAT(strcmp(text, tslab_error_text(errors[other].error)) != 0, "%s", text);
  }
}

static void errno_stays(void) {
  errno = EXDEV;
  CHECK(tslab_error_text(EINVAL) != tslab_error_text(EXDEV));
  CHECK_EQ(errno, EXDEV);
}

int main(void) {
  RUN(every_error_has_a_text);
  RUN(texts_differ);
  RUN(errno_stays);
  return test_status();
}
