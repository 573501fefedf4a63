// Guests: epochs below a parent whose label has lost its bet lie in the memory of the parent.
#include <errno.h>

#include "base/options.h"
#include "bets.h"
#include "epoch/place.h"
#include "epoch/scope.h"
#include "epochs.h"
#include "heap/valid.h"
#include "os_fake.h"
#include "threads.h"

enum { BYTES = 100, BLOCKS = 64 };

static void *blocks[BLOCKS];

static uint32_t label(void) { return tsl_label_intern("request"); }

static void lose_bet(void) { bets_lose("request"); }

static tslab_epoch request_with(tslab_epoch_options options) {
  options.size = sizeof options;
  tslab_epoch epoch = tslab_epoch_open("request", &options);
  CHECK_NE(epoch, TSLAB_NO_EPOCH);
  return epoch;
}

static tslab_epoch request_below(tslab_epoch parent) {
  bets_come_often(parent);
  return request_with((tslab_epoch_options){.parent = parent});
}

static tslab_epoch place_of(tslab_epoch epoch) { return epochs_stats(epoch).place; }

static void lost_bets_lie_with_the_parent(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  CHECK_EQ(place_of(request_below(tenant)), tenant);
}

static void small_ones_lie_with_the_parent(void) {
  tslab_epoch tenant = epochs_open(), request = request_below(tenant);
  CHECK_EQ(place_of(request), request);
  for (unsigned i = 0; i < TSL_HISTORY_ENOUGH; i++)
    tsl_history_closed(label(), &(struct tsl_closed){.held_bytes = 4096});
  CHECK(tsl_history_shares(label()));
  CHECK_EQ(place_of(request_below(tenant)), tenant);
}

static tslab_epoch request_after_few(tslab_epoch parent) {
  return request_with((tslab_epoch_options){.parent = parent});
}

// A host keeps at hand what a guest needs: where a thread goes from tenant to tenant, each would.
static void of_many_parents_none_takes_guests(void) {
  tslab_epoch tenants[TSL_HOME_REGULARS + 1];
  lose_bet();
  for (unsigned i = 0; i <= TSL_HOME_REGULARS; i++) tenants[i] = epochs_open();
  for (unsigned turn = 0; turn < 4 * TSL_REGULARS_OFTEN; turn++) {
    for (unsigned i = 0; i <= TSL_HOME_REGULARS; i++) {
      tslab_epoch request = request_after_few(tenants[i]);
      CHECK_EQ(place_of(request), request);
      epochs_close(request, 0);
    }
  }
  for (unsigned turn = 1; turn < TSL_REGULARS_OFTEN; turn++) {
    for (unsigned i = 0; i < TSL_HOME_REGULARS; i++) epochs_close(request_after_few(tenants[i]), 0);
  }
  for (unsigned i = 0; i < TSL_HOME_REGULARS; i++)
    CHECK_EQ(place_of(request_after_few(tenants[i])), tenants[i]);
}

static void terms_of_their_own_need_their_own(void) {
  tslab_epoch tenant = epochs_open();
  const tslab_epoch_options terms[] = {
      {.parent = tenant, .soft_limit_bytes = 1 << 20},
      {.parent = tenant, .hard_limit_bytes = 1 << 20},
      {.parent = tenant, .purge = TSLAB_PURGE_KEEP},
      {.parent = tenant, .purge = TSLAB_PURGE_NOW},
      {.parent = tenant, .first_cell_bytes = TSLAB_NO_CELLS},
      {.parent = tenant, .place = TSLAB_PLACE_OWN},
  };
  lose_bet();
  CHECK_EQ(place_of(request_below(tenant)), tenant);
  for (unsigned i = 0; i < sizeof terms / sizeof *terms; i++) {
    tslab_epoch request = request_with(terms[i]);
    CHECK_EQ(place_of(request), request);
  }
  tsl_options.places = TSL_PLACES_OWN;
  tslab_epoch request = request_below(tenant);
  CHECK_EQ(place_of(request), request);
}

static void the_name_is_the_guests(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  tslab_epoch request = request_below(tenant);
  tslab_scope scope, inner;
  epochs_enter(&scope, tenant);
  struct tsl_heap *part = tsl_heap_current;
  epochs_enter(&inner, request);
  CHECK(tsl_heap_current == part);
  void *block = tslab_malloc(BYTES), *large = tslab_malloc(1 << 20);
  epochs_leave(&inner);
  CHECK_EQ(tslab_epoch_current(), tenant);
  epochs_leave(&scope);
  CHECK_EQ(tslab_epoch_of(block), tenant);
  CHECK_EQ(tslab_epoch_of(large), tenant);
  CHECK_EQ(epochs_stats(request).live_objects, 0);
  CHECK_EQ(epochs_stats(request).parent, tenant);
  CHECK_EQ(epochs_stats(tenant).live_objects, 2);
  epochs_close(request, 0);
  CHECK(epochs_is_over(request));
  tslab_free(block);
  tslab_free(large);
  epochs_close(tenant, 0);
  epochs_check_all_free();
}

