#include "tracked.h"

#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model.h"

enum { PAGE = 4096, MOST_RANGES = 8, MOST_PAGES = 1024, MOST_VERSIONS = 1 << 18 };

struct range {
  uintptr_t start, end;
};

// What a page held at a moment. Most steps change few pages: states share what they have in common.
struct tracked_version {
  uint64_t hash;
  unsigned users;
  struct tracked_version *next;  // among those without users
  unsigned char bytes[PAGE];
};

struct page {
  uintptr_t address;
  struct tracked_version *first;  // at the beginning
  struct tracked_version *now;    // when it was looked at last
};

// Lies in memory of its own, which is not tracked.
struct tracked {
  struct range ranges[MOST_RANGES];
  unsigned range_count;
  size_t page_count;
  size_t version_count;
  struct tracked_version *unused;
  struct page pages[MOST_PAGES];
  struct tracked_version versions[MOST_VERSIONS];
  unsigned char signal_stack[65536];
};

static struct tracked *tracked;

static void ensure(void) {
  if (tracked != NULL) return;
  void *memory = mmap(NULL, sizeof *tracked, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  tracked = memory;
}

void tracked_add(void *start, size_t bytes) {
  ensure();
  if (tracked->range_count == MOST_RANGES) abort();
  uintptr_t from = (uintptr_t)start & ~(uintptr_t)(PAGE - 1);
  uintptr_t end = ((uintptr_t)start + bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
  tracked->ranges[tracked->range_count++] = (struct range){from, end};
}

// The program itself is the first object; the libraries' data does not change meanwhile.
static int add_object(struct dl_phdr_info *info, size_t size, void *nothing) {
  uintptr_t constant_end = 0;
  (void)size, (void)nothing;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type == PT_GNU_RELRO)
      constant_end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
  }
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
    if (part->p_type != PT_LOAD || (part->p_flags & PF_W) == 0) continue;
    if (start < constant_end && constant_end <= end) start = constant_end;
    tracked_add((void *)start, end - start);
  }
  return 1;
}

void tracked_add_program(void) { dl_iterate_phdr(add_object, NULL); }

static uint64_t hash_page(uintptr_t address, const unsigned char *bytes) {
  const uint64_t *words = (const uint64_t *)bytes;
  uint64_t lanes[4] = {address, ~address, address * 3, address * 5};
  for (size_t i = 0; i < PAGE / 8; i += 4) {
    for (size_t lane = 0; lane < 4; lane++) {
      lanes[lane] = (lanes[lane] ^ words[i + lane]) * UINT64_C(0x9E3779B97F4A7C15);
      lanes[lane] ^= lanes[lane] >> 29;
    }
  }
  uint64_t hash = 0;
  for (size_t lane = 0; lane < 4; lane++) {
    hash = (hash ^ lanes[lane]) * UINT64_C(0xBF58476D1CE4E5B9);
    hash ^= hash >> 32;
  }
  return hash;
}

static struct tracked_version *version_unused(void) {
  struct tracked_version *version = tracked->unused;
  if (version != NULL) {
    tracked->unused = version->next;
    return version;
  }
  if (tracked->version_count == MOST_VERSIONS) model_fail("more than %d versions", MOST_VERSIONS);
  return &tracked->versions[tracked->version_count++];
}

static struct tracked_version *version_of(uintptr_t address) {
  struct tracked_version *version = version_unused();
  memcpy(version->bytes, (void *)address, PAGE);
  version->hash = hash_page(address, version->bytes);
  version->users = 1;
  return version;
}

static struct tracked_version *version_share(struct tracked_version *version) {
  version->users++;
  return version;
}

static void version_leave(struct tracked_version *version) {
  if (--version->users != 0) return;
  version->next = tracked->unused;
  tracked->unused = version;
}

static bool is_tracked(uintptr_t address) {
  for (unsigned i = 0; i < tracked->range_count; i++) {
    if (address >= tracked->ranges[i].start && address < tracked->ranges[i].end) return true;
  }
  return false;
}

static void page_add(uintptr_t address) {
  if (tracked->page_count == MOST_PAGES) model_fail("more than %d pages", MOST_PAGES);
  struct page *page = &tracked->pages[tracked->page_count++];
  page->address = address;
  page->first = version_of(address);
  page->now = version_share(page->first);
  if (mprotect((void *)address, PAGE, PROT_READ | PROT_WRITE) != 0) abort();
}

static bool page_is_known(uintptr_t address) {
  for (size_t i = 0; i < tracked->page_count; i++) {
    if (tracked->pages[i].address == address) return true;
  }
  return false;
}

static void on_fault(int number, siginfo_t *info, void *context) {
  (void)number, (void)context;
  uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);
  if (!is_tracked(page) || page_is_known(page)) model_fail("memory fault at %p", info->si_addr);
  page_add(page);
}

void tracked_begin(void) {
  stack_t stack = {.ss_sp = tracked->signal_stack, .ss_size = sizeof tracked->signal_stack};
  struct sigaction action = {.sa_sigaction = on_fault,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  sigaltstack(&stack, NULL);
  sigaction(SIGSEGV, &action, NULL);
  for (unsigned i = 0; i < tracked->range_count; i++) {
    struct range range = tracked->ranges[i];
    if (mprotect((void *)range.start, range.end - range.start, PROT_READ) != 0) abort();
  }
}

static void page_write(struct page *page, struct tracked_version *version) {
  memcpy((void *)page->address, version->bytes, PAGE);
  version_leave(page->now);
  page->now = version_share(version);
}

void tracked_restart(void) {
  for (size_t i = 0; i < tracked->page_count; i++)
    page_write(&tracked->pages[i], tracked->pages[i].first);
}

void tracked_save(struct tracked_state *state) {
  for (size_t i = 0; i < state->pages; i++) version_leave(state->versions[i]);
  if (state->room < tracked->page_count) {
    state->room = tracked->page_count;
    state->versions = realloc(state->versions, state->room * sizeof *state->versions);
    if (state->versions == NULL) abort();
  }
  state->pages = tracked->page_count;
  for (size_t i = 0; i < state->pages; i++)
    state->versions[i] = version_share(tracked->pages[i].now);
}

// Pages that joined later were then as they were at the beginning.
void tracked_restore(const struct tracked_state *state) {
  for (size_t i = 0; i < tracked->page_count; i++) {
    struct page *page = &tracked->pages[i];
    struct tracked_version *version = i < state->pages ? state->versions[i] : page->first;
    if (page->now != version) page_write(page, version);
  }
}

static void page_look(struct page *page) {
  if (memcmp(page->now->bytes, (const void *)page->address, PAGE) == 0) return;
  version_leave(page->now);
  page->now = version_of(page->address);
}

// Independent of the pages' order, and of pages that are as they were.
uint64_t tracked_hash(void) {
  uint64_t hash = 0;
  for (size_t i = 0; i < tracked->page_count; i++) {
    struct page *page = &tracked->pages[i];
    page_look(page);
    hash ^= page->first->hash ^ page->now->hash;
  }
  return hash;
}

uintptr_t tracked_lowest(uintptr_t start, uintptr_t end) {
  for (size_t i = 0; i < tracked->page_count; i++) {
    uintptr_t address = tracked->pages[i].address;
    if (address >= start && address < end) end = address;
  }
  return end;
}

size_t tracked_pages(void) { return tracked->page_count; }
