#include "base/options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/warn.h"

enum kind {
  BOOL,
  COUNT,
  SIZE,
  LIMIT,
  CHOICE_on_error,
  CHOICE_places,
  CHOICE_helper,
  CHOICE_libraries,
  CHOICE_release,
  CHOICE_thp,
  CHOICE_leaks_at_exit
};
enum { MOST_WORDS = 4, OPTION_NAME_BYTES = 32, OPTION_VALUE_BYTES = 32 };

struct description {
  const char *name;
  enum kind kind;
  uint64_t lowest, highest;
};

static const struct description descriptions[] = {
#define OPTION(name, kind, initial, lowest, highest, help) {#name, kind, lowest, highest},
#include "base/options.def"
#undef OPTION
};
enum { OPTIONS = sizeof descriptions / sizeof *descriptions };

struct tsl_options tsl_options = {
#define OPTION(name, kind, initial, lowest, highest, help) initial,
#include "base/options.def"
#undef OPTION
};

// What a LIMIT may be called that is no number of bytes; it stands for the highest value.
static const char limit_of_cgroup[] = "cgroup";

// A program may define this string to change the defaults it ships with.
extern const char *tslab_conf __attribute__((weak));

static const char *const words[][MOST_WORDS] = {
    [BOOL] = {"false", "true"},
    [CHOICE_on_error] = {"abort", "report", "ignore"},
    [CHOICE_places] = {"auto", "own"},
    [CHOICE_helper] = {"never", "auto", "always"},
    [CHOICE_libraries] = {"apart", "inside"},
    [CHOICE_release] = {"reuse", "poison"},
    [CHOICE_thp] = {"never", "auto", "always"},
    [CHOICE_leaks_at_exit] = {"ignore", "report", "fail"},
};

// What else a word may be called.
static const struct synonym {
  enum kind kind;
  const char *text;
  uint64_t value;
} synonyms[] = {
    {CHOICE_helper, "false", TSL_HELPER_NEVER},
    {CHOICE_helper, "0", TSL_HELPER_NEVER},
    {CHOICE_helper, "true", TSL_HELPER_ALWAYS},
    {CHOICE_helper, "1", TSL_HELPER_ALWAYS},
};
enum { SYNONYMS = sizeof synonyms / sizeof *synonyms };

static uint64_t *option_value(size_t index) { return (uint64_t *)&tsl_options + index; }

// Whether a setting of the start could not be used.
static bool settings_are_wrong;

static bool option_has_words(size_t index) {
  enum kind kind = descriptions[index].kind;
  return kind != COUNT && kind != SIZE && kind != LIMIT;
}

static bool text_is(const char *text, size_t length, const char *word) {
  return strlen(word) == length && memcmp(text, word, length) == 0;
}

// Index of a name; OPTIONS when there is none.
static size_t option_find(const char *name, size_t length) {
  size_t index = 0;
  while (index < OPTIONS && !text_is(name, length, descriptions[index].name)) index++;
  return index;
}

static unsigned suffix_shift(char suffix) {
  switch (suffix) {
    case 'K':
    case 'k': return 10;
    case 'M':
    case 'm': return 20;
    case 'G':
    case 'g': return 30;
    default: return 0;
  }
}

// A decimal number, with a K, M or G behind it where sizes are meant.
static bool parse_number(const char *text, size_t length, bool suffixes, uint64_t *value) {
  unsigned shift = suffixes && length > 1 ? suffix_shift(text[length - 1]) : 0;
  if (shift != 0) length--;
  if (length == 0 || length > 18) return false;
  *value = 0;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    *value = *value * 10 + (uint64_t)(text[i] - '0');
  }
  if (*value > UINT64_MAX >> shift) return false;
  *value <<= shift;
  return true;
}

static bool parse_word(enum kind kind, const char *text, size_t length, uint64_t *value) {
  for (unsigned i = 0; i < MOST_WORDS && words[kind][i] != NULL; i++) {
    if (!text_is(text, length, words[kind][i])) continue;
    *value = i;
    return true;
  }
  for (unsigned i = 0; i < SYNONYMS; i++) {
    if (synonyms[i].kind != kind || !text_is(text, length, synonyms[i].text)) continue;
    *value = synonyms[i].value;
    return true;
  }
  return kind == BOOL && parse_number(text, length, false, value);
}

static bool value_parse(enum kind kind, const char *text, size_t length, uint64_t *value) {
  if (kind == COUNT || kind == SIZE || kind == LIMIT)
    return parse_number(text, length, kind != COUNT, value);
  return parse_word(kind, text, length, value);
}

static bool option_parse(size_t index, const char *text, size_t length, uint64_t *value) {
  const struct description *option = &descriptions[index];
  uint64_t most = option->highest - (option->kind == LIMIT);
  if (option->kind == LIMIT && text_is(text, length, limit_of_cgroup)) {
    *value = option->highest;
    return true;
  }
  bool parsed = value_parse(option->kind, text, length, value);
  return parsed && *value >= option->lowest && *value <= most;
}

static unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }

// Edit distance (Levenshtein 1966) of two short names.
static unsigned name_distance(const char *a, size_t length, const char *b) {
  unsigned row[OPTION_NAME_BYTES + 1];
  for (unsigned j = 0; j <= OPTION_NAME_BYTES; j++) row[j] = j;
  size_t width = strlen(b);
  for (size_t i = 0; i < length; i++) {
    unsigned diagonal = row[0];
    row[0] = (unsigned)i + 1;
    for (size_t j = 0; j < width; j++) {
      unsigned replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = smaller(replaced, smaller(row[j], row[j + 1]) + 1);
    }
  }
  return row[width];
}