static void limits_of_the_parent_count(void) {
  tslab_epoch tenant = EPOCHS_OPEN(.hard_limit_bytes = 1 << 20);
  lose_bet();
  tslab_epoch request = request_below(tenant);
  CHECK(tslab_epoch_malloc(request, 2 << 20) == NULL && errno == ENOMEM);
  epochs_alloc(request, BYTES);
  CHECK_LE(1, epochs_stats(tenant).held_bytes);
  CHECK_EQ(tslab_epoch_set_limits(request, 0, 1 << 20), ENOTSUP);
  CHECK_EQ(tslab_epoch_release(tenant), 0);
}

// What the parent promises of its children holds, and says nothing of the label.
static void guests_end_with_the_parent(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  tslab_epoch closed = request_below(tenant), open = request_below(tenant);
  epochs_alloc_many(blocks, closed, BYTES, BLOCKS);
  epochs_close(closed, 0);
  epochs_alloc_many(blocks, open, 5 * BYTES, BLOCKS);
  CHECK_EQ(tslab_epoch_release(tenant), 0);
  CHECK(epochs_is_over(open) && epochs_is_over(tenant));
  epochs_check_all_free();
  CHECK(tsl_history_shares(label()));
}

static void guests_end_with_a_reset_of_the_parent(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  tslab_epoch request = request_below(tenant);
  epochs_alloc_many(blocks, request, BYTES, BLOCKS);
  CHECK_EQ(tslab_epoch_reset(tenant), 0);
  CHECK(epochs_is_over(request));
  CHECK_EQ(epochs_stats(tenant).live_objects, 0);
  CHECK_EQ(place_of(request_below(tenant)), tenant);
}

// It says so, and is the last guest of its label.
static void a_release_ends_no_block(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  tslab_epoch request = request_below(tenant);
  void *block = epochs_alloc(request, BYTES);
  CHECK_EQ(tslab_epoch_reset(request), ENOTSUP);
  CHECK_EQ(tslab_epoch_release(request), ENOTSUP);
  CHECK(epochs_is_over(request));
  epochs_free(block, BYTES);
  request = request_below(tenant);
  CHECK_EQ(place_of(request), request);
}

// A release of the parent ends what was kept once: in its memory it would be spared.
static void labels_that_keep_are_no_guests(void) {
  tslab_epoch tenant = epochs_open(), request = request_below(tenant);
  void *block = epochs_alloc(request, BYTES);
  CHECK_EQ(tslab_epoch_keep(block), 0);
  bets_close_enough("request");
  request = request_below(tenant);
  CHECK_EQ(place_of(request), request);
  epochs_free(block, BYTES);
}

static void guests_of_guests_have_the_same_host(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  tslab_epoch request = request_below(tenant), query = request_below(request);
  CHECK_EQ(place_of(query), tenant);
  void *block = epochs_alloc(query, BYTES);
  CHECK_EQ(tslab_epoch_of(block), tenant);
  CHECK_EQ(tslab_epoch_release(request), ENOTSUP);
  CHECK(epochs_is_over(query) && epochs_is_over(request));
  epochs_free(block, BYTES);
}

// PL3.
static void a_shared_parent_is_no_host(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  tslab_epoch tenant = tslab_epoch_open("tenant", &options);
  lose_bet();
  tslab_epoch request = request_below(tenant);
  CHECK_EQ(place_of(request), request);
}

