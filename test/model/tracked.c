#include "tracked.h"

#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model.h"

enum { PAGE = 4096, MOST_RANGES = 8, MOST_PAGES = 1024 };

struct range {
  uintptr_t start, end;
};

struct page {
  uintptr_t address;
  uint64_t first_hash, hashed_hash;
  unsigned char first[PAGE];   // contents at the beginning
  unsigned char hashed[PAGE];  // contents when they were hashed last; most steps change few pages
};

// Lies in memory of its own, which is not tracked.
struct tracked {
  struct range ranges[MOST_RANGES];
  unsigned range_count;
  size_t page_count;
  struct page pages[MOST_PAGES];
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
  memcpy(page->first, (void *)address, PAGE);
  memcpy(page->hashed, page->first, PAGE);
  page->first_hash = page->hashed_hash = hash_page(address, page->first);
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

void tracked_restart(void) {
  for (size_t i = 0; i < tracked->page_count; i++)
    memcpy((void *)tracked->pages[i].address, tracked->pages[i].first, PAGE);
}

void tracked_save(struct tracked_state *state) {
  if (state->room < tracked->page_count) {
    state->room = tracked->page_count;
    state->bytes = realloc(state->bytes, state->room * PAGE);
    if (state->bytes == NULL) abort();
  }
  state->pages = tracked->page_count;
  for (size_t i = 0; i < state->pages; i++)
    memcpy(state->bytes + i * PAGE, (void *)tracked->pages[i].address, PAGE);
}

// Pages that joined later were then as they were at the beginning.
void tracked_restore(const struct tracked_state *state) {
  for (size_t i = 0; i < tracked->page_count; i++) {
    const unsigned char *from =
        i < state->pages ? state->bytes + i * PAGE : tracked->pages[i].first;
    memcpy((void *)tracked->pages[i].address, from, PAGE);
  }
}

static uint64_t page_hash(struct page *page) {
  const void *bytes = (const void *)page->address;
  if (memcmp(page->hashed, bytes, PAGE) != 0) {
    memcpy(page->hashed, bytes, PAGE);
    page->hashed_hash = hash_page(page->address, page->hashed);
  }
  return page->hashed_hash;
}

// Independent of the pages' order, and of pages that are as they were.
uint64_t tracked_hash(void) {
  uint64_t hash = 0;
  for (size_t i = 0; i < tracked->page_count; i++) {
    struct page *page = &tracked->pages[i];
    hash ^= page->first_hash ^ page_hash(page);
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
