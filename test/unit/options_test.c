#define TEST_OF_DEFAULTS 1  // of options (test.h)
#include "base/options.h"

#include "capture.h"

// What a program may ship with: options.c looks at this symbol.
extern const char *tslab_conf;
const char *tslab_conf;

static const char *conf;                           // TSLAB_CONF
static const char *variable_name, *variable_text;  // one more variable
static unsigned asked;

static const char *environment(const char *name) {
  asked++;
  if (strcmp(name, "TSLAB_CONF") == 0) return conf;
  return variable_name != NULL && strcmp(name, variable_name) == 0 ? variable_text : NULL;
}

// Applies settings as TSLAB_CONF; returns what was said about them.
static const char *apply(const char *settings) {
  conf = settings;
  capture_start();
  tsl_options_init(environment);
  return capture_end();
}

static void check_value(const char *name, const char *expected) {
  char value[32];
  CHECK_EQ(tsl_option_get(name, value, sizeof value), 0);
  CHECK_THAT(strcmp(value, expected) == 0, "%s is `%s`, not `%s`", name, value, expected);
}

static void defaults(void) {
  CHECK_EQ(strlen(apply(NULL)), 0);
#define OPTION(name, kind, initial, lowest, highest, help)                 \
  CHECK_EQ(tsl_option(name), initial);                                     \
  CHECK(initial + UINT64_C(1) > lowest && (initial) <= UINT64_C(highest)); \
  CHECK(sizeof help > 1);
#include "base/options.def"
#undef OPTION
}

static void every_option_has_a_variable(void) {
  apply(NULL);
#define OPTION(name, kind, initial, lowest, highest, help) asked--;
#include "base/options.def"
#undef OPTION
  CHECK_EQ(asked, 1);
}

// Option `helper` was a truth value once.
static void words_of_before(void) {
  static const char *const off[] = {"helper:false", "helper:0"};
  static const char *const on[] = {"helper:true", "helper:1"};
  for (int i = 0; i < 2; i++) {
    CHECK_EQ(strlen(apply(on[i])), 0);
    CHECK_EQ(tsl_option(helper), TSL_HELPER_ALWAYS);
    check_value("helper", "always");
    CHECK_EQ(strlen(apply(off[i])), 0);
    CHECK_EQ(tsl_option(helper), TSL_HELPER_NEVER);
  }
  CHECK(strstr(apply("helper:2"), "never, auto, always") != NULL);
  CHECK(strstr(apply("thp:true"), "never, auto, always") != NULL);
}

static void words_and_numbers(void) {
  CHECK_EQ(strlen(apply("on_error:ignore,verbose:true,purge_delay_ms:0,thp:always")), 0);
  CHECK_EQ(tsl_option(on_error), TSL_ON_ERROR_IGNORE);
  CHECK_EQ(tsl_option(verbose), 1);
  CHECK_EQ(tsl_option(purge_delay_ms), 0);
  CHECK_EQ(tsl_option(thp), TSL_THP_ALWAYS);
  CHECK_EQ(strlen(apply("helper:never")), 0);
  CHECK_EQ(tsl_option(helper), TSL_HELPER_NEVER);
  CHECK_EQ(strlen(apply("helper:auto")), 0);
  CHECK_EQ(tsl_option(helper), TSL_HELPER_AUTO);
  CHECK_EQ(strlen(apply("helper:always")), 0);
  CHECK_EQ(tsl_option(helper), TSL_HELPER_ALWAYS);
  CHECK_EQ(strlen(apply("verbose:0,on_error:report,thp:auto")), 0);
  CHECK_EQ(tsl_option(verbose), 0);
  CHECK_EQ(tsl_option(on_error), TSL_ON_ERROR_REPORT);
  CHECK_EQ(tsl_option(thp), TSL_THP_AUTO);
}

static void sizes_take_suffixes(void) {
  static const struct {
    const char *text;
    uint64_t value;
  } cases[] = {{"reserve:33554432", 1 << 25},
               {"reserve:32768K", 1 << 25},
               {"reserve:65536k", 1 << 26},
               {"reserve:64M", 1 << 26},
               {"reserve:33m", 33 << 20},
               {"reserve:2G", UINT64_C(2) << 30},
               {"reserve:000000000033554432", 1 << 25},
               {"reserve:65536g", UINT64_C(1) << 46}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_context_set("%s", cases[i].text);
    CHECK_EQ(strlen(apply(cases[i].text)), 0);
    CHECK_EQ(tsl_option(reserve), cases[i].value);
  }
}

