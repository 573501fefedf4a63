#include "base/stack.h"

#include "threads.h"

enum { NUMBERS = 16, ROUNDS = 20000 };

static struct tsl_stack stack;
static uint32_t links[NUMBERS + 1];
static uint32_t held[NUMBERS + 1];

static uint32_t *number_link(uint32_t number) { return &links[number]; }

static void push_all(void) {
  for (uint32_t i = 1; i <= NUMBERS; i++) tsl_stack_push(&stack, i, number_link);
}

static void last_in_first_out(void) {
  CHECK_EQ(tsl_stack_pop(&stack, number_link), 0);
  push_all();
  for (uint32_t i = NUMBERS; i != 0; i--) CHECK_EQ(tsl_stack_pop(&stack, number_link), i);
  CHECK_EQ(tsl_stack_pop(&stack, number_link), 0);
}

// A pop that looked before the others came must fail afterwards, though the same number is on top
// again.
static void head_never_comes_back(void) {
  push_all();
  uint64_t seen = stack.head;
  CHECK_EQ(tsl_stack_pop(&stack, number_link), NUMBERS);
  CHECK_EQ(tsl_stack_pop(&stack, number_link), NUMBERS - 1);
  tsl_stack_push(&stack, NUMBERS, number_link);
  CHECK_EQ((uint32_t)seen, (uint32_t)stack.head);
  CHECK(seen != stack.head);
}

static void count_of_changes_wraps(void) {
  stack.head = UINT64_C(0xffffffff) << 32;
  push_all();
  for (uint32_t i = NUMBERS; i != 0; i--) CHECK_EQ(tsl_stack_pop(&stack, number_link), i);
  CHECK_EQ(tsl_stack_pop(&stack, number_link), 0);
}

static void *pop_and_push(void *unused) {
  for (int i = 0; i < ROUNDS; i++) {
    uint32_t number = tsl_stack_pop(&stack, number_link);
    if (number == 0) continue;
    CHECK_EQ(tsl_exchange_relaxed(&held[number], 1), 0);
    tsl_store_relaxed(&held[number], 0);
    tsl_stack_push(&stack, number, number_link);
  }
  return unused;
}

static void each_number_has_one_holder(void) {
  uint32_t found = 0;
  push_all();
  threads_run(pop_and_push, NULL);
  for (uint32_t number; (number = tsl_stack_pop(&stack, number_link)) != 0;) {
    CHECK_EQ(found & 1u << number, 0);
    found |= 1u << number;
  }
  CHECK_EQ(found, ((1u << NUMBERS) - 1) << 1);
}

int main(void) {
  RUN(last_in_first_out);
  RUN(head_never_comes_back);
  RUN(count_of_changes_wraps);
  RUN(each_number_has_one_holder);
  return test_status();
}
