#include "memory/mirror.h"

#include <string.h>

#include "base/bits.h"
#include "base/format.h"
#include "base/hash.h"
#include "os/os.h"
#include "tslab.h"

enum { CHUNK_BYTES = 4096, MIRROR_NAME_BYTES = 48, RETRY_MS = 1000 };

enum mirror_state { NOT_TRIED, OPEN, REFUSED };

struct tsl_lock tsl_mirror_lock = {.rank = TSL_RANK_MIRROR};
static uint32_t mirror_state;              // [lock:mirror, read by any] enum mirror_state
static struct tslab_stats_header *header;  // [lock:mirror, read by any] the file's first bytes
static size_t mapped_bytes TSL_GUARDED_BY(tsl_mirror_lock);           // [lock:mirror]
static char name[MIRROR_NAME_BYTES] TSL_GUARDED_BY(tsl_mirror_lock);  // [lock:mirror]

struct tsl_mirror_table tsl_mirror_tables[TSL_MIRROR_TABLES];
struct tsl_counts tsl_counts TSL_ON_LINE;

static struct tslab_stats_table *file_table(unsigned table) {
  return (struct tslab_stats_table *)(header + 1) + table;
}

static size_t align_chunk(size_t bytes) { return tsl_round_up(bytes, CHUNK_BYTES); }

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) hash = tsl_hash_add(hash, ((const uint8_t *)bytes)[i]);
  return hash;
}

static size_t head_bytes(const struct tsl_mirror_layout *layout) {
  return align_chunk(sizeof *header + layout->table_count * sizeof *layout->tables +
                     layout->field_count * sizeof *layout->fields);
}

static size_t table_bytes(size_t row_bytes, size_t most_rows) {
  return align_chunk(row_bytes * most_rows);
}

static size_t table_bytes_in(const struct tsl_mirror_layout *layout, unsigned table) {
  return table_bytes(layout->tables[table].row_bytes, layout->tables[table].most_rows);
}

static size_t file_bytes(const struct tsl_mirror_layout *layout) {
  size_t bytes = head_bytes(layout);
  for (unsigned i = 0; i < layout->table_count; i++) bytes += table_bytes_in(layout, i);
  return bytes;
}

static void write_tables(const struct tsl_mirror_layout *layout) TSL_REQUIRES(tsl_mirror_lock) {
  size_t at = head_bytes(layout);
  for (unsigned i = 0; i < layout->table_count; i++) {
    *file_table(i) = layout->tables[i];
    file_table(i)->at = at;
    tsl_mirror_tables[i].rows = (uintptr_t)header + at;
    tsl_mirror_tables[i].row_bytes = layout->tables[i].row_bytes;
    tsl_mirror_tables[i].most_rows = layout->tables[i].most_rows;
    tsl_mirror_tables[i].retry_ms = 0;
    tsl_store_relaxed(&tsl_mirror_tables[i].ready, 0);
    at += table_bytes_in(layout, i);
  }
  memcpy(file_table(layout->table_count), layout->fields,
         layout->field_count * sizeof *layout->fields);
}

static uint64_t layout_hash(const struct tsl_mirror_layout *layout) {
  uint64_t hash = TSL_HASH_EMPTY;
  hash = hash_bytes(hash, layout->tables, layout->table_count * sizeof *layout->tables);
  return hash_bytes(hash, layout->fields, layout->field_count * sizeof *layout->fields);
}

// The magic comes last: a file without it is not ready.
static void write_head(const struct tsl_mirror_layout *layout) TSL_REQUIRES(tsl_mirror_lock) {
  uint64_t now_ms = tsl_os_now_ms();
  *header = (struct tslab_stats_header){
      .abi = TSLAB_STATS_ABI,
      .header_bytes = sizeof *header,
      .file_bytes = mapped_bytes,
      .tables_at = sizeof *header,
      .tables = layout->table_count,
      .table_bytes = sizeof *layout->tables,
      .fields_at = sizeof *header + layout->table_count * sizeof *layout->tables,
      .fields = layout->field_count,
      .field_bytes = sizeof *layout->fields,
      .pid = tsl_os_process(),
      .page_bytes = (uint32_t)tsl_os_page_bytes(),
      .start_ticks = tsl_os_process_start(),
      .made_ms = now_ms,
      .told_ms = now_ms,
      .layout_hash = layout_hash(layout),
      .version = TSLAB_VERSION,
  };
  write_tables(layout);
  uint64_t magic;
  memcpy(&magic, TSLAB_STATS_MAGIC, sizeof magic);
  tsl_store_release((uint64_t *)(void *)header->magic, magic);  // pairs: mirror
}

static void tables_forget(void) TSL_REQUIRES(tsl_mirror_lock) {
  for (unsigned i = 0; i < TSL_MIRROR_TABLES; i++)
    tsl_store_relaxed(&tsl_mirror_tables[i].ready, 0);
}

