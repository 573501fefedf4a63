#include "epoch/seal.h"

#include "heap/drained.h"
#include "heap/remote.h"
#include "seals.h"
#include "takes.h"
#include "threads.h"

enum { ROUNDS = 30 };

static void claimed_once_a_life(void) {
  open_all(0);
  tsl_store_relaxed(&heap->depth, 1);
  CHECK(!tsl_part_claim_seal(tsl_part_of(heap)));
  CHECK_EQ(tsl_part_of(heap)->sealing, 0);
  tsl_store_relaxed(&heap->depth, 0);
  end_epoch(TSL_EPOCH_CLOSED);
  CHECK(tsl_part_claim_seal(tsl_part_of(heap)));
  CHECK(!tsl_part_claim_seal(tsl_part_of(heap)));
  struct tsl_survivors survivors = {0};
  tsl_part_seal(tsl_part_of(heap), &survivors);
  CHECK(!tsl_part_claim_seal(tsl_part_of(heap)));
  struct tsl_heap *before = heap;
  open_epoch(0);
  CHECK(heap == before);
  end_epoch(TSL_EPOCH_CLOSED);
  CHECK(tsl_part_claim_seal(tsl_part_of(heap)));
  CHECK(!tsl_part_claim_seal(tsl_part_of(heap)));
}

static void empty_heap_drains_at_once(void) {
  open_all(0);
  uint32_t life = heap->life;
  check_survivors(seal_as(home), 0, 0, 0);
  CHECK_EQ(heap->life, life + 1);
  CHECK_EQ(home->home->spare, heap->number);
  check_over();
}

static void dead_cells_drain_at_once(void) {
  open_all(0);
  alloc_many(100, 3000);
  for (unsigned i = 0; i < block_count; i++) free_as(i % 3 == 0 ? other : heap, blocks[i]);
  CHECK(tsl_epoch_at(slot)->held_bytes != 0);
  check_survivors(seal_as(home), 0, 0, 0);
  check_over();
}

static void dead_slabs_drain_at_once(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(100, 3000);
  alloc_many(20000, 20);
  for (unsigned i = 0; i < block_count; i++) free_as(i % 3 == 0 ? other : heap, blocks[i]);
  CHECK(tsl_epoch_at(slot)->held_bytes != 0);
  CHECK_EQ(home->home->stores, 1);
  check_survivors(seal_as(home), 0, 0, 0);
  CHECK_EQ(home->home->stores, 0);
  check_over();
}

static void survivors_in_cells_are_counted(void) {
  open_all(0);
  alloc_many(64, 64);  // the first cell
  alloc_many(1000, 10);
  alloc_many(16, 5);
  for (unsigned i = 0; i < 64; i++) tsl_fast_free(blocks[i]);
  free_as(other, blocks[64]);
  tsl_fast_free(blocks[65]);
  free_as(&tsl_home_empty.heap, blocks[74]);
  check_survivors(seal_as(home), 8 + 4, 8 * 1024 + 4 * 16, 16);
  for (unsigned i = 66; i < 74; i++) free_as(home, blocks[i]);
  for (unsigned i = 75; i < 79; i++) {
    CHECK_EQ(tsl_epoch_check(id), ECANCELED);
    free_as(other, blocks[i]);
  }
  check_over();
}

// One in each of three cells.
static void pages_of_survivors_are_counted(void) {
  open_all(0);
  alloc_many(64, 64 + 1024 + 1024);
  for (unsigned i = 0; i < block_count; i++) {
    if (i != 7 && i != 100 && i != 2000) tsl_fast_free(blocks[i]);
  }
  check_survivors(seal_as(home), 3, 3 * 64, 1 + 16 + 16);
  free_as(home, blocks[100]);
  state_check();
  CHECK_EQ(tsl_epoch_at(slot)->held_bytes, 65536 + 4096);
  free_as(home, blocks[7]);
  CHECK_EQ(tsl_epoch_at(slot)->held_bytes, 65536);
  free_as(home, blocks[2000]);
  check_over();
}

