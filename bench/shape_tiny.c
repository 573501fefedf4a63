// One thread, very many tiny objects that die young. Plain: numbers on an evaluation stack, nearly
// last in first out (in the manner of cfrac). --lists: covers of small sets, each rewritten into a
// new one and dropped (in the manner of espresso).
#include "common/args.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/rate.h"

#include <stdlib.h>

#define STACK_DEPTH 64u
#define LISTS 256u

typedef struct node {
  struct node *next;
  uint32_t bytes;
} node;

static char *tiny_make(uint32_t *state) {
  size_t bytes = 8 + (random_next(state) & 56);
  char *number = malloc(bytes);
  memory_demand(number);
  memory_touch(number, bytes);
  return number;
}

// A result takes the place of the number under the top, as after a multiplication.
static void stack_rewrite(char **below_top, uint32_t *state) {
  char *result = tiny_make(state);
  free(*below_top);
  *below_top = result;
}

static uint64_t numbers_run(uint64_t operations, uint32_t *state) {
  char *stack[STACK_DEPTH];
  unsigned depth = 0;
  uint64_t done = 0;
  while (done < operations) {
    uint32_t choice = random_next(state);
    if (depth < 2 || (depth < STACK_DEPTH && (choice & 1) != 0)) {
      stack[depth++] = tiny_make(state);
      done++;
    } else if ((choice & 14) == 0) {
      stack_rewrite(&stack[depth - 2], state);
      done += 2;
    } else {
      free(stack[--depth]);
      done++;
    }
  }
  return done;
}

static node *node_make(uint32_t bytes, node *next) {
  node *n = malloc(bytes);
  memory_demand(n);
  *n = (node){next, bytes};
  ((char *)n)[bytes - 1] = 1;
  return n;
}

static node *list_make(uint32_t *state) {
  static const uint32_t set_bytes[] = {16, 24, 24, 32, 40, 56, 72, 136};
  uint32_t bytes = set_bytes[random_next(state) & 7];
  node *list = NULL;
  for (uint32_t length = 4 + random_below(state, 28); length > 0; length--) {
    list = node_make(bytes, list);
  }
  return list;
}

static uint64_t list_drop(node *list) {
  uint64_t count = 0;
  while (list != NULL) {
    node *next = list->next;
    free(list);
    list = next;
    count++;
  }
  return count;
}

static node *list_copy(const node *list) {
  node *copy = NULL;
  for (; list != NULL; list = list->next) {
    copy = node_make(list->bytes, copy);
  }
  return copy;
}

static uint64_t lists_run(uint64_t operations, uint32_t *state) {
  node *lists[LISTS] = {NULL};
  uint64_t done = 0;
  while (done < operations) {
    node **list = &lists[random_below(state, LISTS)];
    node *old = *list;
    *list = old != NULL && (random_next(state) & 3) != 0 ? list_copy(old) : list_make(state);
    done += 2 * list_drop(old);
  }
  return done;
}

int main(int argc, char **argv) {
  args a = args_open(argc, argv, "shape_tiny [--lists] [OPS]");
  bool lists = args_take_flag(&a, "--lists");
  uint64_t operations = args_number(&a, 0, 40000000);
  args_end(&a, 1);

  uint32_t state = 42;
  uint64_t start = clock_ns();
  uint64_t done = lists ? lists_run(operations, &state) : numbers_run(operations, &state);
  rate_report(&(rate){lists ? "shape_tiny_lists" : "shape_tiny", "Mops/s", 1, done, 1e6,
                      clock_ns() - start});
}
