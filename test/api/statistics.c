// The statistics file of a process, as a stranger reads it: by the names in it.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tslab_stats.h>
#include <unistd.h>

#include "epochs.h"

enum { OBJECTS = 100, BYTES = 100 };

typedef struct file {
  const char *start;
  size_t bytes;
} file;

static unsigned long long start_ticks(pid_t pid) {
  char path[64], line[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *stat = fopen(path, "r");
  CHECK(stat != NULL && fgets(line, sizeof line, stat) != NULL);
  fclose(stat);
  const char *at = strrchr(line, ')');
  for (int field = 2; field < 22; field++) at = strchr(at + 1, ' ');
  return strtoull(at, NULL, 10);
}

static const char *path_of(pid_t pid, unsigned long long start) {
  static char path[64];
  snprintf(path, sizeof path, "/dev/shm/tslab.%d.%llu", (int)pid, start);
  return path;
}

static const char *my_path(void) { return path_of(getpid(), start_ticks(getpid())); }

static file file_open(const char *path) {
  struct stat status;
  int descriptor = open(path, O_RDONLY);
  CHECK_THAT(descriptor >= 0 && fstat(descriptor, &status) == 0, "%s", path);
  CHECK_EQ(status.st_mode & 0777, 0600);
  file f = {mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, descriptor, 0),
            (size_t)status.st_size};
  close(descriptor);
  CHECK(f.start != MAP_FAILED);
  return f;
}

static const struct tslab_stats_header *file_header(file f) {
  return (const struct tslab_stats_header *)(const void *)f.start;
}

static const struct tslab_stats_table *file_table(file f, const char *name, unsigned *number) {
  const struct tslab_stats_header *header = file_header(f);
  for (*number = 0; *number < header->tables; *number += 1) {
    const char *at = f.start + header->tables_at + (size_t)*number * header->table_bytes;
    if (strcmp(at, name) == 0) return (const struct tslab_stats_table *)(const void *)at;
  }
  CHECK_THAT(false, "no table %s", name);
  return NULL;
}

static const char *file_place(file f, const char *table_name, uint32_t row, const char *name,
                              unsigned *bytes) {
  const struct tslab_stats_header *header = file_header(f);
  unsigned number;
  const struct tslab_stats_table *table = file_table(f, table_name, &number);
  CHECK(row < table->rows);
  for (unsigned i = 0; i < header->fields; i++) {
    const char *at = f.start + header->fields_at + (size_t)i * header->field_bytes;
    const struct tslab_stats_field *field = (const struct tslab_stats_field *)(const void *)at;
    if (field->table != number || strcmp(field->name, name) != 0) continue;
    *bytes = field->bytes;
    return f.start + table->at + (size_t)row * table->row_bytes + field->at;
  }
  CHECK_THAT(false, "no field %s.%s", table_name, name);
  return NULL;
}

static uint64_t file_get(file f, const char *table, uint32_t row, const char *name) {
  unsigned bytes;
  const char *at = file_place(f, table, row, name, &bytes);
  uint64_t value = 0;
  memcpy(&value, at, bytes);
  return value;
}

static uint32_t row_of(tslab_epoch epoch) { return (uint32_t)epoch & 0xffffff; }

static uint64_t survivors(file f, tslab_epoch epoch) {
  unsigned bytes, number;
  const char *at = file_place(f, "epochs", row_of(epoch), "survivors", &bytes);
  uint32_t classes = file_table(f, "classes", &number)->most_rows;
  uint64_t sum = 0;
  for (uint32_t class = 0; class < classes; class ++) {
    uint32_t count;
    memcpy(&count, at + class * sizeof count, sizeof count);
    sum += count;
  }
  return sum;
}

static void first_epoch_test(void) {
  CHECK(access(my_path(), F_OK) != 0);
  tslab_epoch epoch = epoch_open(NULL);
  void *block = tslab_epoch_malloc(epoch, BYTES);
  file f = file_open(my_path());
  const struct tslab_stats_header *header = file_header(f);
  CHECK(memcmp(header->magic, TSLAB_STATS_MAGIC, sizeof header->magic) == 0);
  CHECK_EQ(header->abi, TSLAB_STATS_ABI);
  CHECK_EQ(header->file_bytes, f.bytes);
  CHECK_EQ(header->pid, (uint32_t)getpid());
  CHECK(strcmp(header->version, tslab_version()) == 0);
  CHECK_EQ(file_get(f, "epochs", row_of(epoch), "id"), epoch);
  uint32_t label = (uint32_t)file_get(f, "epochs", row_of(epoch), "label");
  unsigned bytes;
  CHECK(strcmp(file_place(f, "labels", label, "text", &bytes), "test") == 0);
  tslab_free(block);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
  CHECK_EQ(file_get(f, "epochs", row_of(epoch), "id"), 0);
}