// Hot free blocks, those of stocks, and those that others freed are none.
static void survivors_in_slabs_are_counted(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(64, 3000);
  alloc_many(5000, 20);
  alloc_many(20000, 3);
  unsigned tiny = 0, medium = 0;
  for (unsigned i = 0; i < 3020; i++) {
    if (i % 7 == 0) {
      tiny += i < 3000;
      medium += i >= 3000;
    } else {
      free_as(i % 3 == 0 ? other : heap, blocks[i]);
    }
  }
  struct tsl_survivors left = seal_as(home);
  CHECK_EQ(left.objects, tiny + medium + 3);
  CHECK_EQ(left.bytes, tiny * takes(64) + medium * takes(5000) + 3 * takes(20000));
  CHECK_EQ(left.pages << 12, tsl_epoch_at(slot)->held_bytes);
  for (unsigned i = 0; i < 3020; i += 7) free_as(i % 2 == 0 ? other : home, blocks[i]);
  for (unsigned i = 3020; i < 3023; i++) {
    CHECK_EQ(tsl_epoch_check(id), ECANCELED);
    state_check();
    free_as(home, blocks[i]);
  }
  check_over();
}

static bool is_reported(void *block, const char *what) {
  tsl_options.on_error = TSL_ON_ERROR_REPORT;
  capture_start();
  free_as(other, block);
  const char *said = capture_end();
  return capture_lines(said) == 1 && strstr(said, what) != NULL;
}

static void misuse_after_the_seal_is_reported(size_t first_cell_bytes) {
  open_epoch(first_cell_bytes);
  alloc_many(500, 100);
  free_as(heap, blocks[9]);
  seal_as(home);
  uint32_t undrained = tsl_epoch_at(slot)->undrained;
  CHECK(is_reported(blocks[9], "is free already"));
  for (unsigned i = 10; i < 100; i++) {
    free_as(home, blocks[i]);
    CHECK(is_reported(blocks[i], "is free already"));
    CHECK(is_reported((char *)blocks[0] + 16, "not the beginning of a block"));
  }
  CHECK_EQ(tsl_epoch_at(slot)->undrained, undrained);
  for (unsigned i = 0; i < 9; i++) free_as(home, blocks[i]);
  check_over();
}

static void misuse_in_sealed_cells(void) {
  open_homes();
  misuse_after_the_seal_is_reported(4096 * 16);
}

static void misuse_in_sealed_slabs(void) {
  open_homes();
  misuse_after_the_seal_is_reported(TSLAB_NO_CELLS);
}

// What lives ends with the epoch, at once.
static void release_as(struct tsl_heap *releaser, size_t first_cell_bytes) {
  open_epoch(first_cell_bytes);
  for (size_t bytes = 1; bytes <= TSL_SMALL_LIMIT; bytes += bytes / 4 + 1) alloc_many(bytes, 60);
  for (unsigned i = 0; i < block_count; i += 3) free_as(i % 2 == 0 ? other : heap, blocks[i]);
  uint32_t life = heap->life;
  end_epoch(TSL_EPOCH_RELEASED);
  tsl_heap_current = releaser;
  CHECK(tsl_part_claim_seal(tsl_part_of(heap)));
  tsl_part_release(tsl_part_of(heap));
  CHECK_EQ(releaser->home->changing, 0);
  tsl_heap_current = home;
  CHECK_EQ(heap->life, life + 1);
  check_over();
}

static void release_gives_all_back(void) {
  open_homes();
  release_as(home, 0);
  release_as(home, TSLAB_NO_CELLS);
  release_as(other, 0);
  release_as(other, TSLAB_NO_CELLS);
  CHECK_EQ(tsl_region.last_heap, 3);
}

