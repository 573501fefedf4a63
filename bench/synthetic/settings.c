#include "synthetic/settings.h"

#include "common/threads.h"
#include "synthetic/resident.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DURATION_MOST_S 86400u
#define OBJECTS_MOST 1000000u
#define BYTES_MOST (1u << 30)
#define RATE_LEAST 0.001
#define RATE_MOST 1000000000u
#define HELD_MOST (1u << 26)

static const char usage_text[] =
    "synthetic_bench --allocator=<tslab|malloc> --pattern=<burst|steady|leak|hotspot|kernel>\n"
    "  --duration_s=N --threads=N --req_rate=N (a second, for each thread) --rate_factor=<F|max>\n"
    "  --objs_min=N --objs_max=N --size=N --sizes=BYTES:WEIGHT,...\n"
    "  --epoch_policy=<per_req|batch:N|manual> --free_policy=<within_req|lag:N|leak:PCT>\n"
    "  --rss_sample_ms=N (0: never) --csv=FILE --hgrm=FILE\n"
    "  --hold_s=N (stay so long at the end, for who looks from outside)";

// `*text` goes on behind the number.
static uint32_t number_take(const args *a, const char **text, uint32_t least, uint32_t most) {
  const char *start = *text;
  char *end = NULL;
  errno = 0;
  unsigned long long number = strtoull(start, &end, 10);
  if (*start < '0' || *start > '9') {
    args_refuse(a, "not a number", start);
  }
  if (errno != 0 || number < least || number > most) {
    args_refuse(a, "out of range", start);
  }
  *text = end;
  return (uint32_t)number;
}

static uint32_t number_of(const args *a, const char *text, uint32_t least, uint32_t most) {
  const char *rest = text;
  uint32_t number = number_take(a, &rest, least, most);
  if (*rest != '\0') {
    args_refuse(a, "not a number", text);
  }
  return number;
}

static double real_of(const args *a, const char *text, double most) {
  char *end = NULL;
  double real = strtod(text, &end);
  if (*text < '0' || *text > '9' || *end != '\0') {
    args_refuse(a, "not a number", text);
  }
  if (!(real > 0 && real <= most)) {
    args_refuse(a, "out of range", text);
  }
  return real;
}