static void *all_freed_run(void *blocks) {
  for (int i = 0; i < OBJECTS; i++) tslab_free(((void **)blocks)[i]);
  return NULL;
}

// Freed by another thread, which then ends: nothing is behind.
static void survivors_test(void) {
  void *blocks[OBJECTS], *last;
  tslab_epoch epoch = epoch_open(NULL);
  for (int i = 0; i < OBJECTS; i++) blocks[i] = tslab_epoch_malloc(epoch, BYTES);
  last = tslab_epoch_malloc(epoch, BYTES);
  CHECK_EQ(tslab_epoch_close(epoch).objects, OBJECTS + 1);
  file f = file_open(my_path());
  CHECK_EQ(survivors(f, epoch), OBJECTS + 1);
  CHECK(file_get(f, "epochs", row_of(epoch), "closed_ms") != 0);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, all_freed_run, blocks), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(survivors(f, epoch), 1);
  tslab_free(last);
  CHECK_EQ(file_get(f, "epochs", row_of(epoch), "id"), 0);
}

// Returns how the child ended.
static int child_run(void (*run)(void), pid_t *pid, unsigned long long *start) {
  int status;
  *pid = fork();
  CHECK(*pid >= 0);
  if (*pid == 0) {
    run();
    exit(0);
  }
  *start = start_ticks(*pid);
  CHECK_EQ(waitpid(*pid, &status, 0), *pid);
  return status;
}

static void use_an_epoch(void) {
  tslab_epoch epoch = epoch_open(NULL);
  CHECK(tslab_epoch_malloc(epoch, BYTES) != NULL);
  CHECK_EQ(file_header(file_open(my_path()))->pid, (uint32_t)getpid());
  usleep(20000);
}

static void be_killed(void) {
  use_an_epoch();
  raise(SIGKILL);
}

static void fork_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  void *block = tslab_epoch_malloc(epoch, BYTES);
  file f = file_open(my_path());
  pid_t pid;
  unsigned long long start;
  CHECK_EQ(child_run(use_an_epoch, &pid, &start), 0);
  CHECK_THAT(access(path_of(pid, start), F_OK) != 0, "it goes with the process");
  CHECK_EQ(file_header(f)->pid, (uint32_t)getpid());
  CHECK_EQ(file_get(f, "epochs", row_of(epoch), "id"), epoch);
  tslab_free(block);
  CHECK_EQ(tslab_epoch_close(epoch).error, 0);
}

// What a crash leaves can be read.
static void kill_test(void) {
  pid_t pid;
  unsigned long long start;
  int status = child_run(be_killed, &pid, &start);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  file f = file_open(path_of(pid, start));
  CHECK_EQ(file_header(f)->pid, (uint32_t)pid);
  CHECK_EQ(unlink(path_of(pid, start)), 0);
}

// Long-lived programs that know nothing of epochs have one, too.
static void age_test(void) {
  char value[32];
  CHECK_EQ(tslab_option_get("stats_delay_ms", value, sizeof value), 0);
  CHECK(strcmp(value, "100") == 0);
  for (int ms = 0; ms < 5000 && access(my_path(), F_OK) != 0; ms++) {
    void *blocks[2000];
    for (int i = 0; i < 2000; i++) blocks[i] = tslab_malloc(BYTES);
    for (int i = 0; i < 2000; i++) tslab_free(blocks[i]);
    usleep(1000);
  }
  CHECK(access(my_path(), F_OK) == 0);
}

static void off_test(void) {
  tslab_epoch epoch = epoch_open(NULL);
  CHECK(tslab_epoch_malloc(epoch, BYTES) != NULL);
  CHECK(access(my_path(), F_OK) != 0);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "off") == 0) {
    off_test();
  } else if (argc == 2 && strcmp(argv[1], "age") == 0) {
    age_test();
  } else {
    first_epoch_test();
    survivors_test();
    fork_test();
    kill_test();
  }
  return 0;
}