static const char *nearest_name(const char *name, size_t length) {
  size_t best = 0;
  for (size_t i = 1; i < OPTIONS; i++) {
    if (name_distance(name, length, descriptions[i].name) <
        name_distance(name, length, descriptions[best].name)) {
      best = i;
    }
  }
  return descriptions[best].name;
}

static void text_copy(char *to, size_t size, const char *text, size_t length) {
  if (length > size - 1) length = size - 1;
  memcpy(to, text, length);
  to[length] = '\0';
}

static void warn_unknown(const char *name, size_t length) {
  static bool warned;
  char copy[OPTION_NAME_BYTES];
  if (warned) return;
  warned = true;
  text_copy(copy, sizeof copy, name, length);
  tsl_warn("there is no option `%s`; the nearest is `%s`", copy, nearest_name(name, length));
}

static void option_allowed(size_t index, char *text, size_t size) {
  const struct description *option = &descriptions[index];
  if (!option_has_words(index)) {
    bool is_limit = option->kind == LIMIT;
    tsl_format(text, size, "%s%s%llu to %llu", is_limit ? limit_of_cgroup : "",
               is_limit ? ", " : "", (unsigned long long)option->lowest,
               (unsigned long long)(option->highest - is_limit));
    return;
  }
  size_t length = 0;
  for (unsigned i = 0; i < MOST_WORDS && words[option->kind][i] != NULL; i++) {
    length += tsl_format(text + length, size - length, "%s%s", i == 0 ? "" : ", ",
                         words[option->kind][i]);
  }
}

static void warn_value(size_t index, const char *value, size_t length) {
  char copy[OPTION_VALUE_BYTES], allowed[64];
  text_copy(copy, sizeof copy, value, length);
  option_allowed(index, allowed, sizeof allowed);
  tsl_warn("option `%s` cannot be `%s`; it takes %s", descriptions[index].name, copy, allowed);
}

static void setting_apply(const char *name, size_t name_length, const char *value,
                          size_t value_length) {
  uint64_t parsed;
  size_t index = option_find(name, name_length);
  bool is_right = index < OPTIONS && option_parse(index, value, value_length, &parsed);
  if (is_right) {
    *option_value(index) = parsed;
  } else if (index < OPTIONS) {
    warn_value(index, value, value_length);
  } else {
    warn_unknown(name, name_length);
  }
  settings_are_wrong = settings_are_wrong || !is_right;
}

// "name:value,name:value"
static void settings_apply(const char *text) {
  while (text != NULL && *text != '\0') {
    size_t length = strcspn(text, ",");
    size_t name = strcspn(text, ":,");
    size_t value = name < length ? name + 1 : length;
    if (length != 0) setting_apply(text, name, text + value, length - value);
    text += length + (text[length] == ',');
  }
}

static void environment_apply(tsl_environment *environment) {
  for (size_t i = 0; i < OPTIONS; i++) {
    char variable[OPTION_NAME_BYTES + 8];
    tsl_format(variable, sizeof variable, "TSLAB_%s", descriptions[i].name);
    for (char *at = variable; *at != '\0'; at++) {
      if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    }
    const char *value = environment(variable);
    if (value != NULL)
      setting_apply(descriptions[i].name, strlen(descriptions[i].name), value, strlen(value));
  }
}

static void option_print(size_t index, char *text, size_t size) {
  const struct description *option = &descriptions[index];
  uint64_t value = tsl_load_relaxed(option_value(index));
  if (option_has_words(index)) {
    tsl_format(text, size, "%s", words[option->kind][value]);
  } else if (option->kind == LIMIT && value == option->highest) {
    tsl_format(text, size, "%s", limit_of_cgroup);
  } else {
    tsl_format(text, size, "%llu", (unsigned long long)value);
  }
}

static void options_confirm(void) {
  char value[OPTION_VALUE_BYTES];
  for (size_t i = 0; i < OPTIONS; i++) {
    option_print(i, value, sizeof value);
    tsl_warn("%s:%s", descriptions[i].name, value);
  }
}

void tsl_options_init(tsl_environment *environment) {
  if (&tslab_conf != NULL) settings_apply(tslab_conf);
  settings_apply(environment("TSLAB_CONF"));
  environment_apply(environment);
  if (tsl_option(confirm) != 0) options_confirm();
  if (settings_are_wrong && tsl_option(abort_conf) != 0) abort();
}

int tsl_option_get(const char *name, char *value, size_t size) {
  char text[OPTION_VALUE_BYTES];
  size_t index = option_find(name, strlen(name));
  if (index == OPTIONS) return ENOENT;
  option_print(index, text, sizeof text);
  if (strlen(text) >= size) return ERANGE;
  memcpy(value, text, strlen(text) + 1);
  return 0;
}

int tsl_option_set(const char *name, const char *value) {
  uint64_t parsed;
  size_t index = option_find(name, strlen(name));
  if (index == OPTIONS) return ENOENT;
  if (!option_parse(index, value, strlen(value), &parsed)) return EINVAL;
  tsl_store_relaxed(option_value(index), parsed);
  return 0;
}