static void limits_are_sizes_or_of_the_cgroup(void) {
  CHECK_EQ(strlen(apply("soft_limit:256M")), 0);
  CHECK_EQ(tsl_option(soft_limit), 256 << 20);
  check_value("soft_limit", "268435456");
  CHECK_EQ(strlen(apply("soft_limit:cgroup")), 0);
  CHECK_EQ(tsl_option(soft_limit), TSL_SOFT_LIMIT_CGROUP);
  check_value("soft_limit", "cgroup");
  CHECK_EQ(strlen(apply("soft_limit:65536G")), 0);
  CHECK_EQ(tsl_option(soft_limit), TSL_SOFT_LIMIT_CGROUP - 1);
  CHECK_EQ(strlen(apply("soft_limit:0")), 0);
  CHECK_EQ(tsl_option(soft_limit), 0);
  const char *said = apply("soft_limit:cgroups");
  CHECK(strstr(said, "`soft_limit` cannot be `cgroups`; it takes cgroup, 0 to 70368744177664") !=
        NULL);
}

static void wrong_values_change_nothing(void) {
  static const char *const cases[] = {"reserve:",
                                      "reserve:K",
                                      "reserve:32X",
                                      "reserve:64 M",
                                      "reserve:-1",
                                      "reserve:0x40000000",
                                      "reserve:33554431",
                                      "reserve:70368744177665",
                                      "reserve:65537G",
                                      "reserve:17179869185G",
                                      "reserve:9999999999999999999",
                                      "reserve:0000000000033554432",
                                      "reserve:99999999999999999G",
                                      "reserve",
                                      "cache_units:65",
                                      "purge_delay_ms:5K",
                                      "purge_delay_ms:5k",
                                      "purge_delay_ms:1M",
                                      "cache_units:",
                                      "cache_units:1.5",
                                      "verbose:2",
                                      "verbose:yes",
                                      "verbose:",
                                      "on_error:Abort",
                                      "on_error:1",
                                      "on_error:abor",
                                      "on_error:aborts",
                                      "soft_limit:",
                                      "soft_limit:-1",
                                      "soft_limit:256 M",
                                      "soft_limit:Cgroup",
                                      "soft_limit:70368744177665",
                                      "thp:on"};
  struct tsl_options before = tsl_options;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *said = apply(cases[i]);
    CHECK_THAT(capture_lines(said) == 1, "%s: `%s`", cases[i], said);
    CHECK_THAT(strstr(said, "cannot be `") != NULL, "%s: `%s`", cases[i], said);
    CHECK(memcmp(&before, &tsl_options, sizeof before) == 0);
  }
}

static void a_wrong_value_is_explained(void) {
  const char *said = apply("on_error:never");
  CHECK(strstr(said, "`on_error` cannot be `never`; it takes abort, report, ignore\n") != NULL);
  said = apply("cache_units:65");
  CHECK(strstr(said, "`cache_units` cannot be `65`; it takes 0 to 64\n") != NULL);
  said = apply("thp:a-value-that-is-much-longer-than-any-value-that-an-option-can-have");
  CHECK_EQ(capture_lines(said), 1);
}

static void a_wrong_value_stops_nothing(void) {
  const char *said = apply("cache_units:7,on_error:x,,verbose:1,");
  CHECK_EQ(capture_lines(said), 1);
  CHECK_EQ(tsl_option(cache_units), 7);
  CHECK_EQ(tsl_option(verbose), 1);
}

static void start(void) { tsl_options_init(environment); }

static void a_wrong_setting_stops_when_asked_to(void) {
  static const char *const wrong[] = {"abort_conf:true,purge_delay:5",
                                      "cache_units:65,cache_units:6,abort_conf:true"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    conf = wrong[i];
    CHECK_THAT(capture_aborts(start), "%s", wrong[i]);
    CHECK_EQ(capture_lines(capture_text), 1);
  }
  conf = "abort_conf:true,cache_units:6";
  CHECK(!capture_aborts(start));
  conf = "abort_conf:false,cache_units:65";
  CHECK(!capture_aborts(start));
}

static void unknown_name_warns_once(void) {
  const char *said = apply("purge_delay:5,another:6");
  CHECK_EQ(capture_lines(said), 1);
  CHECK(strstr(said, "no option `purge_delay`; the nearest is `purge_delay_ms`\n") != NULL);
  CHECK_EQ(strlen(apply("third:7")), 0);
}

