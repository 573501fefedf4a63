#include "os/resume.h"

#include <string.h>
#include <sys/mman.h>

#include "os/callers.h"
#include "test.h"

enum { MOST = 32, PAGE_BYTES = 1 << 12, CODE_AT = 64 };

static uintptr_t walked[MOST], unwound[MOST], recalled[MOST];
static unsigned walked_depth, unwound_depth, recalled_depth;

TSL_NOINLINE static void look(void) {
  walked_depth = tsl_callers_walk(__builtin_frame_address(0), walked, MOST);
  recalled_depth = tsl_callers_recall(__builtin_frame_address(0), recalled, MOST);
  unwound_depth = tsl_callers_unwind(1, unwound, MOST);
}

// From the same place.
#define TWICE(call) \
  for (volatile unsigned i_ = 0; i_ < 2; i_++) call

static void check_recalled(void) {
  CHECK_EQ(recalled_depth, unwound_depth);
  CHECK(memcmp(recalled, unwound, recalled_depth * sizeof *unwound) == 0);
}

#if defined(__x86_64__)
enum { RESUMES = TSL_HAS_UNWINDER };
#else
enum { RESUMES = 0 };
#endif

// push rbp; mov rbp, rsp; call rdi; pop rbp; ret: what runtimes generate, without unwind tables.
static const unsigned char generated[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
// sub rsp, 24; call rdi; add rsp, 24; ret: no frame pointer, and it returns at once.
static const unsigned char returning[] = {0x48, 0x83, 0xec, 24,   0x66, 0x90, 0xff,
                                          0xd7, 0x48, 0x83, 0xc4, 24,   0xc3};
// push rbp; mov rbp, rsi; call rdi; pop rbp; ret: the second argument in place of a frame pointer.
static const unsigned char misleading[] = {0x55, 0x48, 0x89, 0xf5, 0xff, 0xd7, 0x5d, 0xc3};
enum { CALL_ENDS = 6, RETURNING_CALL_ENDS = 8 };

typedef void code_type(void (*called)(void), const uintptr_t *frame);

// Behind bytes that can be read, as most code is.
static code_type *code_of(const unsigned char *bytes, size_t count) {
  char *code = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(code != MAP_FAILED);
  memcpy(code + CODE_AT, bytes, count);
  CHECK_EQ(mprotect(code, PAGE_BYTES, PROT_READ | PROT_EXEC), 0);
  code += CODE_AT;
  code_type *function;
  memcpy(&function, &code, sizeof code);
  return function;
}

static code_type *inner_code;

static void call_inner(void) { inner_code(look, NULL); }

TSL_NOINLINE static void call_outer(code_type *code) {
  code(call_inner, NULL);
  walked_depth += 0;
}

// The test has frame pointers: the walk sees what the unwinder should.
static void generated_code_does_not_end_a_stack(void) {
  inner_code = code_of(generated, sizeof generated);
  code_type *outer_code = code_of(generated, sizeof generated);
  TWICE(call_outer(outer_code));
  CHECK_GE(walked_depth, 5);
  CHECK_GE(unwound_depth, walked_depth);
  CHECK(memcmp(walked, unwound, walked_depth * sizeof *walked) == 0);
  CHECK_EQ(unwound[0], (uintptr_t)inner_code + CALL_ENDS);
  CHECK_EQ(unwound[2], (uintptr_t)outer_code + CALL_ENDS);
  check_recalled();
}

TSL_NOINLINE static void call_returning(code_type *code) {
  code(look, NULL);
  walked_depth += 0;
}

// The walk misses the generated code's caller, whose frame pointer that code left alone.
static void code_that_returns_at_once_needs_no_frame_pointer(void) {
  code_type *code = code_of(returning, sizeof returning);
  TWICE(call_returning(code));
  CHECK_GE(walked_depth, 3);
  CHECK_GE(unwound_depth, walked_depth + 1);
  CHECK_EQ(unwound[0], (uintptr_t)code + RETURNING_CALL_ENDS);
  CHECK_EQ(walked[0], unwound[0]);
  uintptr_t caller = (uintptr_t)call_returning;
  CHECK(unwound[1] > caller && unwound[1] < caller + 128);
  CHECK(memcmp(walked + 1, unwound + 2, (walked_depth - 1) * sizeof *walked) == 0);
  check_recalled();
}

static const uintptr_t *misleading_frame;

TSL_NOINLINE static void call_misleading(code_type *code) {
  code(look, misleading_frame);
  walked_depth += 0;
}

// Its stack ends there, as far as anybody knows.
static void where_frame_pointers_mislead_a_stack_ends(void) {
  code_type *code = code_of(misleading, sizeof misleading);
  uintptr_t here[8] = {0};
  uintptr_t behind_call = (uintptr_t)code + CALL_ENDS;
  const uintptr_t frames[][2] = {{0, 0},
                                 {0, behind_call},
                                 {(uintptr_t)(here + 4), behind_call},
                                 {UINTPTR_MAX - 7, behind_call},
                                 {0, (uintptr_t)code + 4},
                                 {0, UINTPTR_MAX},
                                 {0, 0x7fffffffffff}};
  for (unsigned i = 0; i < sizeof frames / sizeof *frames; i++) {
    memcpy(here, frames[i], sizeof frames[i]);
    misleading_frame = here;
    call_misleading(code);
    CHECK_EQ(unwound_depth, 1);
    CHECK_EQ(unwound[0], behind_call);
  }
  const uintptr_t elsewhere[] = {0, 8, UINTPTR_MAX - 15, (uintptr_t)here - 8192};
  for (unsigned i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
    misleading_frame = (const uintptr_t *)elsewhere[i];
    call_misleading(code);
    CHECK_EQ(unwound_depth, 1);
  }
}

// A return address that is one, in a function whose table asks for the frame pointer: the unwinder
// reads where that points to.
static void wrong_frame_pointers_are_not_read_at(void) {
  code_type *code = code_of(misleading, sizeof misleading);
  look();
  uintptr_t here[8] = {8, unwound[0]};
  const uintptr_t wrong[] = {8, UINTPTR_MAX - 15, (uintptr_t)code};
  for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    here[0] = wrong[i];
    misleading_frame = here;
    call_misleading(code);
    CHECK_GE(unwound_depth, 1);
    CHECK_EQ(unwound[0], (uintptr_t)code + CALL_ENDS);
  }
}

