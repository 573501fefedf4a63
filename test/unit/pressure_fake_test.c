#include "os/pressure.h"

#include "os_fake.h"
#include "test.h"

static void the_share_of_time_is_read(void) {
  CHECK_EQ(tsl_pressure_parse("some avg10=0.00 avg60=50.00 avg300=0.00 total=1\n"), 0);
  CHECK_EQ(tsl_pressure_parse("some avg10=9.99 avg60=0.00 avg300=0.00 total=1\n"), 9);
  CHECK_EQ(tsl_pressure_parse("some avg10=12.34 avg60=0.00 avg300=0.00 total=1\n"), 12);
  CHECK_EQ(tsl_pressure_parse("some avg10=100.00 avg60=0.00\n"), 100);
  CHECK_EQ(tsl_pressure_parse("full avg10=50.00 avg60=0.00\n"), 0);
  CHECK_EQ(tsl_pressure_parse("some avg60=50.00\n"), 0);
  CHECK_EQ(tsl_pressure_parse("some avg10="), 0);
  CHECK_EQ(tsl_pressure_parse(""), 0);
  CHECK_GE(tsl_pressure_parse("some avg10=99999999999999999999"), 100);
}

static void without_files_nothing_is_short(void) { CHECK(!tsl_pressure_is_high()); }

static void the_system_is_asked(void) {
  static const struct os_fake_file low[] = {
      {"/proc/pressure/memory", "some avg10=9.99 avg60=99.00 avg300=0.00 total=1\n"},
      {NULL, NULL},
  };
  static const struct os_fake_file high[] = {
      {"/proc/pressure/memory", "some avg10=10.00 avg60=0.00 avg300=0.00 total=1\n"},
      {NULL, NULL},
  };
  os_fake.files = low;
  CHECK(!tsl_pressure_is_high());
  os_fake.files = high;
  CHECK(tsl_pressure_is_high());
}

static void the_group_is_asked(void) {
  static const struct os_fake_file files[] = {
      {"/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"},
      {"/proc/self/cgroup", "4:memory:/job\n0::/slice/app\n"},
      {"/sys/fs/cgroup/slice/app/memory.pressure", "some avg10=40.00 avg60=0.00\n"},
      {NULL, NULL},
  };
  os_fake.files = files;
  CHECK(tsl_pressure_is_high());
}

// A container sees its own group as the root, but may be told the host's path.
static void a_path_that_is_not_there(void) {
  static const struct os_fake_file files[] = {
      {"/proc/self/cgroup", "0::/../../pod/box\n"},
      {"/sys/fs/cgroup/memory.pressure", "some avg10=10.00 avg60=0.00\n"},
      {NULL, NULL},
  };
  os_fake.files = files;
  CHECK(tsl_pressure_is_high());
}

// Only version 2 has a file of pressure.
static void a_group_of_version_1_tells_nothing(void) {
  static const struct os_fake_file files[] = {
      {"/proc/self/cgroup", "4:memory:/job\n"},
      {"/sys/fs/cgroup/memory.pressure", "some avg10=10.00 avg60=0.00\n"},
      {NULL, NULL},
  };
  os_fake.files = files;
  CHECK(!tsl_pressure_is_high());
}

int main(void) {
  RUN(the_share_of_time_is_read);
  RUN(without_files_nothing_is_short);
  RUN(the_system_is_asked);
  RUN(the_group_is_asked);
  RUN(a_path_that_is_not_there);
  RUN(a_group_of_version_1_tells_nothing);
  return test_status();
}
