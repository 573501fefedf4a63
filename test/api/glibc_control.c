// mallopt, mallinfo, malloc_info, malloc_stats, malloc_trim: glibc's own, which programs call
// without asking.
#include "blocks.h"

static void mallopt_test(void) {
  static const int parameters[] = {
      M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_MAX, M_CHECK_ACTION,
      M_PERTURB,        M_ARENA_TEST,     1,         -100,       12345};
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
    int value = parameters[i] == M_PERTURB || parameters[i] == M_CHECK_ACTION ? 0 : 1 << 20;
    int result = mallopt(parameters[i], value);
    CHECK_THAT(result == 0 || result == 1, "mallopt(%d) gave %d", parameters[i], result);
  }
  void *block = malloc(100);
  block_check(block, 100);
  free(block);
}

static size_t in_use(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// One large block, and as much in small ones: both have to show, and to leave again.
static void mallinfo_test(void) {
  enum { COUNT = 8192 };
  static void *blocks[COUNT];
  size_t before = in_use();
  void *large = malloc(64 * MIB);
  for (int i = 0; i < COUNT; i++) blocks[i] = malloc(KIB);
  size_t during = in_use();
  CHECK_GE(during - before, 71 * MIB);
  CHECK_LE(during - before, 84 * MIB);
  struct mallinfo2 info = mallinfo2();
  CHECK_GE(info.arena + info.hblkhd, in_use());
  CHECK_GE(info.arena, info.uordblks + info.fordblks);
  free(large);
  for (int i = 0; i < COUNT; i++) free(blocks[i]);
  CHECK_LE(in_use(), before + 3 * MIB);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void mallinfo_old_test(void) {
  void *block = malloc(8 * MIB);
  struct mallinfo old = mallinfo();
  size_t all = (size_t)old.uordblks + (size_t)old.hblkhd;
  CHECK_GE(all, 8 * MIB);
  CHECK_LE(all, in_use() + MIB);
  free(block);
}

// Well formed as far as tags go: each one opened is closed by its own name.
static void xml_check(const char *text) {
  char open_tags[64][32];
  int depth = 0, elements = 0;
  for (const char *at = strchr(text, '<'); at != NULL; at = strchr(at + 1, '<')) {
    char name[32];
    CHECK(sscanf(at, "</%31[a-z0-9_]", name) == 1 || sscanf(at, "<%31[a-z0-9_]", name) == 1);
    const char *end = strchr(at, '>');
    CHECK(end != NULL);
    if (at[1] == '/') {
      CHECK_THAT(depth > 0 && strcmp(open_tags[--depth], name) == 0, "</%s>", name);
    } else if (end[-1] != '/') {
      CHECK(depth < 64);
      strcpy(open_tags[depth++], name);
    }
    elements++;
  }
  CHECK_EQ(depth, 0);
  CHECK_GE(elements, 2);
}

static void malloc_info_test(void) {
  static char text[1 << 20];
  FILE *file = tmpfile();
  CHECK(file != NULL);
  CHECK_EQ(malloc_info(0, file), 0);
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  CHECK(strncmp(text, "<malloc", 7) == 0);
  xml_check(text);
  const char *end = strstr(text, "</malloc>\n");
  CHECK(end != NULL && end[strlen("</malloc>\n")] == '\0');
  errno = 0;
  CHECK_NE(malloc_info(1, file), 0);
  fclose(file);
}

static size_t stderr_bytes_of(void (*function)(void)) {
  FILE *file = tmpfile();
  CHECK(file != NULL);
  fflush(stderr);
  int kept = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  function();
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  off_t bytes = lseek(fileno(file), 0, SEEK_END);
  fclose(file);
  return (size_t)bytes;
}

static void malloc_stats_test(void) { CHECK_GE(stderr_bytes_of(malloc_stats), 20); }

static void *blocks_touch(size_t bytes) {
  void **chain = NULL;
  for (size_t done = 0; done < bytes; done += 16 * KIB) {
    void **block = malloc(16 * KIB - 64);
    memset(block, 1, 16 * KIB - 64);
    *block = chain;
    chain = block;
  }
  return chain;
}

static void chain_free(void **chain) {
  while (chain != NULL) {
    void **next = *chain;
    free(chain);
    chain = next;
  }
}

static void malloc_trim_test(void) {
  size_t before = process_resident_bytes();
  chain_free(blocks_touch(128 * MIB));
  errno = EXDEV;
  int released = malloc_trim(0);
  CHECK(released == 0 || released == 1);
  CHECK_LE(process_resident_bytes(), before + 8 * MIB);
  int again = malloc_trim(0);
  CHECK(again == 0 || again == 1);
  chain_free(blocks_touch(MIB));
}

// What must be kept is kept: trimming while blocks live may not touch them.
static void malloc_trim_live_test(void) {
  enum { COUNT = 2000 };
  static void *blocks[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    blocks[i] = malloc(i * 11);
    pattern_fill(blocks[i], i * 11, (unsigned)i);
  }
  for (size_t i = 0; i < COUNT; i += 2) free(blocks[i]);
  malloc_trim(0);
  for (size_t i = 1; i < COUNT; i += 2) {
    pattern_check(blocks[i], i * 11, (unsigned)i);
    free(blocks[i]);
  }
  malloc_trim(SIZE_MAX);
}

int main(void) {
  mallopt_test();
  mallinfo_test();
  mallinfo_old_test();
  malloc_info_test();
  malloc_stats_test();
  malloc_trim_test();
  malloc_trim_live_test();
  return 0;
}
