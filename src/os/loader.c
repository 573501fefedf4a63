#include "os/loader.h"

#include <stdlib.h>

// musl makes what it keeps with an allocator of its own.
#if !defined(__GLIBC__)

void tsl_loader_redirect(const struct tsl_redirect *redirects TSL_UNUSED, size_t count TSL_UNUSED) {
}

#else

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "os/os.h"

#if defined(__x86_64__)
enum { TABLE_SLOT = R_X86_64_JUMP_SLOT, TABLE_WORD = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { TABLE_SLOT = R_AARCH64_JUMP_SLOT, TABLE_WORD = R_AARCH64_GLOB_DAT };
#endif

// How the names of their files begin. Older versions of glibc have a library of threads.
static const char *const libraries[] = {"libc.so", "ld-linux", "libpthread.so", "libstdc++.so"};

struct table {
  const struct tsl_redirect *redirects;
  size_t count;
};

// A library as the loader has laid it in memory.
struct library {
  uintptr_t base;
  uintptr_t sealed, sealed_end;  // whole pages that the loader made read-only
  const ElfW(Sym) * symbols;
  const char *strings;
  const ElfW(Rela) * relocations[2];
  size_t counts[2];
};

static bool is_ours(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
    if (strncmp(name, libraries[i], strlen(libraries[i])) == 0) return true;
  return false;
}

// The loader replaces most offsets of the dynamic section by addresses.
static uintptr_t address_in(const struct library *library, uintptr_t value) {
  return value < library->base ? library->base + value : value;
}

static void read_dynamic(struct library *library, const ElfW(Dyn) * entry) {
  for (; entry->d_tag != DT_NULL; entry++) {
    uintptr_t address = address_in(library, entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_SYMTAB: library->symbols = (const ElfW(Sym) *)address; break;
      case DT_STRTAB: library->strings = (const char *)address; break;
      case DT_RELA: library->relocations[0] = (const ElfW(Rela) *)address; break;
      case DT_RELASZ: library->counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
      case DT_JMPREL: library->relocations[1] = (const ElfW(Rela) *)address; break;
      case DT_PLTRELSZ: library->counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
      default: break;
    }
  }
}

static struct library library_of(const struct dl_phdr_info *info) {
  struct library library = {.base = info->dlpi_addr};
  uintptr_t page = tsl_os_page_bytes();
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t start = library.base + part->p_vaddr;
    if (part->p_type == PT_DYNAMIC) read_dynamic(&library, (const ElfW(Dyn) *)start);
    if (part->p_type != PT_GNU_RELRO) continue;
    library.sealed = start & ~(page - 1);
    library.sealed_end = (start + part->p_memsz) & ~(page - 1);
  }
  return library;
}

static void word_set(const struct library *library,
                     uintptr_t *word,  // NOLINT(readability-non-const-parameter)
                     uintptr_t to) {
  uintptr_t page = tsl_os_page_bytes();
  void *start = (void *)((uintptr_t)word & ~(page - 1));
  bool is_sealed = (uintptr_t)word - library->sealed < library->sealed_end - library->sealed;
  if (is_sealed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return;
  tsl_store_relaxed(word, to);
  if (is_sealed) mprotect(start, page, PROT_READ);
}

static const struct tsl_redirect *redirect_of(const struct table *table, const char *name) {
  for (size_t i = 0; i < table->count; i++)
    if (strcmp(name, table->redirects[i].name) == 0) return &table->redirects[i];
  return NULL;
}

// By name: a table's word may lead to the loader until the first call.
static void redirect_named(const struct library *library, const struct table *table,
                           unsigned list) {
  const ElfW(Rela) *relocation = library->relocations[list];
  if (relocation == NULL) return;
  for (size_t left = library->counts[list]; left != 0; left--, relocation++) {
    unsigned type = (unsigned)ELF64_R_TYPE(relocation->r_info);
    if (type != TABLE_SLOT && type != TABLE_WORD) continue;
    const ElfW(Sym) *symbol = &library->symbols[ELF64_R_SYM(relocation->r_info)];
    const struct tsl_redirect *found = redirect_of(table, library->strings + symbol->st_name);
    if (found == NULL) continue;
    word_set(library, (uintptr_t *)(library->base + relocation->r_offset), found->to);
  }
}

// By address: the loader itself has no table, but words where it notes the process's functions.
static void redirect_noted(const struct library *library, const struct table *table) {
  for (uintptr_t at = library->sealed; at < library->sealed_end; at += sizeof at) {
    for (size_t i = 0; i < table->count; i++)
      if (*(const uintptr_t *)at == table->redirects[i].now)
        word_set(library, (uintptr_t *)at, table->redirects[i].to);
  }
}

static int visit(struct dl_phdr_info *info, size_t bytes TSL_UNUSED, void *context) {
  if (!is_ours(info->dlpi_name)) return 0;
  struct library library = library_of(info);
  redirect_named(&library, context, 0);
  redirect_named(&library, context, 1);
  redirect_noted(&library, context);
  return 0;
}

// The loader calls `visit` under its lock: no two threads change pages at a time.
void tsl_loader_redirect(const struct tsl_redirect *redirects, size_t count) {
  struct table table = {redirects, count};
  int saved = errno;
  dl_iterate_phdr(visit, &table);
  errno = saved;
}

#endif