static void nearest_name(const char *setting, const char *expected) {
  const char *said = apply(setting);
  CHECK_THAT(strstr(said, expected) != NULL, "%s: `%s`", setting, said);
}
static void nearest_swapped(void) { nearest_name("no_error:1", "`on_error`"); }
static void nearest_short(void) { nearest_name("th:1", "`thp`"); }
static void nearest_with_too_much(void) { nearest_name("verbose_now:1", "`verbose`"); }
static void nearest_long(void) {
  nearest_name("a_name_much_longer_than_the_row_of_the_edit_distance_has_places:1", "nearest is `");
}

static void later_sources_win(void) {
  tslab_conf = "cache_units:1,purge_delay_ms:11,verbose:1";
  variable_name = "TSLAB_PURGE_DELAY_MS", variable_text = "33";
  CHECK_EQ(strlen(apply("cache_units:2,purge_delay_ms:22")), 0);
  CHECK_EQ(tsl_option(verbose), 1);
  CHECK_EQ(tsl_option(cache_units), 2);
  CHECK_EQ(tsl_option(purge_delay_ms), 33);
}

static void variable_with_wrong_value(void) {
  variable_name = "TSLAB_THP", variable_text = "sometimes";
  CHECK(strstr(apply(NULL), "`thp` cannot be `sometimes`; it takes never, auto, always") != NULL);
  CHECK_EQ(tsl_option(thp), TSL_THP_AUTO);
}

static void confirm_prints_every_option(void) {
  const char *said = apply("confirm:1,cache_units:9,on_error:report");
#define OPTION(name, kind, initial, lowest, highest, help) \
  CHECK(strstr(said, "tslab: " #name ":") != NULL);
#include "base/options.def"
#undef OPTION
  CHECK(strstr(said, "cache_units:9\n") != NULL);
  CHECK(strstr(said, "on_error:report\n") != NULL);
  CHECK(strstr(said, "confirm:true\n") != NULL);
}

static void get_and_set(void) {
  char value[32] = "kept";
  CHECK_EQ(tsl_option_get("nothing", value, sizeof value), ENOENT);
  CHECK_EQ(tsl_option_get("", value, sizeof value), ENOENT);
  CHECK_EQ(tsl_option_get("thp", value, 0), ERANGE);
  CHECK_EQ(tsl_option_get("thp", value, 4), ERANGE);
  CHECK(strcmp(value, "kept") == 0);
  CHECK_EQ(tsl_option_get("thp", value, 5), 0);
  CHECK(strcmp(value, "auto") == 0);
  CHECK_EQ(tsl_option_set("nothing", "1"), ENOENT);
  CHECK_EQ(tsl_option_set("thp", "2"), EINVAL);
  CHECK_EQ(tsl_option_set("reserve", ""), EINVAL);
  CHECK_EQ(tsl_option_set("reserve", "1G"), 0);
  check_value("reserve", "1073741824");
  CHECK_EQ(tsl_option_set("verbose", "true"), 0);
  check_value("verbose", "true");
  CHECK_EQ(tsl_option_set("on_error", "ignore"), 0);
  check_value("on_error", "ignore");
}

// What get says, set takes.
static void values_survive_a_round(void) {
  char value[32];
#define OPTION(name, kind, initial, lowest, highest, help) \
  tsl_options.name = highest;                              \
  CHECK_EQ(tsl_option_get(#name, value, sizeof value), 0); \
  tsl_options.name = lowest;                               \
  CHECK_EQ(tsl_option_set(#name, value), 0);               \
  CHECK_EQ(tsl_options.name, highest);
#include "base/options.def"
#undef OPTION
}

int main(void) {
  RUN(defaults);
  RUN(every_option_has_a_variable);
  RUN(words_of_before);
  RUN(words_and_numbers);
  RUN(sizes_take_suffixes);
  RUN(limits_are_sizes_or_of_the_cgroup);
  RUN(wrong_values_change_nothing);
  RUN(a_wrong_value_is_explained);
  RUN(a_wrong_value_stops_nothing);
  RUN(a_wrong_setting_stops_when_asked_to);
  RUN(unknown_name_warns_once);
  RUN(nearest_swapped);
  RUN(nearest_short);
  RUN(nearest_with_too_much);
  RUN(nearest_long);
  RUN(later_sources_win);
  RUN(variable_with_wrong_value);
  RUN(confirm_prints_every_option);
  RUN(get_and_set);
  RUN(values_survive_a_round);
  return test_status();
}
