/* tslab for C++17: epochs that end with their block, scopes, memory resources, allocators.
 *
 * What an epoch and a scope are stands in tslab.h. Constructors and functions that fail throw
 * std::system_error with the errno value; allocation throws std::bad_alloc, and errno says why. So
 * do the others where no memory is left for the error itself. Destructors throw nothing and report
 * nothing. Everything may be used by any thread, but each object by one thread at a time, unless it
 * says otherwise. */
#pragma once

#include <tslab.h>

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
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

/* A parameter that takes what names an epoch: an epoch, a draining_epoch, an id, default_epoch. It
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

inline void throw_if(int error, const char *what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
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

/* An epoch as std::pmr containers want it. Threads may share one. It has to outlive its containers,
 * not its epoch: once that has ended allocation throws std::bad_alloc, and deallocation works for
 * what outlived a closed epoch. */
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

/* tslab_epoch_options with its size set: all defaults. */
struct epoch_options : tslab_epoch_options {
  epoch_options() noexcept : tslab_epoch_options{} { size = sizeof(tslab_epoch_options); }
};

/* What epoch and draining_epoch have in common. Each owns one epoch, or none after it was moved
 * from: then id() is TSLAB_NO_EPOCH and every use fails with ESTALE. */
class epoch_owner {
 public:
  epoch_owner(const epoch_owner &) = delete;
  epoch_owner &operator=(const epoch_owner &) = delete;

  /* Any thread at any time. */
  tslab_epoch id() const noexcept { return id_; }

  /* The epoch's own memory resource, for any thread. It stays where it is when the owner is moved,
   * and lives as long as the owner, beyond close() and release(). NULL when there is no epoch. */
  memory_resource *resource() const noexcept { return resource_.get(); }

  /* tslab_epoch_close: what outlived the epoch stays valid until it is freed, and the destructor
   * leaves it alone. Throws ESTALE or ECANCELED when the epoch has ended already. */
  tslab_survivors close() {
    tslab_survivors left = tslab_epoch_close(id_);
    detail::throw_if(left.error, "tslab_epoch_close");
    has_ended_ = true;
    return left;
  }

  /* tslab_epoch_release: ends the objects, those that outlived close() as well, without their
   * destructors. Does nothing when the epoch is over. */
  void release() {
    int error = tslab_epoch_release(id_);
    if (error != ESTALE) detail::throw_if(error, "tslab_epoch_release");
    has_ended_ = true;
  }

  /* tslab_epoch_defer: runs `f()` once when the epoch ends, on the thread that ends it, then
   * destroys it. A callable is moved here; one that throws ends the program. Any thread may call.
   * Throws ENOMEM, ESTALE, ECANCELED, and what moving `f` throws; then `f` is never run. */
  template <class F>
  void defer(F &&f) {
    using call = std::decay_t<F>;
    auto kept = keep_call<call>(std::forward<F>(f));
    detail::throw_if(tslab_epoch_defer(id_, run_deferred<call>, kept.get()), "tslab_epoch_defer");
    static_cast<void>(kept.release());
  }

 protected:
  epoch_owner(const char *label, const tslab_epoch_options *options)
      : id_(open(label, options)), resource_(make_resource(id_)) {}
  epoch_owner(epoch_owner &&other) noexcept
      : id_(std::exchange(other.id_, TSLAB_NO_EPOCH)),
        resource_(std::move(other.resource_)),
        has_ended_(std::exchange(other.has_ended_, true)) {}
  ~epoch_owner() = default;

  void swap(epoch_owner &other) noexcept {
    std::swap(id_, other.id_);
    std::swap(resource_, other.resource_);
    std::swap(has_ended_, other.has_ended_);
  }
  bool has_ended() const noexcept { return has_ended_; }

 private:
  static tslab_epoch open(const char *label, const tslab_epoch_options *options) {
    tslab_epoch id = tslab_epoch_open(label, options);
    if (id == TSLAB_NO_EPOCH) detail::throw_if(errno, "tslab_epoch_open");
    return id;
  }

