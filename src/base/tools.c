#include "base/tools.h"

extern void __asan_poison_memory_region(const volatile void *start, size_t bytes)
    __attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *start, size_t bytes)
    __attribute__((weak));

// Memcheck's requests: 'M', 'C', and a number.
enum { MAKE_NOACCESS = 0x4d430000, MAKE_DEFINED = 0x4d430002, REQUEST_WORDS = 6 };

bool tsl_tools_watch;
static bool has_memcheck;  // [const]

// Valgrind knows the instructions, which change nothing elsewhere. It answers other than 0.
static uint64_t tools_request(uint64_t code, uintptr_t start, size_t bytes) {
  const volatile uint64_t words[REQUEST_WORDS] = {code, start, bytes};
#if defined(__x86_64__)
  uint64_t answer = 0;
  __asm__ volatile(
      "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(words)
      : "cc", "memory");
  return answer;
#elif defined(__aarch64__)
  register uint64_t answer __asm__("x3") = 0;
  register const volatile uint64_t *asked __asm__("x4") = words;
  __asm__ volatile(
      "ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\t"
      "ror x12, x12, #61\n\torr x10, x10, x10"
      : "+r"(answer)
      : "r"(asked)
      : "cc", "memory");
  return answer;
#else
  (void)words;
  return 0;
#endif
}

// The request that asks whether memcheck is there changes nothing: the word is defined.
void tsl_tools_init(void) {
  static uint64_t word;
  if (TSL_SECURE) return;
  has_memcheck = tools_request(MAKE_DEFINED, (uintptr_t)&word, sizeof word) != 0;
  tsl_tools_watch = has_memcheck || __asan_poison_memory_region != NULL;
}

void tsl_tools_tell(uintptr_t start, size_t bytes, bool ends) {
  if (has_memcheck) tools_request(ends ? MAKE_NOACCESS : MAKE_DEFINED, start, bytes);
  if (__asan_poison_memory_region == NULL) return;
  if (ends) __asan_poison_memory_region((const void *)start, bytes);
  if (!ends) __asan_unpoison_memory_region((const void *)start, bytes);
}
