// Names nothing of malloc's.
#include <string.h>

int main(int count, char **arguments) { return count == 0 || strdup(arguments[0]) == NULL; }
