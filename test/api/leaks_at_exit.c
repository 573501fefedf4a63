// Option leaks_at_exit: lines on stderr, and an exit status for tests.
#include <sys/wait.h>
#include <unistd.h>

#include "../child.h"
#include "epochs.h"

enum { OBJECTS = 5, STATUS = 3, FAILED = 23 };

// What each run is: leaves objects in a closed epoch, or not.
static int be_leaky(bool leaks) {
  tslab_epoch epoch = epoch_open(NULL);
  for (int i = 0; i < OBJECTS; i++) CHECK_LANDS(epoch, tslab_epoch_malloc(epoch, 200));
  if (leaks) CHECK_EQ(tslab_epoch_close(epoch).objects, OBJECTS);
  fputs("unflushed", stdout);
  return STATUS;
}

static const char *program;

// Runs this program anew; returns its exit status. What it said is in the two texts.
static int run(const char *option, const char *leaks, char *said, char *printed, size_t bytes) {
  FILE *errors = tmpfile(), *output = tmpfile();
  CHECK(errors != NULL && output != NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(fileno(errors), STDERR_FILENO);
    dup2(fileno(output), STDOUT_FILENO);
    setenv("TSLAB_LEAKS_AT_EXIT", option, 1);
    child_become(program, leaks);
  }
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  rewind(errors);
  said[fread(said, 1, bytes - 1, errors)] = '\0';
  rewind(output);
  printed[fread(printed, 1, bytes - 1, output)] = '\0';
  fclose(errors);
  fclose(output);
  return WEXITSTATUS(status);
}

static void check(const char *option, const char *leaks, int status, const char *words) {
  static char said[4096], printed[4096];
  int found = run(option, leaks, said, printed, sizeof said);
  CHECK_THAT(found == status, "%s, %s: status %d instead of %d: %s", option, leaks, found, status,
             said);
  CHECK_THAT(words == NULL ? said[0] == '\0' : strstr(said, words) != NULL, "said: %s", said);
  CHECK_THAT(strcmp(printed, "unflushed") == 0, "printed: %s", printed);
}

int main(int count, char **arguments) {
  if (count > 1) return be_leaky(strcmp(arguments[1], "leaks") == 0);
  program = arguments[0];
  check("ignore", "leaks", STATUS, NULL);
  check("report", "leaks", STATUS, "leak: \"");
  check("fail", "leaks", FAILED, ": 5 objects, ");
  check("fail", "clean", STATUS, NULL);
  puts("ok");
  return 0;
}
