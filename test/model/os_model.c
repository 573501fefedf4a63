// os_model: a system with 16 MiB, where time stands still.
#include <string.h>
#include <sys/mman.h>

#include "model.h"
#include "os/os.h"
#include "step.h"

enum { REGION_BYTES = 1 << 24 };

struct model_os model_os = {.has_barrier = true, .barrier_works = true};

static void *region;

void *model_region(size_t *bytes) {
  *bytes = REGION_BYTES;
  return region;
}

size_t tsl_os_page_bytes(void) { return 4096; }
size_t tsl_os_reserve_limit_bytes(void) { return REGION_BYTES; }

uintptr_t tsl_os_place(size_t *bytes, unsigned attempt) {
  char *whole = mmap(NULL, 2 * REGION_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED || attempt != 0) return 0;
  uintptr_t end = (uintptr_t)whole + REGION_BYTES;
  *bytes = REGION_BYTES;
  region = (void *)(end & ~(uintptr_t)(REGION_BYTES - 1));
  return (uintptr_t)region;
}
enum tsl_os_mapped tsl_os_map(void *address, size_t bytes) {
  return (void)address, (void)bytes, TSL_OS_MAPPED;
}
enum tsl_os_mapped tsl_os_map_more(void *end, size_t bytes) {
  return (void)end, (void)bytes, TSL_OS_MAPPED;
}

void *tsl_os_reserve(size_t bytes, size_t alignment) { return (void)bytes, (void)alignment, NULL; }
bool tsl_os_unreserve(void *address, size_t bytes) { return (void)address, (void)bytes, true; }
bool tsl_os_commit(void *address, size_t bytes) { return (void)address, (void)bytes, true; }
bool tsl_os_purge(void *address, size_t bytes) {
  if (model_os.purges) memset(address, 0, bytes);
  return model_os.purges;
}
void tsl_os_discard(void *address, size_t bytes) { (void)address, (void)bytes; }
bool tsl_os_guard(void *address, size_t bytes, bool guarded) {
  return (void)address, (void)bytes, (void)guarded, false;
}
bool tsl_os_protect(void *address, size_t bytes, bool is_protected) {
  return (void)address, (void)bytes, (void)is_protected, false;
}
enum tsl_os_moved tsl_os_move(void *from, void *to, size_t bytes) {
  return (void)from, (void)to, (void)bytes, TSL_OS_NOT_MOVED;
}
bool tsl_os_renew(void *address, size_t bytes) { return (void)address, (void)bytes, false; }
void tsl_os_advise_huge(void *address, size_t bytes, bool wanted) {
  (void)address, (void)bytes, (void)wanted;
}
void tsl_os_name(void *address, size_t bytes, const char *name) {
  (void)address, (void)bytes, (void)name;
}
uint64_t tsl_os_now_ms(void) { return 1000; }
uint64_t tsl_os_now_ns(void) { return 1000000000; }
uint64_t tsl_os_used_ns(void) { return 0; }
uint64_t tsl_os_process_used_ns(void) { return 0; }
void tsl_os_sleep_ms(const uint32_t *word, uint64_t ms) { (void)word, (void)ms; }
void tsl_os_wake(const uint32_t *word) { (void)word; }
bool tsl_os_barrier_init(void) { return model_os.has_barrier; }
void tsl_os_barrier(void) {
  if (model_os.barrier_works) model_barrier("barrier");
}
bool tsl_os_advise_use(void *address, size_t bytes, enum tsl_os_use use) {
  return (void)address, (void)bytes, (void)use, false;
}
void *tsl_os_borrow(size_t bytes) { return (void)bytes, NULL; }
uint64_t tsl_os_random(void) { return 0; }
void tsl_os_yield(void) {}
const char *tsl_os_environment(const char *name) { return (void)name, NULL; }
uint32_t tsl_os_process(void) { return 1; }
uint64_t tsl_os_process_start(void) { return 1; }

size_t tsl_os_read_file(const char *path TSL_UNUSED, char *text, size_t bytes TSL_UNUSED) {
  *text = '\0';
  return 0;
}
uint32_t tsl_os_thread(void) { return 1; }
void tsl_os_name_thread(const char *name) { (void)name; }
uint32_t tsl_os_threads(void) { return 1; }
void *tsl_os_share(const char *name, size_t bytes) { return (void)name, (void)bytes, NULL; }
bool tsl_os_share_more(const char *name, size_t offset, size_t bytes) {
  return (void)name, (void)offset, (void)bytes, false;
}
void tsl_os_unshare(const char *name) { (void)name; }
void tsl_os_share_no_more(void *address, size_t bytes) { (void)address, (void)bytes; }
uint32_t *tsl_os_fork_mark(void) { return NULL; }
size_t tsl_os_resident(const void *address, size_t bytes) { return (void)address, (void)bytes, 0; }
