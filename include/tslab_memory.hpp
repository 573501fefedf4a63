/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What lies in an epoch, for C++17: objects, memory resources, allocators. tslab.hpp includes it,
 * and says how errors are told. */
#pragma once

#include <tslab.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tslab {

class epoch_owner;

/* Stands for TSLAB_DEFAULT wherever an epoch is wanted. */
struct default_epoch_t {
  explicit default_epoch_t() = default;
};
inline constexpr default_epoch_t default_epoch{};

/* A parameter that takes what names an epoch: an epoch, an arena, an id, default_epoch. It
 * is the id and nothing more: it keeps no epoch open. */
class epoch_ref {
 public:
  constexpr epoch_ref(default_epoch_t) noexcept : id_(TSLAB_DEFAULT) {}
  constexpr epoch_ref(tslab_epoch id) noexcept : id_(id) {}
  epoch_ref(const epoch_owner &owner) noexcept;
  /* The epoch would be over before it is used. */
  epoch_ref(const epoch_owner &&) = delete;

  constexpr tslab_epoch id() const noexcept { return id_; }

 private:
  tslab_epoch id_;
};

namespace detail {

/* What every block of tslab is aligned to. */
inline constexpr std::size_t malloc_alignment = 16;

class category final : public std::error_category {
 public:
  const char *name() const noexcept override { return "tslab"; }
  std::string message(int error) const override { return tslab_error_text(error); }
  std::error_condition default_error_condition(int error) const noexcept override {
    return {error, std::generic_category()};
  }
};

}  // namespace detail

/* The category of this header's errors: errno values with texts of their own. A code of it equals
 * the condition of the same number: `error.code() == std::errc::operation_canceled`. */
inline const std::error_category &error_category() noexcept {
  // Without a destructor, whose record the first error would allocate in the thread's epoch.
  alignas(detail::category) static unsigned char place[sizeof(detail::category)];
  static const std::error_category *const only = ::new (place) detail::category;
  return *only;
}

