// tasks: the threads of this process, as the system tells of them.
#pragma once

#include <dirent.h>

#include "test.h"

static inline unsigned tasks_count(void) {
  unsigned count = 0;
  DIR *tasks = opendir("/proc/self/task");
  CHECK(tasks != NULL);
  for (struct dirent *task; (task = readdir(tasks)) != NULL;) count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}

// A line of the status file of a thread that is not the process's first one; empty when there is
// no such thread.
static inline void tasks_other_line(const char *field, char *line, int size) {
  char path[300];
  DIR *tasks = opendir("/proc/self/task");
  CHECK(tasks != NULL);
  line[0] = '\0';
  for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
    if (task->d_name[0] == '.' || atoi(task->d_name) == getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
    FILE *status = fopen(path, "r");
    while (status != NULL && fgets(line, size, status) != NULL)
      if (strncmp(line, field, strlen(field)) == 0) break;
    if (status != NULL) fclose(status);
  }
  closedir(tasks);
}