// PL3.
static void who_outlives_the_host_lies_further_up(void) {
  tslab_epoch machine = epochs_open(), tenant = EPOCHS_OPEN(.parent = machine);
  lose_bet();
  tslab_epoch request = request_below(tenant);
  void *in_tenant = epochs_alloc(request, BYTES);
  epochs_close(tenant, 1);
  void *in_machine = epochs_alloc(request, 2 * BYTES);
  CHECK_EQ(tslab_epoch_of(in_tenant), tenant);
  CHECK_EQ(tslab_epoch_of(in_machine), machine);
  epochs_close(machine, 1);
  tslab_scope scope;
  epochs_enter(&scope, request);
  void *in_none = tslab_malloc(3 * BYTES);
  epochs_leave(&scope);
  CHECK_EQ(tslab_epoch_of(in_none), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
  epochs_free(in_tenant, BYTES);
  epochs_free(in_machine, 2 * BYTES);
  tslab_free(in_none);
  CHECK(!epochs_is_over(machine));
  epochs_close(request, 0);
  CHECK(epochs_is_over(request) && epochs_is_over(tenant) && epochs_is_over(machine));
  epochs_check_all_free();
}

// PL3. The shared epoch of its label never ends: nothing there would end with an ancestor.
static void nobody_moves_up_into_a_shared_one(void) {
  tslab_epoch_options options = {.size = sizeof options, .place = TSLAB_PLACE_SHARED};
  tslab_epoch machine = tslab_epoch_open("machine", &options);
  tslab_epoch tenant = EPOCHS_OPEN(.parent = machine);
  lose_bet();
  tslab_epoch request = request_below(tenant);
  epochs_close(tenant, 0);
  void *block = epochs_alloc(request, BYTES);
  CHECK_EQ(tslab_epoch_of(block), TSLAB_DEFAULT);
  epochs_free(block, BYTES);
}

static void what_came_after_the_close_outlives_a_release(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  tslab_epoch request = request_below(tenant);
  epochs_alloc_many(blocks, request, BYTES, BLOCKS);
  epochs_close(tenant, BLOCKS);
  void *late = epochs_alloc(request, BYTES);
  CHECK_EQ(tslab_epoch_release(tenant), 0);
  CHECK(epochs_is_over(request));
  epochs_free(late, BYTES);
  epochs_check_all_free();
}

static tslab_epoch guest_of_deferred;
static int error_of_deferred;

static tslab_epoch seen_by_callback = TSLAB_NO_EPOCH;

static void see_epoch(tslab_epoch epoch, void *scope) {
  (void)epoch;
  seen_by_callback = tslab_epoch_current();
  CHECK_EQ(tslab_scope_leave(scope), EPERM);  // misuse: it is the thread's, not this call's
}

static void see_limit(tslab_epoch epoch, enum tslab_limit limit, size_t held_bytes,
                      size_t wanted_bytes, void *scope) {
  (void)limit, (void)held_bytes, (void)wanted_bytes;
  see_epoch(epoch, scope);
}

// A guest whose host was closed lies in the thread's own heap, under its name.
static void outside_of_epochs_only_scopes_have_the_guests_name(void) {
  tslab_scope scope;
  tslab_epoch tenant = epochs_open(), other = epochs_open();
  tslab_epoch limited =
      EPOCHS_OPEN(.soft_limit_bytes = 1, .on_limit = see_limit, .limit_context = &scope);
  lose_bet();
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;
  tslab_epoch request = request_below(tenant);
  epochs_close(tenant, 0);
  epochs_enter(&scope, request);
  CHECK_EQ(tslab_epoch_of(tslab_malloc(BYTES)), TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_on_over(other, see_epoch, &scope), 0);
  epochs_close(other, 0);
  CHECK_EQ(seen_by_callback, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_current(), request);
  seen_by_callback = TSLAB_NO_EPOCH;
  CHECK(tslab_epoch_malloc(limited, BYTES) != NULL);
  CHECK_EQ(seen_by_callback, TSLAB_DEFAULT);
  CHECK_EQ(tslab_epoch_current(), request);
  epochs_leave(&scope);
  epochs_enter(&scope, request);
  tsl_scope_leave_all(tsl_heap_current->home);
  CHECK_EQ(tslab_epoch_current(), TSLAB_DEFAULT);
}

static void allocate_in_guest(void *unused) {
  (void)unused;
  errno = 0;
  CHECK(tslab_epoch_malloc(guest_of_deferred, BYTES) == NULL);
  error_of_deferred = errno;
}

// Its objects would escape the end that is under way.
static void nobody_allocates_in_a_guest_while_its_host_ends(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  guest_of_deferred = request_below(tenant);
  CHECK_EQ(tslab_epoch_defer(tenant, allocate_in_guest, NULL), 0);
  CHECK_EQ(tslab_epoch_reset(tenant), 0);
  CHECK_EQ(error_of_deferred, EBUSY);
  guest_of_deferred = request_below(tenant);
  CHECK_EQ(tslab_epoch_defer(tenant, allocate_in_guest, NULL), 0);
  CHECK_EQ(tslab_epoch_release(tenant), 0);
  CHECK_EQ(error_of_deferred, ECANCELED);
  CHECK(epochs_is_over(guest_of_deferred));
}

// What guests leave would make the tenants share: then none could be a host.
static void guests_lose_no_bet_of_their_host(void) {
  lose_bet();
  for (unsigned i = 0; i < 2 * TSL_HISTORY_ENOUGH; i++) {
    tslab_epoch tenant = tslab_epoch_open("tenant", NULL), request = request_below(tenant);
    CHECK_EQ(place_of(request), tenant);
    epochs_alloc_many(blocks, request, BYTES, BLOCKS);
    epochs_close(request, 0);
    epochs_close(tenant, BLOCKS);
    epochs_free_many(blocks, BYTES, BLOCKS);
    CHECK(epochs_is_over(tenant));
  }
  CHECK_EQ(tsl_history_of(tsl_label_intern("tenant")).ended, 0);
}

// A block of a guest is one of its host.
static void a_kept_block_of_a_guest_survives_the_host(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  tslab_epoch request = request_below(tenant);
  void *kept = epochs_alloc(request, BYTES);
  epochs_alloc(request, BYTES);
  CHECK_EQ(tslab_epoch_keep(kept), 0);
  CHECK_EQ(tslab_epoch_release(tenant), 0);
  CHECK_EQ(epochs_stats(tenant).live_objects, 1);
  epochs_free(kept, BYTES);
  CHECK(epochs_is_over(tenant));
  epochs_check_all_free();
}

// Its thread seals the host's part as it leaves.
static void who_is_inside_goes_on_when_the_host_ends(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  tslab_epoch request = request_below(tenant);
  tslab_scope scope;
  epochs_enter(&scope, request);
  tsl_options.on_error = TSL_ON_ERROR_IGNORE;  // closed in its descendant
  epochs_close(tenant, 0);
  void *block = tslab_malloc(BYTES);
  CHECK_EQ(tslab_epoch_of(block), tenant);
  epochs_leave(&scope);
  epochs_close(request, 0);
  CHECK(!epochs_is_over(tenant));
  tslab_free(block);
  CHECK(epochs_is_over(tenant));
  epochs_check_all_free();
}

static void ended_guests_take_nobody_in(void) {
  tslab_epoch tenant = epochs_open();
  lose_bet();
  tslab_epoch request = request_below(tenant);
  tslab_scope scope;
  epochs_close(request, 0);
  CHECK_EQ(tslab_scope_enter(&scope, request), ESTALE);
  CHECK(tslab_epoch_malloc(request, BYTES) == NULL && errno == ESTALE);
}

static tslab_epoch tenant_of_all;

static void *serve(void *unused) {
  (void)unused;
  tslab_free(tslab_malloc(BYTES));  // from here on the thread has a home
  for (unsigned i = 0; i < 300; i++) {
    tslab_epoch request = request_below(tenant_of_all);
    void *block = tslab_epoch_malloc(request, BYTES);
    CHECK_EQ(tslab_epoch_of(block), tenant_of_all);
    CHECK_EQ(tslab_epoch_close(request).error, 0);
    tslab_free(block);
  }
  return NULL;
}

static void *reset_tenant(void *unused) {
  (void)unused;
  CHECK_EQ(tslab_epoch_reset(tenant_of_all), EBUSY);
  return NULL;
}

// In the memory that the reset would end.
static void who_is_in_a_guest_is_in_its_host(void) {
  tenant_of_all = epochs_open();
  lose_bet();
  tslab_scope scope;
  epochs_enter(&scope, request_below(tenant_of_all));
  threads_run_one(reset_tenant, NULL);
  epochs_leave(&scope);
  CHECK_EQ(tslab_epoch_reset(tenant_of_all), 0);
}

static void threads_lie_in_parts_of_their_own(void) {
  tenant_of_all = epochs_open();
  lose_bet();
  tslab_epoch request = request_below(tenant_of_all);
  tslab_free(epochs_alloc(request, BYTES));
  epochs_close(request, 0);
  threads_run(serve, NULL);
  CHECK_GE(epochs_stats(tenant_of_all).threads, 2);
  epochs_close(tenant_of_all, 0);
  CHECK(epochs_is_over(tenant_of_all));
}

int main(void) {
  RUN(lost_bets_lie_with_the_parent);
  RUN(small_ones_lie_with_the_parent);
  RUN(of_many_parents_none_takes_guests);
  RUN(terms_of_their_own_need_their_own);
  RUN(the_name_is_the_guests);
  RUN(limits_of_the_parent_count);
  RUN(guests_end_with_the_parent);
  RUN(guests_end_with_a_reset_of_the_parent);
  RUN(a_release_ends_no_block);
  RUN(labels_that_keep_are_no_guests);
  RUN(guests_of_guests_have_the_same_host);
  RUN(a_shared_parent_is_no_host);
  RUN(who_outlives_the_host_lies_further_up);
  RUN(nobody_moves_up_into_a_shared_one);
  RUN(what_came_after_the_close_outlives_a_release);
  RUN(outside_of_epochs_only_scopes_have_the_guests_name);
  RUN(nobody_allocates_in_a_guest_while_its_host_ends);
  RUN(guests_lose_no_bet_of_their_host);
  RUN(a_kept_block_of_a_guest_survives_the_host);
  RUN(who_is_in_a_guest_is_in_its_host);
  RUN(who_is_inside_goes_on_when_the_host_ends);
  RUN(ended_guests_take_nobody_in);
  RUN(threads_lie_in_parts_of_their_own);
  return test_status();
}
