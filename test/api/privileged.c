// A program that runs with raised privileges (AT_SECURE) takes no settings from its caller.
//
// The program copies itself, makes the copy set-user-ID, and starts it as another user: that needs
// root and a file system that honours the bit. It is linked with the archive, since the loader
// ignores LD_PRELOAD for such programs.
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <tslab.h>

#include "../child.h"
#include "blocks.h"

enum { OWNER = 1, CALLER = 65534 };

// Not secure: the test proves nothing. Setting taken: the test fails.
enum { IGNORED = 0, NOT_SECURE = 10, TAKEN = 11 };

static int inner(void) {
  char value[64];
  free(malloc(100));
  check_waive();
  if (getauxval(AT_SECURE) == 0) return NOT_SECURE;
  CHECK_EQ(tslab_option_get("on_error", value, sizeof value), 0);
  return strcmp(value, "abort") == 0 ? IGNORED : TAKEN;
}

static void become_caller(const void *unused) {
  (void)unused;
  setenv("TSLAB_CONF", "on_error:report,confirm:1", 1);
  setenv("TSLAB_ON_ERROR", "ignore", 1);
  CHECK(setgid(CALLER) == 0 && setuid(CALLER) == 0);
}

static void file_copy(const char *from, const char *to) {
  char part[65536];
  int source = open(from, O_RDONLY), target = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
  CHECK(source >= 0 && target >= 0);
  for (ssize_t length; (length = read(source, part, sizeof part)) > 0;)
    CHECK_EQ(write(target, part, (size_t)length), length);
  close(source);
  CHECK(fchown(target, OWNER, OWNER) == 0 && fchmod(target, 04755) == 0);
  close(target);
}

int main(int argc, char **argv) {
  if (argc == 2) return inner();
  char folder[] = "/tmp/tslab-privileged-XXXXXX", copy[64];
  struct statvfs file_system;
  struct child child;
  if (geteuid() != 0) check_skip("only root can make a set-user-ID program of another user");
  CHECK(mkdtemp(folder) != NULL && chmod(folder, 0755) == 0);
  snprintf(copy, sizeof copy, "%s/inner", folder);
  file_copy(argv[0], copy);
  CHECK_EQ(statvfs(copy, &file_system), 0);
  child_run(&child, copy, "inner", become_caller, NULL);
  unlink(copy);
  rmdir(folder);
  if (file_system.f_flag & ST_NOSUID) check_skip("the temporary folder ignores set-user-ID");
  CHECK(WIFEXITED(child.status));
  if (WEXITSTATUS(child.status) == NOT_SECURE) check_skip("set-user-ID has no effect here");
  CHECK_EQ(WEXITSTATUS(child.status), IGNORED);
  CHECK_THAT(child.errors[0] == '\0', "stderr: %s", child.errors);
  return 0;
}