// Heaps without an epoch are used again by their home, also those that another thread sealed.
static void parts_are_used_again(void) {
  open_all(0);
  struct tsl_heap *first = heap;
  CHECK_EQ(first->number, 3);
  seal_as(home);
  CHECK_EQ(home->home->returned, 0);
  for (int i = 0; i < 5; i++) {
    open_epoch(i % 2 == 0 ? 0 : TSLAB_NO_CELLS);
    CHECK(heap == first);
    CHECK_EQ(heap->epoch, slot);
    CHECK_EQ(heap->cell_class != 0, i % 2 == 0 && !TSL_SECURE);
    alloc_many(64, 10);
    seal_as(i % 3 == 0 ? other : home);
    for (unsigned b = 0; b < block_count; b++) free_as(other, blocks[b]);
    CHECK_EQ(tsl_epoch_check(id), ESTALE);
    CHECK_EQ(home->home->returned, i % 3 == 0 ? first->number : 0);
    CHECK_EQ(other->home->returned, 0);
    CHECK_EQ(other->home->spare, 0);
  }
  CHECK_EQ(first->life, 6);
  check_over();
}

static void returned_parts_come_all_at_once(void) {
  open_homes();
  tslab_epoch ids[3];
  struct tsl_heap *parts[3];
  for (int i = 0; i < 3; i++) {
    tsl_heap_current = home;
    open_epoch(0);
    parts[i] = heap;
    ids[i] = id;
  }
  CHECK(parts[0] != parts[1] && parts[1] != parts[2]);
  for (int i = 0; i < 3; i++) {
    heap = parts[i];
    id = ids[i];
    slot = tsl_epoch_slot(id);
    seal_as(other);
  }
  CHECK_EQ(home->home->spare, 0);
  CHECK_EQ(state_check_spares(home->home, home->home->returned), 3);
  bool seen[TSL_HOME_SLOTS] = {false};
  for (int i = 0; i < 3; i++) {
    open_epoch(0);
    CHECK(heap->number >= 3 && heap->number <= 5 && !seen[heap->number]);
    seen[heap->number] = true;
    CHECK_EQ(home->home->returned, 0);
  }
  open_epoch(0);
  CHECK_EQ(heap->number, 6);
  state_check();
}

static void check_ends(const struct tsl_heap *of, struct tsl_end_tally expected) {
  const struct tsl_end_tally *ends = &of->home->own->ends;
  CHECK_EQ(ends->parts, expected.parts);
  CHECK_EQ(ends->pieces, expected.pieces);
  CHECK_EQ(ends->pieces_given, expected.pieces_given);
  CHECK_EQ(ends->held_pages, expected.held_pages);
  CHECK_EQ(ends->given_pages, expected.given_pages);
  CHECK_EQ(ends->timed_parts, expected.timed_parts);
  CHECK_EQ(ends->timed_ns, expected.timed_ns);
}

// Three cells of 1, 16 and 16 pages, of which the first has no live block. Who seals counts.
static void ends_in_cells_are_counted(void) {
  open_all(0);
  alloc_many(64, 64 + 1024 + 1024);
  for (unsigned i = 0; i < block_count; i++)
    if (i != 100 && i != 2000) tsl_fast_free(blocks[i]);
  uint64_t pages = heap->cell_pages, cells = heap->cell_count;
  struct tsl_survivors left = seal_as(other);
  CHECK_EQ(left.pages, 32);
  check_ends(home, (struct tsl_end_tally){0});
  check_ends(other, (struct tsl_end_tally){.parts = 1,
                                           .pieces = cells,
                                           .pieces_given = cells - 2,
                                           .held_pages = pages,
                                           .given_pages = pages - 32});
}

// Slabs of one unit: the first of two lives on.
static void ends_in_slabs_are_counted(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(1024, 64);
  uint32_t slabs = heap->slab_count;
  while (heap->slab_count == slabs) alloc_many(1024, 1);
  for (unsigned i = 1; i < block_count; i++) tsl_fast_free(blocks[i]);
  uint64_t pieces = heap->slab_count;
  CHECK_EQ(seal_as(home).pages, 16);
  check_ends(home, (struct tsl_end_tally){.parts = 1,
                                          .pieces = pieces,
                                          .pieces_given = pieces - 1,
                                          .held_pages = pieces * 16,
                                          .given_pages = pieces * 16 - 16});
}

