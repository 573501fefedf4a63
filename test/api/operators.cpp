// operator new and delete: all 20 forms, the new-handler's loop, and what is thrown.
#include <initializer_list>
#include <new>

#include "blocks.h"

namespace {

constexpr std::align_val_t kWide{256};

void *allocate(int form, size_t size) {
  switch (form) {
    case 0: return ::operator new(size);
    case 1: return ::operator new[](size);
    case 2: return ::operator new(size, std::nothrow);
    case 3: return ::operator new[](size, std::nothrow);
    case 4: return ::operator new(size, kWide);
    case 5: return ::operator new[](size, kWide);
    case 6: return ::operator new(size, kWide, std::nothrow);
    default: return ::operator new[](size, kWide, std::nothrow);
  }
}

constexpr int kPlainForms = 4, kForms = 8;

bool is_nothrow(int form) { return form % 4 >= 2; }

void release_plain(int form, void *block, size_t size) {
  switch (form) {
    case 0: return ::operator delete(block);
    case 1: return ::operator delete[](block);
    case 2: return ::operator delete(block, std::nothrow);
    case 3: return ::operator delete[](block, std::nothrow);
    case 4: return ::operator delete(block, size);
    default: return ::operator delete[](block, size);
  }
}

void release_wide(int form, void *block, size_t size) {
  switch (form) {
    case 0: return ::operator delete(block, kWide);
    case 1: return ::operator delete[](block, kWide);
    case 2: return ::operator delete(block, kWide, std::nothrow);
    case 3: return ::operator delete[](block, kWide, std::nothrow);
    case 4: return ::operator delete(block, size, kWide);
    default: return ::operator delete[](block, size, kWide);
  }
}

constexpr int kReleaseForms = 6;

// Every form with every partner that the standard allows, in whole rounds: a form that does not
// free would leak.
void pairs_test() {
  size_t before = process_resident_bytes();
  for (int round = 0; round < 200; round++) {
    for (int form = 0; form < kForms; form++) {
      for (int partner = 0; partner < kReleaseForms; partner++) {
        size_t size = round % 8 == 7 ? 512 * KIB : static_cast<size_t>(round) * 3;
        void *block = allocate(form, size);
        block_check(block, size);
        memset(block, 1, size);
        if (form >= kPlainForms) CHECK(is_aligned(block, 256));
        if (form < kPlainForms) release_plain(partner, block, size);
        if (form >= kPlainForms) release_wide(partner, block, size);
      }
    }
  }
  CHECK_LE(process_resident_bytes(), before + 32 * MIB);
}

void zero_size_test() {
  for (int form = 0; form < kForms; form++) {
    void *first = allocate(form, 0), *second = allocate(form, 0);
    CHECK(first != nullptr && second != nullptr && first != second);
    if (form < kPlainForms) release_plain(form, first, 0), release_plain(form, second, 0);
    if (form >= kPlainForms) release_wide(form % 4, first, 0), release_wide(form % 4, second, 0);
  }
}

void null_test() {
  for (int form = 0; form < kReleaseForms; form++) {
    release_plain(form, nullptr, 0);
    release_wide(form, nullptr, 0);
  }
}

void every_alignment_test() {
  for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 2) {
    auto value = static_cast<std::align_val_t>(alignment);
    for (size_t size : {size_t{0}, size_t{1}, size_t{100}, alignment, 3 * alignment + 1}) {
      void *block = ::operator new(size, value);
      CHECK_THAT(is_aligned(block, alignment), "alignment %zu, size %zu gave %p", alignment, size,
                 block);
      ::operator delete(block, value);
    }
  }
}

enum class Outcome { kBlock, kNull, kBadAlloc, kOther };

struct StopHandler : std::bad_alloc {};

Outcome outcome_of(int form, size_t size) {
  try {
    void *block = allocate(form, size);
    Outcome outcome = block != nullptr ? Outcome::kBlock : Outcome::kNull;
    if (form < kPlainForms) release_plain(form, block, size);
    if (form >= kPlainForms) release_wide(form % 4, block, size);
    return outcome;
  } catch (const StopHandler &) {
    return Outcome::kOther;
  } catch (const std::bad_alloc &) {
    return Outcome::kBadAlloc;
  }
}

const size_t kImpossible[] = {SIZE_REFUSED_BY_KERNEL, SIZE_IMPOSSIBLE, SIZE_MAX - 4096, SIZE_MAX};

void no_handler_test() {
  for (int form = 0; form < kForms; form++) {
    for (size_t size : kImpossible) {
      Outcome expected = is_nothrow(form) ? Outcome::kNull : Outcome::kBadAlloc;
      CHECK_THAT(outcome_of(form, size) == expected, "form %d, size 0x%zx", form, size);
    }
  }
}

int calls;

void uninstall_at_third_call() {
  if (++calls == 3) std::set_new_handler(nullptr);
}

// The handler is called again and again until it uninstalls itself; nothrow forms call it too.
void uninstalled_handler_test() {
  for (int form = 0; form < kForms; form++) {
    calls = 0;
    std::set_new_handler(uninstall_at_third_call);
    Outcome expected = is_nothrow(form) ? Outcome::kNull : Outcome::kBadAlloc;
    CHECK_THAT(outcome_of(form, SIZE_REFUSED_BY_KERNEL) == expected, "form %d", form);
    CHECK_EQ(calls, 3);
  }
}

void throw_own() {
  calls++;
  throw StopHandler();
}

// What the handler throws reaches the caller as it is; of a nothrow form, as a null pointer.
void throwing_handler_test() {
  for (int form = 0; form < kForms; form++) {
    calls = 0;
    std::set_new_handler(throw_own);
    Outcome expected = is_nothrow(form) ? Outcome::kNull : Outcome::kOther;
    CHECK_THAT(outcome_of(form, SIZE_REFUSED_BY_KERNEL) == expected, "form %d", form);
    CHECK_EQ(calls, 1);
  }
  std::set_new_handler(nullptr);
}

void array_length_test() {
  volatile size_t count = SIZE_MAX / 4;
  bool thrown = false;
  try {
    delete[] new double[count];
  } catch (const std::bad_alloc &) {
    thrown = true;
  }
  CHECK(thrown);
}

}  // namespace

int main() {
  pairs_test();
  zero_size_test();
  null_test();
  every_alignment_test();
  no_handler_test();
  uninstalled_handler_test();
  throwing_handler_test();
  array_length_test();
  return 0;
}
