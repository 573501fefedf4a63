// tslab_stats: the statistics of include/tslab.h.
#include <errno.h>
#include <string.h>

#include "base/format.h"
#include "observe/census.h"
#include "observe/inventory.h"
#include "tell/rows.h"
#include "tslab.h"

// Newer programs may know more fields than this library; older ones fewer.
static bool is_known(size_t size) {
  return size >= offsetof(tslab_stats, resident_bytes) + sizeof(size_t) &&
         size <= sizeof(tslab_stats);
}

_Static_assert(sizeof(tslab_stats) == sizeof(size_t) + sizeof(struct tsl_census),
               "programs get all of the census");

static tslab_stats stats_of(const struct tsl_census *census) {
#define FIELD(name) .name = census->name,
  return (tslab_stats){.size = sizeof(tslab_stats), TSL_CENSUS_FIELDS(FIELD)};
#undef FIELD
}

int tslab_stats_get(tslab_stats *stats) {
  struct tsl_census census;
  if (!is_known(stats->size)) return EINVAL;
  tsl_census_take(&census);
  tslab_stats all = stats_of(&census);
  all.size = stats->size;
  memcpy(stats, &all, stats->size);
  return 0;
}

struct json {
  void (*write)(const char *text, size_t length, void *context);
  void *context;
  bool follows;  // an element stands before
};

static void json_put(struct json *json, const char *text) {
  json->write(text, strlen(text), json->context);
}

static void json_number(struct json *json, const char *name, uint64_t value) {
  char text[96];
  tsl_format(text, sizeof text, "%s\"%s\":%llu", json->follows ? "," : "", name,
             (unsigned long long)value);
  json_put(json, text);
  json->follows = true;
}

// Quotes, backslashes and control characters are escaped (RFC 8259, section 7).
static void json_text(struct json *json, const char *name, const char *value) {
  char text[16];
  json_put(json, json->follows ? ",\"" : "\"");
  json_put(json, name);
  json_put(json, "\":\"");
  for (; *value != '\0'; value++) {
    unsigned char byte = (unsigned char)*value;
    bool plain = byte >= ' ' && byte != '"' && byte != '\\';
    if (plain) tsl_format(text, sizeof text, "%c", byte);
    if (!plain) tsl_format(text, sizeof text, "\\u00%x%x", byte >> 4, byte & 15);
    json_put(json, text);
  }
  json_put(json, "\"");
  json->follows = true;
}

static void json_epoch(const tslab_epoch_stats *stats, void *context) {
#define STATE(name, meaning) [TSLAB_##name] = (meaning),
  static const char *const states[] = {TSL_EPOCHS_STATES(STATE)};
#undef STATE
  struct json *json = context;
  json_put(json, json->follows ? ",{" : "{");
  json->follows = false;
  json_number(json, "epoch", stats->epoch);
  json_text(json, "label", stats->label);
  json_text(json, "state", states[stats->state]);
  json_number(json, "parent", stats->parent);
  json_number(json, "place", stats->place);
  json_number(json, "live_objects", stats->live_objects);
  json_number(json, "live_bytes", stats->live_bytes);
  json_number(json, "held_bytes", stats->held_bytes);
  json_number(json, "age_ms", stats->age_ms);
  json_number(json, "closed_ms", stats->closed_ms);
  json_put(json, "}");
  json->follows = true;
}

void tslab_stats_json(void (*write)(const char *text, size_t length, void *context),
                      void *context) {
  struct json json = {write, context, false};
  struct tsl_census census;
  tsl_census_take(&census);
  json_put(&json, "{");
  json_text(&json, "version", TSLAB_VERSION);
#define FIELD(name) json_number(&json, #name, census.name);
  TSL_CENSUS_FIELDS(FIELD)
#undef FIELD
  json_put(&json, ",\"epochs\":[");
  json.follows = false;
  tsl_inventory_each(json_epoch, &json);
  json_put(&json, "]}");
}