  // In the default epoch: in its own it would be a survivor of every close, and in that of the
  // thread, where plain new puts it, it could end before its owner.
  static unique_ptr<memory_resource> make_resource(tslab_epoch id) try {
    return make<memory_resource>(default_epoch, id);
  } catch (const std::bad_alloc &) {
    tslab_epoch_release(id);
    throw std::system_error(ENOMEM, std::generic_category(), "tslab_epoch_open");
  }

  // In the default epoch for the same reasons.
  template <class Call, class F>
  static unique_ptr<Call> keep_call(F &&f) try {
    return make<Call>(default_epoch, std::forward<F>(f));
  } catch (const std::bad_alloc &) {
    throw std::system_error(ENOMEM, std::generic_category(), "tslab_epoch_defer");
  }

  template <class Call>
  static void run_deferred(void *kept) noexcept {
    unique_ptr<Call> call(static_cast<Call *>(kept));
    (*call)();
  }

  tslab_epoch id_;
  unique_ptr<memory_resource> resource_;
  bool has_ended_ = false;
};

inline epoch_ref::epoch_ref(const epoch_owner &owner) noexcept : id_(owner.id()) {}

/* An epoch that is released when its owner ends. When an exception ends the owner, it is closed
 * instead: what was thrown in a scope of the epoch lies there. To release it nevertheless, catch
 * the exception while the owner lives. */
class epoch : public epoch_owner {
 public:
  /* tslab_epoch_open. Throws EINVAL, ENOMEM, ESTALE, ECANCELED. */
  explicit epoch(const char *label) : epoch_owner(label, nullptr) {}
  epoch(const char *label, const tslab_epoch_options &options) : epoch_owner(label, &options) {}

  epoch(epoch &&other) noexcept = default;
  /* Ends the epoch that was owned here first. */
  epoch &operator=(epoch &&other) noexcept {
    epoch taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~epoch() {
    if (has_ended()) return;
    if (std::uncaught_exceptions() > exceptions_) {
      static_cast<void>(tslab_epoch_close(id()));
    } else {
      static_cast<void>(tslab_epoch_release(id()));
    }
  }

 private:
  int exceptions_ = std::uncaught_exceptions();
};

/* An epoch that is closed when its owner ends: what lives in it stays valid until it is freed. */
class draining_epoch : public epoch_owner {
 public:
  /* tslab_epoch_open. Throws EINVAL, ENOMEM, ESTALE, ECANCELED. */
  explicit draining_epoch(const char *label) : epoch_owner(label, nullptr) {}
  draining_epoch(const char *label, const tslab_epoch_options &options)
      : epoch_owner(label, &options) {}

  draining_epoch(draining_epoch &&other) noexcept = default;
  /* Closes the epoch that was owned here first. */
  draining_epoch &operator=(draining_epoch &&other) noexcept {
    draining_epoch taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~draining_epoch() {
    if (!has_ended()) static_cast<void>(tslab_epoch_close(id()));
  }
};

/* The calling thread's stay in an epoch, to the end of the block. Scopes nest; each is left by the
 * thread that entered it. */
class scope {
 public:
  /* tslab_scope_enter. Throws ESTALE, ECANCELED, ENOMEM, EPERM; then the thread stays where it is.
   */
  explicit scope(epoch_ref epoch) {
    detail::throw_if(tslab_scope_enter(&scope_, epoch.id()), "tslab_scope_enter");
  }
  ~scope() {
    int error = tslab_scope_leave(&scope_);
    assert(error == 0);
    static_cast<void>(error);
  }
  scope(const scope &) = delete;
  scope &operator=(const scope &) = delete;
  static void *operator new(std::size_t) = delete;
  static void *operator new[](std::size_t) = delete;

 private:
  tslab_scope scope_;
};

}  // namespace tslab