// What follows `prefix` in `text`; NULL when it starts otherwise.
static const char *text_behind(const char *text, const char *prefix) {
  size_t length = strlen(prefix);
  return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static void allocator_set(settings *s, const args *a, const char *value) {
  s->has_epochs = strcmp(value, "tslab") == 0;
  if (!s->has_epochs && strcmp(value, "malloc") != 0) {
    args_refuse(a, "no allocator", value);
  }
}

static void duration_set(settings *s, const args *a, const char *value) {
  s->duration_s = number_of(a, value, 1, DURATION_MOST_S);
}

// One of the crew takes the samples.
static void threads_set(settings *s, const args *a, const char *value) {
  s->threads = number_of(a, value, 1, THREADS_MAX - 1);
}

static void rate_set(settings *s, const args *a, const char *value) {
  s->pattern.request_rate = number_of(a, value, 1, RATE_MOST);
}

static void rate_factor_set(settings *s, const args *a, const char *value) {
  s->rate_factor = strcmp(value, "max") == 0 ? 0 : real_of(a, value, RATE_MOST);
}

static void objects_least_set(settings *s, const args *a, const char *value) {
  s->pattern.objects_least = number_of(a, value, 1, OBJECTS_MOST);
}

static void objects_most_set(settings *s, const args *a, const char *value) {
  s->pattern.objects_most = number_of(a, value, 1, OBJECTS_MOST);
}

static void size_set(settings *s, const args *a, const char *value) {
  s->pattern.sizes = (mix){1, 1, {{number_of(a, value, 1, BYTES_MOST), 1}}};
}

static void sizes_set(settings *s, const args *a, const char *value) {
  mix sizes = {0};
  for (const char *rest = value;; rest++) {
    if (sizes.count == MIX_PARTS) {
      args_refuse(a, "too many sizes", value);
    }
    mix_part *part = &sizes.parts[sizes.count++];
    part->bytes = number_take(a, &rest, 1, BYTES_MOST);
    if (*rest++ != ':') {
      args_refuse(a, "not BYTES:WEIGHT", value);
    }
    part->weight = number_take(a, &rest, 1, MILLION);
    sizes.weights += part->weight;
    if (*rest == '\0') {
      break;
    }
    if (*rest != ',') {
      args_refuse(a, "not BYTES:WEIGHT", value);
    }
  }
  s->pattern.sizes = sizes;
}

static void epoch_policy_set(settings *s, const args *a, const char *value) {
  const char *batch = text_behind(value, "batch:");
  if (batch != NULL) {
    s->pattern.batch = number_of(a, batch, 1, UINT32_MAX);
  } else if (strcmp(value, "per_req") == 0) {
    s->pattern.batch = 1;
  } else if (strcmp(value, "manual") == 0) {
    s->pattern.batch = 0;
  } else {
    args_refuse(a, "no epoch policy", value);
  }
}

static void free_policy_set(settings *s, const args *a, const char *value) {
  const char *lag = text_behind(value, "lag:");
  const char *leak = text_behind(value, "leak:");
  s->pattern.lag = 0;
  s->pattern.leaked_ppm = 0;
  if (lag != NULL) {
    s->pattern.lag = number_of(a, lag, 1, HELD_MOST);
  } else if (leak != NULL) {
    s->pattern.leaked_ppm = (uint32_t)lround(real_of(a, leak, 100) * (MILLION / 100));
    if (s->pattern.leaked_ppm == 0) {
      args_refuse(a, "out of range", leak);
    }
  } else if (strcmp(value, "within_req") != 0) {
    args_refuse(a, "no free policy", value);
  }
}

static void rss_sample_set(settings *s, const args *a, const char *value) {
  s->rss_sample_ms = number_of(a, value, 0, DURATION_MOST_S);
}

static void hold_set(settings *s, const args *a, const char *value) {
  s->hold_s = number_of(a, value, 0, DURATION_MOST_S);
}

// Before the program has worked in vain.
static const char *path_of(const args *a, const char *value) {
  int file = open(value, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) {
    args_refuse(a, "cannot be written", value);
  }
  close(file);
  return value;
}

static void csv_set(settings *s, const args *a, const char *value) {
  s->csv_path = path_of(a, value);
}

static void hgrm_set(settings *s, const args *a, const char *value) {
  s->hgrm_path = path_of(a, value);
}

static const struct {
  const char *prefix;
  void (*set)(settings *s, const args *a, const char *value);
} setters[] = {
    {"--allocator=", allocator_set},
    {"--duration_s=", duration_set},
    {"--threads=", threads_set},
    {"--req_rate=", rate_set},
    {"--rate_factor=", rate_factor_set},
    {"--objs_min=", objects_least_set},
    {"--objs_max=", objects_most_set},
    {"--size=", size_set},
    {"--sizes=", sizes_set},
    {"--epoch_policy=", epoch_policy_set},
    {"--free_policy=", free_policy_set},
    {"--rss_sample_ms=", rss_sample_set},
    {"--hold_s=", hold_set},
    {"--csv=", csv_set},
    {"--hgrm=", hgrm_set},
};

static void option_set(settings *s, const args *a, const char *text) {
  for (size_t i = 0; i < sizeof setters / sizeof setters[0]; i++) {
    const char *value = text_behind(text, setters[i].prefix);
    if (value != NULL) {
      setters[i].set(s, a, value);
      return;
    }
  }
  args_refuse(a, "unexpected argument", text);
}

// The pattern comes first wherever it stands: the others say what differs from it.
static void pattern_take(settings *s, args *a) {
  int kept = 0;
  for (int i = 0; i < a->count; i++) {
    const char *name = text_behind(a->values[i], "--pattern=");
    if (name == NULL) {
      a->values[kept++] = a->values[i];
      continue;
    }
    const pattern *found = pattern_find(name);
    if (found == NULL) {
      args_refuse(a, "no pattern", name);
    }
    s->pattern = *found;
  }
  a->count = kept;
}

// libtslab.so alone has the epochs, but its malloc is not the process's.
static bool malloc_has_epochs(void) {
  Dl_info of_malloc;
  Dl_info of_epochs;
  void *open = dlsym(RTLD_DEFAULT, "tslab_epoch_open");
  return open != NULL && dladdr(open, &of_epochs) != 0 &&
         dladdr(dlsym(RTLD_DEFAULT, "malloc"), &of_malloc) != 0 &&
         of_malloc.dli_fbase == of_epochs.dli_fbase;
}

static void settings_check(const settings *s, const args *a) {
  const pattern *p = &s->pattern;
  if (p->objects_least > p->objects_most) {
    args_refuse(a, "out of range", "--objs_min is above --objs_max");
  }
  if ((p->lag + 1ull) * p->objects_most > HELD_MOST) {
    args_refuse(a, "out of range", "too many objects held by --free_policy and --objs_max");
  }
  double rate = p->request_rate * s->rate_factor;
  if (s->rate_factor > 0 && (rate < RATE_LEAST || rate > RATE_MOST)) {
    args_refuse(a, "out of range", "--req_rate times --rate_factor");
  }
  if (s->rss_sample_ms != 0 &&
      resident_samples(s->duration_s, s->rss_sample_ms) < RESIDENT_SAMPLES_LEAST) {
    args_refuse(a, "out of range", "too few samples by --rss_sample_ms within --duration_s");
  }
  if (s->has_epochs && !malloc_has_epochs()) {
    args_refuse(a, "needs libtslab-preload.so in LD_PRELOAD", "--allocator=tslab");
  }
}

settings settings_take(int argc, char **argv) {
  args a = args_open(argc, argv, usage_text);
  settings s = {.pattern = *pattern_find("burst"),
                .has_epochs = true,
                .duration_s = 60,
                .threads = 1,
                .rate_factor = 1,
                .rss_sample_ms = 100};
  pattern_take(&s, &a);
  for (int i = 0; i < a.count; i++) {
    option_set(&s, &a, a.values[i]);
  }
  settings_check(&s, &a);
  return s;
}