// Memory that ends with these bytes; what is behind it cannot be read.
static uintptr_t end_of(const unsigned char *bytes, size_t count) {
  char *code =
      mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(code != MAP_FAILED);
  CHECK_EQ(mprotect(code + PAGE_BYTES, PAGE_BYTES, PROT_NONE), 0);
  memcpy(code + PAGE_BYTES - count, bytes, count);
  return (uintptr_t)(code + PAGE_BYTES);
}

static void calls_are_known_by_their_bytes(void) {
  static const unsigned char calls[][7] = {
      {0x90, 0x90, 0xe8, 1, 2, 3, 4},              // call near
      {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd7},  // call rdi
      {0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd3},  // call r11
      {0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 8},     // call [rax + 8]
      {0x90, 0xff, 0x15, 1, 2, 3, 4},              // call [rip + ...]
      {0xff, 0x94, 0x24, 1, 2, 3, 4},              // call [rsp + ...]
  };
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
    CHECK(tsl_resume_is_behind_call(end_of(calls[i], sizeof *calls)));
  static const unsigned char others[][7] = {
      {0}, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe7}, {0xe8, 1, 2, 3, 4, 5, 6}};
  for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
    CHECK(!tsl_resume_is_behind_call(end_of(others[i], sizeof *others)));
  CHECK(!tsl_resume_is_behind_call(0));
  CHECK(!tsl_resume_is_behind_call(3));
  CHECK(!tsl_resume_is_behind_call(UINTPTR_MAX));
}

static void returns_are_known_by_their_bytes(void) {
  uintptr_t bytes;
  CHECK(!tsl_resume_is_return(1, &bytes));
  static const unsigned char codes[][5] = {
      {0x48, 0x83, 0xc4, 8, 0xc3}, {0x48, 0x83, 0xc4, 0xf8, 0xc3}, {0x48, 0x83, 0xc4, 8, 0x90}};
  uintptr_t end = end_of(codes[0], sizeof *codes);
  CHECK(tsl_resume_is_return(end - sizeof *codes, &bytes));
  CHECK_EQ(bytes, 8);
  CHECK(!tsl_resume_is_return(end - sizeof *codes + 1, &bytes));
  for (unsigned i = 1; i < sizeof codes / sizeof *codes; i++)
    CHECK(!tsl_resume_is_return(end_of(codes[i], sizeof *codes) - sizeof *codes, &bytes));
}

static void nothing_is_resumed_here(void) {
  uintptr_t bytes;
  look();
  CHECK(!tsl_resume_is_behind_call(unwound[0]));
  CHECK(!tsl_resume_is_return((uintptr_t)returning + RETURNING_CALL_ENDS, &bytes));
}

int main(void) {
  if (!RESUMES) {
    RUN(nothing_is_resumed_here);
    return test_status();
  }
  RUN(calls_are_known_by_their_bytes);
  RUN(returns_are_known_by_their_bytes);
  RUN(generated_code_does_not_end_a_stack);
  RUN(code_that_returns_at_once_needs_no_frame_pointer);
  RUN(where_frame_pointers_mislead_a_stack_ends);
  RUN(wrong_frame_pointers_are_not_read_at);
  return test_status();
}
