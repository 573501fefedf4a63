#include "os/resume.h"

#if defined(__x86_64__) && TSL_HAS_UNWINDER
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
  MOST_CALL_BYTES = 7,
  CALL_NEAR = 0xe8,  // and four bytes of a distance
  CALL_NEAR_BYTES = 5,
  CALL_INDIRECT = 0xff,  // and a byte whose middle three bits are 2, and what that one wants
  CALL_KIND_MASK = 0x38,
  CALL_KIND = 0x10,
};

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CALL.
static bool is_call(const unsigned char *end) {
  if (end[-CALL_NEAR_BYTES] == CALL_NEAR) return true;
  for (int bytes = 2; bytes <= MOST_CALL_BYTES; bytes++) {
    bool is_kind = (end[1 - bytes] & CALL_KIND_MASK) == CALL_KIND;
    if (end[-bytes] == CALL_INDIRECT && is_kind) return true;
  }
  return false;
}

// The system reads: an address that is none is an error, not a fault.
static bool read_code(uintptr_t address,
                      unsigned char *into,  // NOLINT(readability-non-const-parameter)
                      size_t bytes) {
  struct iovec here = {into, bytes}, there = {(void *)address, bytes};
  int saved = errno;
  ssize_t found = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  errno = saved;
  return found == (ssize_t)bytes;
}

bool tsl_resume_is_behind_call(uintptr_t address) {
  unsigned char code[MOST_CALL_BYTES];
  return read_code(address - sizeof code, code, sizeof code) && is_call(code + sizeof code);
}

bool tsl_resume_is_return(uintptr_t address, uintptr_t *bytes) {
  static const unsigned char add_to_rsp[] = {0x48, 0x83, 0xc4};
  enum { RETURN = 0xc3, AMOUNT_AT = sizeof add_to_rsp, RETURN_AT };
  unsigned char code[RETURN_AT + 1];
  if (!read_code(address, code, sizeof code)) return false;
  *bytes = code[AMOUNT_AT];
  bool is_positive = code[AMOUNT_AT] <= INT8_MAX;
  return is_positive && code[RETURN_AT] == RETURN &&
         memcmp(code, add_to_rsp, sizeof add_to_rsp) == 0;
}

static_assert(offsetof(struct tsl_resume, call) == 0, "below");
static_assert(offsetof(struct tsl_resume, stack) == 8, "below");
static_assert(offsetof(struct tsl_resume, frame) == 16, "below");

// While it calls the unwinder, rbx is `from`. Its table (DWARF 5, section 6.4.2) says in
// expressions (section 2.5) that its caller's stack pointer is at rbx + 8, the return address at
// rbx and the frame pointer at rbx + 16: so the unwinder takes `from` for the caller.
__asm__(
    ".pushsection .text\n"
    ".globl tsl_resume_backtrace\n"
    ".hidden tsl_resume_backtrace\n"
    ".type tsl_resume_backtrace, @function\n"
    "tsl_resume_backtrace:\n"
    ".cfi_startproc\n"
    "push %rbx\n"
    "mov %rdi, %rbx\n"
    "mov %rsi, %rdi\n"
    "mov %rdx, %rsi\n"
    ".cfi_escape 0x0f, 3, 0x73, 8, 0x06\n"
    ".cfi_escape 0x10, 16, 2, 0x73, 0\n"
    ".cfi_escape 0x10, 6, 2, 0x73, 16\n"
    "call _Unwind_Backtrace@PLT\n"
    "pop %rbx\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size tsl_resume_backtrace, . - tsl_resume_backtrace\n"
    ".popsection\n");
#else
bool tsl_resume_is_behind_call(uintptr_t address TSL_UNUSED) { return false; }

bool tsl_resume_is_return(uintptr_t address TSL_UNUSED, uintptr_t *bytes TSL_UNUSED) {
  return false;
}

int tsl_resume_backtrace(const struct tsl_resume *from TSL_UNUSED, void *walk TSL_UNUSED,
                         void *argument TSL_UNUSED) {
  return 0;
}
#endif