namespace detail {

inline void throw_if(int error, const char *what) {
  if (error != 0) throw std::system_error(error, error_category(), what);
}

[[nodiscard]] inline void *allocate(tslab_epoch epoch, std::size_t bytes, std::size_t alignment) {
  void *block = alignment <= malloc_alignment ? tslab_epoch_malloc(epoch, bytes)
                                              : tslab_epoch_aligned_alloc(epoch, alignment, bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

struct free_block {
  void operator()(void *block) const noexcept { tslab_free(block); }
};

// Frees the object of a handle whose making fails.
struct handle_guard {
  tslab_handle id;
  ~handle_guard() { tslab_handle_free(id); }
};

}  // namespace detail

/* Destroys an object that tslab::make made, and frees its memory. Holds nothing. A deleter of a
 * base class comes from one of a derived class where the base has a virtual destructor. */
template <class T>
struct deleter {
  constexpr deleter() noexcept = default;
  template <class U, class = std::enable_if_t<std::is_convertible_v<U *, T *> &&
                                              std::has_virtual_destructor_v<T>>>
  constexpr deleter(const deleter<U> &) noexcept {}

  void operator()(T *object) const noexcept {
    void *block = begin_of(object);
    object->~T();
    tslab_free(block);
  }

 private:
  // A base need not lie where its object begins.
  static void *begin_of(T *object) noexcept {
    if constexpr (std::is_polymorphic_v<T>) {
      return const_cast<void *>(dynamic_cast<const volatile void *>(object));
    } else {
      return const_cast<std::remove_cv_t<T> *>(object);
    }
  }
};

template <class T>
using unique_ptr = std::unique_ptr<T, deleter<T>>;

/* An object in an epoch, from wherever the thread is. The pointer may outlive an epoch that is
 * closed, not one that is released. What T's constructor allocates lies where the thread is. Throws
 * std::bad_alloc, and what T's constructor throws; then nothing is left. */
template <class T, class... Args>
[[nodiscard]] unique_ptr<T> make(epoch_ref epoch, Args &&...args) {
  static_assert(!std::is_array_v<T>, "a std::vector with a tslab::allocator holds arrays");
  using object = std::remove_cv_t<T>;
  std::unique_ptr<void, detail::free_block> memory(
      detail::allocate(epoch.id(), sizeof(T), alignof(T)));
  T *made = ::new (memory.get()) object(std::forward<Args>(args)...);
  static_cast<void>(memory.release());
  return unique_ptr<T>(made);
}

/* An epoch as std::pmr containers want it. Threads may share one. A thread that is in a scope of
 * the epoch allocates as by malloc; any other enters and leaves at each allocation. It has to
 * outlive its containers, not its epoch: once that has ended allocation throws std::bad_alloc, and
 * deallocation works for what outlived a closed epoch. */
class memory_resource final : public std::pmr::memory_resource {
 public:
  explicit memory_resource(epoch_ref epoch) noexcept : id_(epoch.id()) {}

  tslab_epoch id() const noexcept { return id_; }

 private:
  void *do_allocate(std::size_t bytes, std::size_t alignment) override {
    return detail::allocate(id_, bytes, alignment);
  }
  void do_deallocate(void *block, std::size_t, std::size_t) override { tslab_free(block); }

  // Equal for the same epoch only, although each could free the other's blocks: a container that
  // is assigned from another then keeps its lifetime.
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
#if defined(__cpp_rtti)
    auto *same = dynamic_cast<const memory_resource *>(&other);
    return same != nullptr && same->id_ == id_;
#else
    return this == &other;
#endif
  }

  tslab_epoch id_;
};

/* Memory of an epoch for containers that mostly grow, without a call of the library for each piece:
 * cut one behind the other off chunks of the epoch. What is given back serves again when it was cut
 * last; the rest goes back by release(), with the resource or with the epoch. So a container that
 * lives long and keeps replacing its elements belongs on a memory_resource. Survivors, statistics
 * and samples know the chunks, of 1 to 8 KiB or of one piece above 2 KiB, not what is in them. By
 * one thread at a time. It has to outlive its containers, not its epoch. Allocation throws
 * std::bad_alloc, and errno says why. After a release or reset of the epoch release() comes before
 * the next allocation; epoch and arena do that for their own. */
class monotonic_resource final : public std::pmr::memory_resource {
 public:
  explicit monotonic_resource(epoch_ref epoch) noexcept : id_(epoch.id()) {}
  ~monotonic_resource() override { release(); }
  monotonic_resource(const monotonic_resource &) = delete;
  monotonic_resource &operator=(const monotonic_resource &) = delete;

  tslab_epoch id() const noexcept { return id_; }

  /* Ends all that was allocated here, without destructors; the resource can be used again. */
  void release() noexcept {
    bool has_chunks = tslab_handle_get(oldest_) != nullptr;
    for (chunk *each = has_chunks ? newest_ : nullptr; each != nullptr;) {
      chunk *ended = std::exchange(each, each->older);
      if (ended != oldest_.block) tslab_free(ended);
    }
    if (has_chunks) tslab_handle_free(oldest_);
    oldest_ = tslab_handle{};
    newest_ = nullptr;
    next_bytes_ = first_bytes;
    stop();
  }

 private:
  friend class epoch_owner;
  struct alignas(detail::malloc_alignment) chunk {
    chunk *older;
  };

  // Of chunks, with 16 bytes for a handle. The first two fit the first cell of an epoch, the others
  // its later ones.
  static constexpr std::size_t first_bytes = 1024, most_bytes = 8192, handle_bytes = 16;
  static constexpr std::size_t share = 4;  // of a new chunk, that one piece takes at most
  static constexpr std::size_t overhead_bytes = sizeof(chunk) + handle_bytes;

