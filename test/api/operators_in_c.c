// operator new by its mangled names, in a program without a C++ runtime: it loads, runs, and fails
// as it can.
#include <link.h>
#include <sys/wait.h>

#include "blocks.h"

// std::align_val_t is passed as a size_t, const std::nothrow_t & as a pointer.
static const char nothrow;

typedef void *new_plain(size_t size);
typedef void *new_quiet(size_t size, const void *nothrow);
typedef void *new_wide(size_t size, size_t alignment);
typedef void *new_wide_quiet(size_t size, size_t alignment, const void *nothrow);
typedef void delete_plain(void *block);
typedef void delete_quiet(void *block, const void *nothrow);
typedef void delete_number(void *block, size_t size_or_alignment);
typedef void delete_size_wide(void *block, size_t size, size_t alignment);
typedef void delete_wide_quiet(void *block, size_t alignment, const void *nothrow);

static const struct kind {
  const char *make, *end;
} kinds[] = {{"_Znwm", "_ZdlPv"}, {"_Znam", "_ZdaPv"}};

static void *form(const char *name, const char *arguments) {
  char symbol[64];
  snprintf(symbol, sizeof symbol, "%s%s", name, arguments);
  return symbol_find(symbol);
}

static int library_is_cxx(struct dl_phdr_info *library, size_t size, void *data) {
  (void)size, (void)data;
  return strstr(library->dlpi_name, "libstdc++") != NULL;
}

static void no_cxx_runtime_test(void) {
  CHECK_THAT(!dl_iterate_phdr(library_is_cxx, NULL), "%s", "libstdc++ must not come along");
}

static void plain_check(const struct kind *kind, size_t size) {
  void *plain = ((new_plain *)form(kind->make, ""))(size);
  void *quiet = ((new_quiet *)form(kind->make, "RKSt9nothrow_t"))(size, &nothrow);
  void *other = malloc(size);
  block_check(plain, size);
  block_check(quiet, size);
  ((delete_plain *)form(kind->end, ""))(plain);
  ((delete_quiet *)form(kind->end, "RKSt9nothrow_t"))(quiet, &nothrow);
  ((delete_number *)form(kind->end, "m"))(other, size);
}

static void wide_check(const struct kind *kind, size_t size) {
  static const char quietly[] = "St11align_val_tRKSt9nothrow_t";
  void *wide = ((new_wide *)form(kind->make, "St11align_val_t"))(size, 128);
  void *quiet = ((new_wide_quiet *)form(kind->make, quietly))(size, 128, &nothrow);
  void *other = aligned_alloc(128, size);
  CHECK(wide != NULL && is_aligned(wide, 128));
  CHECK(quiet != NULL && is_aligned(quiet, 128));
  ((delete_number *)form(kind->end, "St11align_val_t"))(wide, 128);
  ((delete_wide_quiet *)form(kind->end, quietly))(quiet, 128, &nothrow);
  ((delete_size_wide *)form(kind->end, "mSt11align_val_t"))(other, size, 128);
}

static void forms_test(const struct kind *kind) {
  for (size_t size = 0; size <= MIB; size = size * 2 + 1) {
    plain_check(kind, size);
    wide_check(kind, size);
  }
}

static void nothrow_failure_test(const struct kind *kind) {
  new_quiet *quiet = (new_quiet *)form(kind->make, "RKSt9nothrow_t");
  new_wide_quiet *wide = (new_wide_quiet *)form(kind->make, "St11align_val_tRKSt9nothrow_t");
  CHECK(quiet(SIZE_MAX, &nothrow) == NULL);
  CHECK(quiet(SIZE_REFUSED_BY_KERNEL, &nothrow) == NULL);
  CHECK(wide(SIZE_MAX, 64, &nothrow) == NULL);
}

// Nobody is there to throw: the process ends, and says why.
static void throwing_failure_test(const struct kind *kind) {
  int ends[2], status;
  CHECK_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    ((new_plain *)form(kind->make, ""))(SIZE_REFUSED_BY_KERNEL);
    _exit(0);
  }
  close(ends[1]);
  char text[512];
  ssize_t length = read(ends[0], text, sizeof text - 1);
  text[length > 0 ? length : 0] = '\0';
  close(ends[0]);
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_THAT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status 0x%x", (unsigned)status);
  CHECK_THAT(strncmp(text, "tslab: ", 7) == 0, "stderr: %s", text);
}

int main(void) {
  no_cxx_runtime_test();
  for (int i = 0; i < 2; i++) {
    forms_test(&kinds[i]);
    nothrow_failure_test(&kinds[i]);
    throwing_failure_test(&kinds[i]);
  }
  return 0;
}