static void released_parts_are_counted(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(1024, 200);
  uint64_t pieces = heap->slab_count;
  end_epoch(TSL_EPOCH_RELEASED);
  CHECK(tsl_part_claim_seal(tsl_part_of(heap)));
  tsl_part_release(tsl_part_of(heap));
  check_ends(home, (struct tsl_end_tally){.parts = 1,
                                          .pieces = pieces,
                                          .pieces_given = pieces,
                                          .held_pages = pieces * 16,
                                          .given_pages = pieces * 16});
}

// Whether the end of a part of so many slabs was timed; each look at the clock takes 7 ns.
static bool is_timed(unsigned slabs) {
  open_epoch(TSLAB_NO_CELLS);
  while (heap->slab_count < slabs) alloc(32000);
  uint64_t before = home->home->own->ends.timed_ns, parts = home->home->own->ends.timed_parts;
  seal_as(home);
  CHECK_EQ(home->home->own->ends.timed_ns - before,
           home->home->own->ends.timed_parts == parts ? 0 : 7);
  return home->home->own->ends.timed_parts != parts;
}

static void long_ends_are_timed(void) {
  open_homes();
  os_fake.now_ns = 1000;
  os_fake.look_ns = 7;
  CHECK(!is_timed(TSL_TIMED_PIECES - 1));
  CHECK(is_timed(TSL_TIMED_PIECES));
}

// PA1, S5: a freer that comes when the ready stack is closed, and the slab not sealed yet. Its push
// fails, and it counts instead.
static void put_late(uint32_t number, unsigned others) {
  open_epoch(TSLAB_NO_CELLS);
  alloc_many(500, 1 + others);
  unsigned class = takes_class(500);
  const struct tsl_slab *slab = tsl_slab_position(class, blocks[0]).slab;
  tsl_heap_close_ready(heap);
  CHECK_EQ(slab->life, heap->life - 1);
  tsl_heap_current = other;
  tsl_remote_put(number == 0 ? heap->number : number, class, blocks[0]);
  CHECK_EQ((uint32_t)heap->ready, 0);
  CHECK_EQ(slab->left, -1);
  check_survivors(seal_as(home), others, (size_t)others * 512, others == 0 ? 0 : 16);
  for (unsigned i = 1; i <= others; i++) {
    CHECK_EQ(slab->left, (int)(others + 1 - i));
    free_as(other, blocks[i]);
  }
  check_over();
}

static void late_push_is_counted(void) {
  open_homes();
  for (unsigned others = 0; others <= 3; others++) put_late(0, others);
}

// The same freer, when the map says already that the slab is sealed.
static void late_push_to_no_heap_is_counted(void) {
  open_homes();
  for (unsigned others = 0; others <= 3; others++) put_late(TSL_HEAP_SEALED, others);
}

// One that set its bits before, and pushes when all is over: it finds the heap in another life.
static void push_of_an_earlier_life(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(500, 2);
  struct tsl_position position = tsl_slab_position(takes_class(500), blocks[0]);
  CHECK(position.index >= 0);
  unsigned word = (unsigned)position.index / 64;
  uint64_t block = UINT64_C(1) << (unsigned)position.index % 64;
  CHECK_EQ(tsl_slab_put_remote(position.slab, word, &block), TSL_REMOTE_PUSH);
  end_epoch(TSL_EPOCH_CLOSED);
  CHECK(tsl_part_claim_seal(tsl_part_of(heap)));
  struct tsl_survivors left = {0};
  tsl_part_seal(tsl_part_of(heap), &left);
  check_survivors(left, 1, 512, 16);
  CHECK_EQ(position.slab->left, 2);
  free_as(other, blocks[1]);
  CHECK_EQ(tsl_epoch_check(id), ECANCELED);
  CHECK_NE(position.slab->life, heap->ready >> 32);
  CHECK_EQ(tsl_slab_count_down(position.slab), TSL_REMOTE_EMPTY);
  tsl_heap_drained(position.slab);
  check_over();
}

