#include "os/cgroup.h"

#include "os_fake.h"
#include "test.h"

static void check_path(const char *lines, unsigned version, const char *expected) {
  size_t length = 0;
  const char *path = tsl_cgroup_path(lines, version, &length);
  CHECK_EQ(path != NULL, expected != NULL);
  if (path == NULL || expected == NULL) return;
  CHECK_THAT(length == strlen(expected) && memcmp(path, expected, length) == 0,
             "`%.*s` instead of `%s`", (int)length, path, expected);
}

static void the_group_is_found(void) {
  check_path("0::/user/app\n", 2, "/user/app");
  check_path("0::/user/app\n", 1, NULL);
  check_path("9:cpu,memory:/a\n4:pids:/b\n", 1, "/a");
  check_path("9:memory,cpu:/a:b\n", 1, "/a:b");
  check_path("9:cpumemory:/a\n5:name=memory:/c\n4:memory:/b\n0::/d\n", 1, "/b");
  check_path("9:memory:/a\n0::/d", 2, "/d");
  check_path("9:memory:/a\n", 2, NULL);
  check_path("", 1, NULL);
  check_path("memory\n0:\n0::/a\n", 2, "/a");
  check_path("9\n:memory:/a\n", 2, NULL);
}

static void numbers_are_read(void) {
  CHECK_EQ(tsl_cgroup_parse("268435456\n"), 268435456);
  CHECK_EQ(tsl_cgroup_parse("1"), 1);
  CHECK_EQ(tsl_cgroup_parse("max\n"), 0);
  CHECK_EQ(tsl_cgroup_parse(""), 0);
  CHECK_EQ(tsl_cgroup_parse("12x"), 0);
  CHECK_EQ(tsl_cgroup_parse("9223372036854771712\n"), 0);
  CHECK_EQ(tsl_cgroup_parse("99999999999999999999999999\n"), 0);
}

static void the_least_limit_counts(void) {
  static const struct os_fake_file files[] = {
      {"/proc/self/cgroup", "0::/slice/app\n"},
      {"/sys/fs/cgroup/slice/app/memory.max", "max\n"},
      {"/sys/fs/cgroup/slice/memory.max", "300\n"},
      {"/sys/fs/cgroup/memory.max", "400\n"},
      {NULL, NULL},
  };
  CHECK_EQ(tsl_cgroup_limit_bytes(), 0);
  os_fake.files = files;
  CHECK_EQ(tsl_cgroup_limit_bytes(), 300);
}

static void version_1_is_asked_too(void) {
  static const struct os_fake_file files[] = {
      {"/proc/self/cgroup", "4:memory:/job\n0::/\n"},
      {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "500\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {NULL, NULL},
  };
  os_fake.files = files;
  CHECK_EQ(tsl_cgroup_limit_bytes(), 500);
}

// A container sees its own group as the root, but may be told the host's path.
static void a_path_that_is_not_there(void) {
  static const struct os_fake_file files[] = {
      {"/proc/self/cgroup", "0::/../../pod/box\n"},
      {"/sys/fs/cgroup/memory.max", "700\n"},
      {NULL, NULL},
  };
  os_fake.files = files;
  CHECK_EQ(tsl_cgroup_limit_bytes(), 700);
}

int main(void) {
  RUN(the_group_is_found);
  RUN(numbers_are_read);
  RUN(the_least_limit_counts);
  RUN(version_1_is_asked_too);
  RUN(a_path_that_is_not_there);
  return test_status();
}
