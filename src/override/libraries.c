#include "override/libraries.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/standard.h"
#include "alloc/stay.h"
#include "epoch/inspect.h"
#include "os/loader.h"
#include "override/override.h"

typedef void install_cache(void *locale, const void *cache, size_t index);

// std::locale::_Impl::_M_install_cache of libstdc++, where the process has it: gives a locale what
// was found out about its facets at their first use, in an object with a virtual destructor. The
// object is destroyed when the locale has one already.
extern install_cache _ZNSt6locale5_Impl16_M_install_cacheEPKNS_5facetEm __attribute__((weak));

static bool is_outside(void) { return tsl_heap_is_home(tsl_heap_current); }

static void *malloc_apart(size_t bytes) {
  struct tsl_stay stay;
  if (tsl_likely(is_outside())) return tsl_fast_malloc(bytes);
  if (!tsl_stay_begin(&stay, TSLAB_DEFAULT, false)) return NULL;
  void *block = tsl_fast_malloc(bytes);
  tsl_stay_end(&stay);
  return block;
}

static void *calloc_apart(size_t count, size_t bytes) {
  struct tsl_stay stay;
  if (tsl_likely(is_outside())) return tsl_calloc(count, bytes);
  if (!tsl_stay_begin(&stay, TSLAB_DEFAULT, false)) return NULL;
  void *block = tsl_calloc(count, bytes);
  tsl_stay_end(&stay);
  return block;
}

// A block keeps its epoch.
static void *realloc_apart(void *block, size_t bytes) {
  return block == NULL ? malloc_apart(bytes) : tsl_entry_realloc(block, bytes);
}

// A copy of a block that lies in a declared epoch; else the block itself.
static void *copy_apart(void *block) {
  if (tsl_inspect_slot_of(block) == 0) return block;
  size_t bytes = tsl_usable(block);
  void *copy = malloc_apart(bytes);
  return copy == NULL ? block : memcpy(copy, block, bytes);
}

// The copy has copies of all blocks that the object's words lead to. A word behind the object's end
// may lead to a block, too: then one copy is lost.
static void *copy_object_apart(void *object) {
  uintptr_t *words = copy_apart(object);
  if (words == object) return object;
  for (size_t i = 0; i < tsl_usable(object) / sizeof *words; i++) {
    void *word = (void *)words[i];
    if (tslab_epoch_of(word) != TSLAB_NO_EPOCH) words[i] = (uintptr_t)copy_apart(word);
  }
  return words;
}

static void install_cache_apart(void *locale, const void *cache, size_t index) {
  install_cache *install = _ZNSt6locale5_Impl16_M_install_cacheEPKNS_5facetEm;
  const void *copy = copy_object_apart((void *)(uintptr_t)cache);
  install(locale, copy, index);
  if (copy != cache) install(locale, cache, index);
}

void tsl_libraries_part(void) {
  const struct tsl_redirect redirects[] = {
      {"malloc", (uintptr_t)malloc, (uintptr_t)malloc_apart},
      {"calloc", (uintptr_t)calloc, (uintptr_t)calloc_apart},
      {"realloc", (uintptr_t)realloc, (uintptr_t)realloc_apart},
      {"_ZNSt6locale5_Impl16_M_install_cacheEPKNS_5facetEm",
       (uintptr_t)_ZNSt6locale5_Impl16_M_install_cacheEPKNS_5facetEm,
       (uintptr_t)install_cache_apart},
  };
  size_t count = sizeof redirects / sizeof *redirects;
  if (_ZNSt6locale5_Impl16_M_install_cacheEPKNS_5facetEm == NULL) count--;
  tsl_loader_redirect(redirects, count);
}
