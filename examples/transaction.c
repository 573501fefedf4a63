// A database gives each transaction an epoch, and each query in it an epoch of its own below: what
// a query needs ends with the query, what it found or changed ends with the transaction, and a
// transaction that is given up takes the queries along that are still running.
#include <string.h>
#include <tslab.h>

#include "expect.h"

enum { ROWS = 100 };

static int table[ROWS];

struct undo {
  struct undo *next;
  int row, value;
};

struct transaction {
  tslab_epoch epoch;
  struct undo *undo;
  bool committed;
};

// Runs while the transaction's objects are still valid, whichever way it ends.
static void finish(void *argument) {
  struct transaction *transaction = argument;
  if (transaction->committed) return;
  for (const struct undo *undo = transaction->undo; undo != NULL; undo = undo->next)
    table[undo->row] = undo->value;
}

static struct transaction *begin(void) {
  tslab_epoch epoch = tslab_epoch_open("transaction", NULL);
  struct transaction *transaction = tslab_epoch_calloc(epoch, 1, sizeof *transaction);
  EXPECT(transaction != NULL);
  transaction->epoch = epoch;
  EXPECT_DONE(tslab_epoch_defer(epoch, finish, transaction));
  return transaction;
}

static void commit(struct transaction *transaction) {
  transaction->committed = true;
  EXPECT_DONE(tslab_epoch_release(transaction->epoch));
}

static void roll_back(struct transaction *transaction) {
  EXPECT_DONE(tslab_epoch_release(transaction->epoch));
}

static void update(struct transaction *transaction, int row, int value) {
  struct undo *undo = tslab_epoch_malloc(transaction->epoch, sizeof *undo);
  EXPECT(undo != NULL);
  *undo = (struct undo){transaction->undo, row, table[row]};
  transaction->undo = undo;
  table[row] = value;
}

static tslab_epoch query_open(const struct transaction *transaction) {
  tslab_epoch_options below = {.size = sizeof below, .parent = transaction->epoch};
  return tslab_epoch_open("query", &below);
}

// The plan is the query's, the answer the transaction's.
static char *query_total(const struct transaction *transaction) {
  tslab_scope here;
  tslab_epoch query = query_open(transaction);
  EXPECT_DONE(tslab_scope_enter(&here, query));
  int *plan = malloc(ROWS * sizeof *plan), total = 0;
  for (int i = 0; i < ROWS; i++) plan[i] = i;
  for (int i = 0; i < ROWS; i++) total += table[plan[i]];
  tslab_scope_leave(&here);

  char *answer = tslab_epoch_malloc(transaction->epoch, 32);
  snprintf(answer, 32, "total %d", total);
  EXPECT_DONE(tslab_epoch_release(query));
  return answer;
}

int main(void) {
  struct transaction *first = begin();
  for (int row = 0; row < ROWS; row++) update(first, row, 1);
  char *answer = query_total(first);
  EXPECT(strcmp(answer, "total 100") == 0);
  printf("committed: %s\n", answer);
  commit(first);

  struct transaction *second = begin();
  for (int row = 0; row < ROWS; row++) update(second, row, row * 1000);
  update(second, 0, -1);
  answer = query_total(second);
  printf("given up:  %s\n", answer);
  tslab_epoch running = query_open(second);
  EXPECT(tslab_epoch_malloc(running, 4096) != NULL);
  roll_back(second);

  tslab_epoch_stats stats = {.size = sizeof stats};
  EXPECT(tslab_epoch_get_stats(running, &stats) != 0);
  for (int row = 0; row < ROWS; row++) EXPECT(table[row] == 1);
  printf("the table is as after the commit, the running query is over\n");
  return 0;
}
