// peaker: holds much for a while, and little afterwards, in functions that a dump must name.
//   peaker MIB MS    so many MiB above the 10 that stay, for so many ms; then as many more for each
//                    line of its input
// Says on its output when it is at its peak, and when that is over.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROW_BYTES = 16 << 10, ROWS_A_MIB = (1 << 20) / ROW_BYTES, STAYS_MIB = 10, MOST_MIB = 4096 };

static void *kept[MOST_MIB * ROWS_A_MIB];

// What is done with a result keeps a call from becoming a jump, which no stack would show.
static void *row(void) {
  void *row = malloc(ROW_BYTES);
  if (row == NULL) abort();
  return memset(row, 1, ROW_BYTES);
}

__attribute__((noinline)) static size_t read_settings(size_t count) {
  for (size_t i = 0; i < count; i++) kept[i] = row();
  return count;
}

__attribute__((noinline)) static size_t build_report(size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) kept[i] = row();
  return first + count;
}

static void say(const char *what) {
  puts(what);
  fflush(stdout);
}

int main(int count, char **arguments) {
  size_t mib = count == 3 ? strtoul(arguments[1], NULL, 10) : MOST_MIB;
  if (mib > MOST_MIB - STAYS_MIB) return 2;
  size_t stays = read_settings((size_t)STAYS_MIB * ROWS_A_MIB);
  size_t end = build_report(stays, mib * ROWS_A_MIB);
  say("peak");
  usleep((useconds_t)strtoul(arguments[2], NULL, 10) * 1000);
  while (end > stays) free(kept[--end]);
  say("over");
  while (getchar() == '\n' && end + mib * ROWS_A_MIB <= MOST_MIB * ROWS_A_MIB) {
    end = build_report(end, mib * ROWS_A_MIB);
    say("peak");
  }
  return 0;
}