// Slabs on the ready stack, or taken from it, when the heap is sealed: collected, and no more.
static void ready_slabs_are_collected(void) {
  open_all(TSLAB_NO_CELLS);
  alloc_many(1024, 64 * 20);
  for (unsigned i = 1; i < block_count; i += 2) free_as(other, blocks[i]);
  CHECK((uint32_t)heap->ready != 0);
  alloc(1024);
  alloc_many(1024, 64);  // looks at a few of them
  size_t live = 64 * 10 + 65;
  check_survivors(seal_as(home), live, live * 1024, tsl_epoch_at(slot)->held_bytes >> 12);
  CHECK_EQ(heap->ready, (uint64_t)heap->life << 32);
  CHECK_EQ(heap->pending, 0);
}

static uint32_t joined;

static void *free_share(void *unused) {
  tsl_heap_current = &tsl_home_take()->heap;
  CHECK(tsl_heap_current != NULL);
  for (unsigned i = tsl_add_relaxed(&joined, 1); i < block_count; i += THREADS)
    tsl_fast_free(blocks[i]);
  tsl_home_pool(tsl_heap_current->home);
  return unused;
}

// Threads free all blocks while the heap is sealed, at some moment.
static void seal_among_frees(uint64_t *seed) {
  pthread_t threads[THREADS];
  struct tsl_survivors left = {0};
  unsigned count = block_count;
  end_epoch(TSL_EPOCH_CLOSED);
  joined = 0;
  for (int i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, free_share, NULL), 0);
  while (tsl_load_relaxed(&joined) == 0) continue;
  for (unsigned wait = test_random_below(seed, 20000); wait != 0; wait--) tsl_cpu_relax();
  CHECK(tsl_part_claim_seal(tsl_part_of(heap)));
  tsl_part_seal(tsl_part_of(heap), &left);
  CHECK_LE(left.objects, count);
  for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  tsl_heap_collect_all();
  check_over();
}

static void slabs_sealed_among_frees(void) {
  uint64_t seed = 1;
  open_homes();
  for (int round = 0; round < ROUNDS; round++) {
    check_context_set("round %d", round);
    open_epoch(TSLAB_NO_CELLS);
    alloc_many(round % 2 == 0 ? 64 : 4000, 2000);
    seal_among_frees(&seed);
  }
}

static void cells_sealed_among_frees(void) {
  uint64_t seed = 2;
  open_homes();
  for (int round = 0; round < ROUNDS; round++) {
    check_context_set("round %d", round);
    open_epoch(0);
    alloc_many(round % 2 == 0 ? 16 : 300, 3000);
    seal_among_frees(&seed);
  }
}

int main(void) {
  RUN(claimed_once_a_life);
  RUN(empty_heap_drains_at_once);
  RUN_UNLESS_SECURE(dead_cells_drain_at_once);
  RUN(dead_slabs_drain_at_once);
  RUN_UNLESS_SECURE(survivors_in_cells_are_counted);
  RUN_UNLESS_SECURE(pages_of_survivors_are_counted);
  RUN(survivors_in_slabs_are_counted);
  RUN_UNLESS_SECURE(misuse_in_sealed_cells);
  RUN(misuse_in_sealed_slabs);
  RUN(release_gives_all_back);
  RUN(parts_are_used_again);
  RUN(returned_parts_come_all_at_once);
  RUN_UNLESS_SECURE(ends_in_cells_are_counted);
  RUN_UNLESS_SECURE(ends_in_slabs_are_counted);
  RUN(released_parts_are_counted);
  RUN(long_ends_are_timed);
  RUN(late_push_is_counted);
  RUN(late_push_to_no_heap_is_counted);
  RUN(push_of_an_earlier_life);
  RUN_UNLESS_SECURE(ready_slabs_are_collected);
  RUN(slabs_sealed_among_frees);
  RUN(cells_sealed_among_frees);
  return test_status();
}
