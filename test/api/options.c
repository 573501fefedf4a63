// Options as users set them: TSLAB_CONF, TSLAB_<NAME>, tslab_option_set; and what is said of those
// that do not fit.
//
// Run without arguments, the program starts itself once for each row of the table. With an argument
// it prints the value of that option as the library sees it.
#include <tslab.h>

#include "../child.h"
#include "blocks.h"

enum { ANY = -1 };

// The value in force when nothing is set.
#define DEFAULT NULL

struct row {
  const char *conf, *variable, *value;  // TSLAB_CONF, and one more variable with its value
  const char *option, *expected;        // what the child then finds in force
  int lines;                            // of warnings, or ANY
  const char *said[4];                  // words that they contain
};

static const struct row rows[] = {
    // Nothing set: the defaults, in silence.
    {NULL, NULL, NULL, "on_error", DEFAULT, 0, {NULL}},
    {"", NULL, NULL, "on_error", DEFAULT, 0, {NULL}},
    {NULL, NULL, NULL, "verbose", DEFAULT, 0, {NULL}},
    {NULL, NULL, NULL, "thp", DEFAULT, 0, {NULL}},

    // Both ways to set, several at once, the single variable before the list.
    {"on_error:report", NULL, NULL, "on_error", "report", 0, {NULL}},
    {"purge_delay_ms:7,on_error:ignore", NULL, NULL, "on_error", "ignore", 0, {NULL}},
    {"purge_delay_ms:7,on_error:ignore", NULL, NULL, "purge_delay_ms", "7", 0, {NULL}},
    {"on_error:ignore,on_error:report", NULL, NULL, "on_error", "report", 0, {NULL}},
    {",on_error:report,", NULL, NULL, "on_error", "report", 0, {NULL}},
    {NULL, "TSLAB_PURGE_DELAY_MS", "12", "purge_delay_ms", "12", 0, {NULL}},
    {NULL, "TSLAB_ON_ERROR", "ignore", "on_error", "ignore", 0, {NULL}},
    {"on_error:report", "TSLAB_ON_ERROR", "ignore", "on_error", "ignore", 0, {NULL}},
    {"thp:auto", NULL, NULL, "thp", "auto", 0, {NULL}},
    {"thp:always", NULL, NULL, "thp", "always", 0, {NULL}},
    {"verbose:0", NULL, NULL, "verbose", "false", 0, {NULL}},
    {"verbose:false", NULL, NULL, "verbose", "false", 0, {NULL}},
    {"verbose:1", NULL, NULL, "verbose", "true", ANY, {NULL}},
    {"verbose:true", NULL, NULL, "verbose", "true", ANY, {NULL}},

    // An unknown name: one line, with the name given and the nearest there is.
    {"on_eror:report", NULL, NULL, "on_error", DEFAULT, 1, {"tslab: ", "on_eror", "on_error"}},
    {"purge_delay:5", NULL, NULL, "purge_delay_ms", DEFAULT, 1, {"purge_delay", "purge_delay_ms"}},
    {"verbos:1,on_error:report", NULL, NULL, "on_error", "report", 1, {"verbos", "verbose"}},
    {"zzzzzzzz:1", NULL, NULL, "on_error", DEFAULT, 1, {"zzzzzzzz"}},
    {"nonsense", NULL, NULL, "on_error", DEFAULT, 1, {"nonsense"}},

    // A value that does not fit: one line, with what is allowed; the default stays.
    {"purge_delay_ms:soon",
     NULL,
     NULL,
     "purge_delay_ms",
     DEFAULT,
     1,
     {"purge_delay_ms", "soon", "0"}},
    {"purge_delay_ms:-1", NULL, NULL, "purge_delay_ms", DEFAULT, 1, {"purge_delay_ms", "-1"}},
    {"purge_delay_ms:99999999999999999999", NULL, NULL, "purge_delay_ms", DEFAULT, 1, {"999"}},
    {"purge_delay_ms:", NULL, NULL, "purge_delay_ms", DEFAULT, 1, {"purge_delay_ms"}},
    {"purge_delay_ms", NULL, NULL, "purge_delay_ms", DEFAULT, 1, {"purge_delay_ms"}},
    {"purge_delay_ms:5x", NULL, NULL, "purge_delay_ms", DEFAULT, 1, {"5x"}},
    {"purge_delay_ms:5k", NULL, NULL, "purge_delay_ms", DEFAULT, 1, {"5k"}},
    {"soft_limit:256MB", NULL, NULL, "soft_limit", DEFAULT, 1, {"cgroup", "256MB"}},
    {"soft_limit:256M", NULL, NULL, "soft_limit", "268435456", 0, {NULL}},
    {NULL, "TSLAB_SOFT_LIMIT", "cgroup", "soft_limit", "cgroup", 0, {NULL}},
    {"thp:sometimes", NULL, NULL, "thp", DEFAULT, 1, {"never", "auto", "always"}},
    {"on_error:explode", NULL, NULL, "on_error", DEFAULT, 1, {"abort", "report", "ignore"}},
    {"verbose:maybe", NULL, NULL, "verbose", DEFAULT, 1, {"verbose", "maybe"}},
    {NULL, "TSLAB_THP", "sometimes", "thp", DEFAULT, 1, {"never", "auto", "always"}},

    // The effective configuration on request.
    {"confirm:true,purge_delay_ms:42",
     NULL,
     NULL,
     "purge_delay_ms",
     "42",
     ANY,
     {"purge_delay_ms:42", "on_error:", "thp:", "verbose:"}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static int option_print(const char *name) {
  char value[64];
  int error = SYMBOL(tslab_option_get)(name, value, sizeof value);
  dprintf(STDOUT_FILENO, "%s", error == 0 ? value : strerror(error));
  return 0;
}

static void row_set(const void *data) {
  const struct row *row = data;
  unsetenv("TSLAB_CONF");
  if (row->conf != NULL) setenv("TSLAB_CONF", row->conf, 1);
  if (row->variable != NULL) setenv(row->variable, row->value, 1);
}

static int lines_of(const char *text) {
  int lines = 0;
  for (; *text != '\0'; text++) lines += *text == '\n';
  return lines;
}

static int is_as_expected(const struct row *row, const struct child *child, const char *value) {
  if (!child_ended_well(child) || strcmp(child->output, value) != 0) return 0;
  if (row->lines != ANY && lines_of(child->errors) != row->lines) return 0;
  for (int i = 0; i < 4 && row->said[i] != NULL; i++)
    if (strstr(child->errors, row->said[i]) == NULL) return 0;
  return 1;
}

static const char *or_nothing(const char *text) { return text == NULL ? "(unset)" : text; }

// Whether the row's child finds what it should, in `expected` or else by default.
static int row_holds(const char *program, const struct row *row) {
  static const struct row nothing_set;
  struct child child, unset;
  child_run(&unset, program, row->option, row_set, &nothing_set);
  child_run(&child, program, row->option, row_set, row);
  const char *value = row->expected == DEFAULT ? unset.output : row->expected;
  if (is_as_expected(row, &child, value)) return 1;
  check_print("TSLAB_CONF=%s %s=%s: %s is `%s`, expected `%s`; %d lines of %d said:\n%.600s\n",
              or_nothing(row->conf), or_nothing(row->variable), or_nothing(row->value), row->option,
              child.output, value, lines_of(child.errors), row->lines, child.errors);
  return 0;
}

static void start_test(const char *program) {
  int failures = 0;
  for (int i = 0; i < ROWS; i++) failures += !row_holds(program, &rows[i]);
  CHECK_THAT(failures == 0, "%d of %d rows", failures, (int)ROWS);
}

// What the program sets, before it has allocated anything, is its last word.
static int set_first(void) {
  CHECK_EQ(SYMBOL(tslab_option_set)("purge_delay_ms", "13"), 0);
  free(malloc(100));
  return option_print("purge_delay_ms");
}

static void set_first_test(const char *program) {
  static const struct row other = {.variable = "TSLAB_PURGE_DELAY_MS", .value = "12"};
  struct child child;
  child_run(&child, program, "+", row_set, &other);
  CHECK(child_ended_well(&child));
  CHECK_THAT(strcmp(child.output, "13") == 0, "%s", child.output);
}

// A setting that cannot be used ends the program where it is asked to, by its first call.
static void stop_test(const char *program) {
  static const struct row wrong = {
      .conf = "cache_units:65", .variable = "TSLAB_ABORT_CONF", .value = "true"};
  struct child child;
  child_run(&child, program, "on_error", row_set, &wrong);
  CHECK(child_ended_by(&child, SIGABRT));
  CHECK(strstr(child.errors, "`cache_units` cannot be `65`") != NULL);
}

static void option_check(const char *name, const char *expected) {
  char value[64];
  CHECK_EQ(SYMBOL(tslab_option_get)(name, value, sizeof value), 0);
  CHECK_THAT(strcmp(value, expected) == 0, "%s is `%s`, expected `%s`", name, value, expected);
}

static void set_test(void) {
  CHECK_EQ(SYMBOL(tslab_option_set)("on_error", "report"), 0);
  option_check("on_error", "report");
  CHECK_EQ(SYMBOL(tslab_option_set)("purge_delay_ms", "250"), 0);
  option_check("purge_delay_ms", "250");
  CHECK_EQ(SYMBOL(tslab_option_set)("verbose", "1"), 0);
  option_check("verbose", "true");
  CHECK_EQ(SYMBOL(tslab_option_set)("verbose", "false"), 0);
  option_check("verbose", "false");
}

static void set_refusal_test(void) {
  CHECK_EQ(SYMBOL(tslab_option_set)("no_such_option", "1"), ENOENT);
  CHECK_EQ(SYMBOL(tslab_option_set)("", "1"), ENOENT);
  CHECK_EQ(SYMBOL(tslab_option_set)("on_error", "explode"), EINVAL);
  CHECK_EQ(SYMBOL(tslab_option_set)("purge_delay_ms", "-5"), EINVAL);
  CHECK_EQ(SYMBOL(tslab_option_set)("purge_delay_ms", ""), EINVAL);
  option_check("on_error", "report");
  option_check("purge_delay_ms", "250");
}

static void get_refusal_test(void) {
  char value[64] = "untouched";
  CHECK_EQ(SYMBOL(tslab_option_get)("no_such_option", value, sizeof value), ENOENT);
  CHECK_EQ(SYMBOL(tslab_option_get)("on_error", value, 0), ERANGE);
  CHECK_EQ(SYMBOL(tslab_option_get)("on_error", value, 6), ERANGE);
  CHECK(strcmp(value, "untouched") == 0);
  CHECK_EQ(SYMBOL(tslab_option_get)("on_error", value, 7), 0);
  CHECK(strcmp(value, "report") == 0);
}

// Makes a mistake after the option was set at run time.
static int mistake_make(const char *reaction) {
  _Alignas(16) static char foreign[64];
  CHECK_EQ(SYMBOL(tslab_option_set)("on_error", "abort"), 0);
  CHECK_EQ(SYMBOL(tslab_option_set)("on_error", reaction), 0);
  free(foreign);
  dprintf(STDOUT_FILENO, "survived");
  return 0;
}

static void nothing_set(const void *unused) {
  (void)unused;
  unsetenv("TSLAB_CONF");
}

static void mistake_check(const char *program, const char *argument, int lines, const char *said) {
  struct child child;
  child_run(&child, program, argument, nothing_set, NULL);
  check_context_set("%s", argument);
  CHECK_EQ(lines_of(child.errors), lines);
  CHECK(strcmp(child.output, said) == 0);
  CHECK(*said != '\0' ? child_ended_well(&child) : child_ended_by(&child, SIGABRT));
}

// Set at run time, it acts at run time.
static void effect_test(const char *program) {
  mistake_check(program, "=ignore", 0, "survived");
  mistake_check(program, "=report", 1, "survived");
  mistake_check(program, "=abort", 1, "");
}

int main(int argc, char **argv) {
  if (argc == 2) check_waive();
  if (argc == 2 && argv[1][0] == '=') return mistake_make(argv[1] + 1);
  if (argc == 2 && argv[1][0] == '+') return set_first();
  if (argc == 2) return option_print(argv[1]);  // before anything is allocated
  start_test(argv[0]);
  set_first_test(argv[0]);
  stop_test(argv[0]);
  set_test();
  set_refusal_test();
  get_refusal_test();
  effect_test(argv[0]);
  return 0;
}