// Unmaps the private memory that the child of a fork has in place of its parent's file
// (tsl_mirror_after_fork).
static void mirror_leave(void) TSL_REQUIRES(tsl_mirror_lock) {
  tables_forget();
  tsl_os_unreserve(header, mapped_bytes);
  header = NULL;
}

static bool open_locked(const struct tsl_mirror_layout *layout) TSL_REQUIRES(tsl_mirror_lock) {
  uint64_t start = tsl_os_process_start();
  if (start == 0) return false;  // a later process with this pid would have the same file name
  if (header != NULL) mirror_leave();
  tsl_format(name, sizeof name, "tslab.%u.%zu", tsl_os_process(), (size_t)start);
  mapped_bytes = file_bytes(layout);
  header = tsl_os_share(name, mapped_bytes);
  if (header == NULL) return false;
  if (!tsl_os_share_more(name, 0, head_bytes(layout))) {
    tsl_os_unshare(name);
    tsl_os_unreserve(header, mapped_bytes);
    header = NULL;
    return false;
  }
  write_head(layout);
  return true;
}

bool tsl_mirror_open(const struct tsl_mirror_layout *layout) {
  tsl_lock_acquire(&tsl_mirror_lock);
  if (mirror_state == NOT_TRIED)
    tsl_store_relaxed(&mirror_state, open_locked(layout) ? OPEN : REFUSED);
  bool is_open = mirror_state == OPEN;
  tsl_lock_release(&tsl_mirror_lock);
  return is_open;
}

bool tsl_mirror_is_open(void) { return tsl_load_relaxed(&mirror_state) == OPEN; }

// A table grows to twice its size, so that many rows take few calls.
static size_t extended_bytes(const struct tsl_mirror_table *table, uint32_t row)
    TSL_REQUIRES(tsl_mirror_lock) {
  size_t wanted = ((size_t)row + 1) * table->row_bytes;
  size_t twice = 2 * (size_t)table->ready * table->row_bytes;
  size_t most = table_bytes(table->row_bytes, table->most_rows);
  size_t end = align_chunk(wanted > twice ? wanted : twice);
  return end < most ? end : most;
}

static void set_full(unsigned number, bool is_full) TSL_REQUIRES(tsl_mirror_lock) {
  tsl_mirror_tables[number].retry_ms = is_full ? tsl_os_now_ms() + RETRY_MS : 0;
  tsl_store_relaxed(&file_table(number)->is_full, is_full);
}

// M2: the table has the rows when they have memory.
static bool extend_locked(unsigned number, uint32_t row) TSL_REQUIRES(tsl_mirror_lock) {
  struct tsl_mirror_table *table = &tsl_mirror_tables[number];
  if (row < table->ready) return true;
  if (row >= table->most_rows) return false;
  if (table->retry_ms != 0 && tsl_os_now_ms() < table->retry_ms) return false;
  size_t end = extended_bytes(table, row), rows = end / table->row_bytes;
  bool is_full = !tsl_os_share_more(name, table->rows - (uintptr_t)header, end);
  set_full(number, is_full);
  if (is_full) return false;
  uint32_t ready = (uint32_t)(rows < table->most_rows ? rows : table->most_rows);
  tsl_store_release(&file_table(number)->rows, ready);  // pairs: mirror
  tsl_store_release(&table->ready, ready);              // pairs: mirror
  return true;
}

static bool enter(enum tsl_mirror_haste haste) TSL_TRY_ACQUIRES(tsl_mirror_lock) {
  if (haste == TSL_MIRROR_PASS) return tsl_lock_try(&tsl_mirror_lock);
  tsl_lock_acquire(&tsl_mirror_lock);
  return true;
}

bool tsl_mirror_extend(unsigned number, uint32_t row, enum tsl_mirror_haste haste) {
  if (!tsl_mirror_is_open() || !enter(haste)) return false;
  bool done = mirror_state == OPEN && extend_locked(number, row);
  tsl_lock_release(&tsl_mirror_lock);
  return done;
}

// Writes at most once a millisecond: all threads share the cache line.
void tsl_mirror_beat(uint64_t now_ms) {
  if (!tsl_mirror_is_open() || tsl_load_relaxed(&header->told_ms) == now_ms) return;
  tsl_store_relaxed(&header->told_ms, now_ms);
}

void tsl_mirror_close(void) {
  tsl_lock_acquire(&tsl_mirror_lock);
  if (mirror_state == OPEN && header->pid == tsl_os_process()) tsl_os_unshare(name);
  tsl_store_relaxed(&mirror_state, REFUSED);
  tables_forget();
  tsl_lock_release(&tsl_mirror_lock);
}

// A signal handler's fork may have interrupted a write to a row: the rows keep their addresses
// until the child makes a file of its own.
void tsl_mirror_after_fork(void) TSL_NOT_ANALYSED {
  tsl_lock_take_over(&tsl_mirror_lock);
  if (header != NULL) tsl_os_share_no_more(header, mapped_bytes);
  tsl_store_relaxed(&mirror_state, NOT_TRIED);
  tables_forget();
}