  void *do_allocate(std::size_t bytes, std::size_t alignment) override {
    std::size_t wanted = bytes + (bytes == 0);
    std::size_t room = static_cast<std::size_t>(end_ - next_), gap = gap_before(next_, alignment);
    if (gap > room || wanted > room - gap) return allocate_beyond(wanted, alignment);
    return cut(gap, wanted);
  }
  void do_deallocate(void *block, std::size_t bytes, std::size_t) override {
    char *begin = static_cast<char *>(block);
    if (begin + bytes + (bytes == 0) == next_) next_ = begin;
  }
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    return this == &other;
  }

  static std::size_t gap_before(const char *place, std::size_t alignment) noexcept {
    return (0 - reinterpret_cast<std::uintptr_t>(place)) & (alignment - 1);
  }
  void *cut(std::size_t gap, std::size_t bytes) noexcept {
    char *block = next_ + gap;
    next_ = block + bytes;
    return block;
  }

  void *allocate_beyond(std::size_t bytes, std::size_t alignment) {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 4;
    if (bytes > most || alignment > most) {
      errno = ENOMEM;
      throw std::bad_alloc();
    }
    if (bytes + alignment > most_bytes / share) return allocate_alone(bytes, alignment);
    while (bytes + alignment > next_bytes_ / share) next_bytes_ *= 2;
    chunk *made = chunk_take(next_bytes_);
    made->older = newest_;
    newest_ = made;
    next_ = reinterpret_cast<char *>(made + 1);
    end_ = next_ + (next_bytes_ - overhead_bytes);
    next_bytes_ = next_bytes_ == first_bytes ? 2 * first_bytes : most_bytes;
    return cut(gap_before(next_, alignment), bytes);
  }

  // Behind the newest chunk, which goes on.
  void *allocate_alone(std::size_t bytes, std::size_t alignment) {
    chunk *made = chunk_take(overhead_bytes + bytes + alignment);
    chunk *&place = newest_ == nullptr ? newest_ : newest_->older;
    made->older = place;
    place = made;
    char *begin = reinterpret_cast<char *>(made + 1);
    return begin + gap_before(begin, alignment);
  }

  // The oldest one has a handle, which says whether they have ended.
  chunk *chunk_take(std::size_t bytes) {
    bool is_oldest = newest_ == nullptr;
    if (is_oldest) oldest_ = tslab_handle_alloc(id_, bytes - handle_bytes);
    void *made = is_oldest ? oldest_.block : tslab_epoch_malloc(id_, bytes - handle_bytes);
    if (made == nullptr) throw std::bad_alloc();
    return ::new (made) chunk{};
  }

  // Cuts nothing more off the newest chunk.
  void stop() noexcept {
    next_ = nullptr;
    end_ = nullptr;
  }

  tslab_epoch id_;
  char *next_ = nullptr;
  char *end_ = nullptr;
  std::size_t next_bytes_ = first_bytes;
  chunk *newest_ = nullptr;
  tslab_handle oldest_{};
};

/* An epoch as the standard containers want it, by value: a container may outlive the owner of an
 * epoch that is closed. It keeps its epoch when it is assigned to, a copy gets that of its source,
 * and swap exchanges the epochs with the contents. Threads may share one. */
template <class T>
class allocator {
 public:
  using value_type = T;
  using is_always_equal = std::false_type;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::false_type;
  using propagate_on_container_swap = std::true_type;

  explicit allocator(epoch_ref epoch) noexcept : id_(epoch.id()) {}
  template <class U>
  allocator(const allocator<U> &other) noexcept : id_(other.id()) {}

  tslab_epoch id() const noexcept { return id_; }

  /* Throws std::bad_alloc, std::bad_array_new_length when the size overflows. */
  [[nodiscard]] T *allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw std::bad_array_new_length();
    return static_cast<T *>(detail::allocate(id_, count * sizeof(T), alignof(T)));
  }
  void deallocate(T *block, std::size_t) noexcept { tslab_free(block); }

  template <class U>
  friend bool operator==(const allocator &left, const allocator<U> &right) noexcept {
    return left.id() == right.id();
  }
  template <class U>
  friend bool operator!=(const allocator &left, const allocator<U> &right) noexcept {
    return left.id() != right.id();
  }

 private:
  tslab_epoch id_;
};

}  // namespace tslab
