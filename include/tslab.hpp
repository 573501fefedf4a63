/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tslab for C++17: epochs and arenas that end with their block, scopes, memory resources,
 * allocators, handles, rotations, statistics, walks.
 *
 * What an epoch and a scope are stands in tslab.h. Constructors and functions that fail throw
 * std::system_error with a code of tslab::error_category(); allocation throws std::bad_alloc, and
 * errno says why. So do the others where no memory is left for the error itself. Destructors throw
 * nothing, and report nothing but misuse of a scope. Everything may be used by any thread, but each
 * object by one thread at a time, unless it says otherwise. */
#pragma once

#include <tslab_memory.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tslab {

/* tslab_captures_malloc: whether scopes hold what malloc, new and any library allocate. */
inline bool captures_malloc() noexcept { return tslab_captures_malloc(); }

/* tslab_epoch_keep: the end of the epoch spares the block. Throws EFAULT, ECANCELED, ENOMEM. Any
 * thread. */
inline void keep(const void *block) {
  detail::throw_if(tslab_epoch_keep(block), "tslab_epoch_keep");
}

/* tslab_epoch_options with its size set: all defaults. */
struct epoch_options : tslab_epoch_options {
  epoch_options() noexcept : tslab_epoch_options{} { size = sizeof(tslab_epoch_options); }
};

/* A call that defer() of an epoch registered. A copy names the same call, a default one none. */
class deferred {
 public:
  constexpr deferred() noexcept = default;

  /* tslab_deferred_cancel: true for one call; the callable is destroyed then, and never runs. Any
   * thread. */
  bool cancel() noexcept {
    if (!tslab_deferred_cancel(id_)) return false;
    destroy_(kept_);
    return true;
  }

 private:
  friend class epoch_owner;
  deferred(tslab_deferred id, void *kept, void (*destroy)(void *)) noexcept
      : id_(id), kept_(kept), destroy_(destroy) {}

  tslab_deferred id_{};
  void *kept_ = nullptr;
  void (*destroy_)(void *) = nullptr;
};

/* What epoch and arena have in common. Each owns one epoch, or none after it was moved
 * from: then id() is TSLAB_NO_EPOCH and every use fails with ESTALE. */
class epoch_owner {
 public:
  epoch_owner(const epoch_owner &) = delete;
  epoch_owner &operator=(const epoch_owner &) = delete;

  /* Any thread at any time. */
  tslab_epoch id() const noexcept { return id_; }

  /* The epoch's own memory resource, for any thread. It stays where it is when the owner is moved,
   * and lives as long as the owner, beyond close() and release(). NULL when there is no epoch. The
   * first call makes it; a tslab::memory_resource on the stack needs no allocation. Throws
   * std::bad_alloc. */
  memory_resource *resource() const {
    memory_resource *made = resource_.load(std::memory_order_acquire);
    return made != nullptr || id_ == TSLAB_NO_EPOCH ? made : make_resource();
  }

  /* The epoch's own resource for what mostly grows: for one thread at a time. It lives as long as
   * the owner, and stays where it is when the owner is moved. What lies in it ends with the owner,
   * also where the owner closes the epoch then. NULL when there is no epoch. The first call makes
   * it; a tslab::monotonic_resource on the stack needs no allocation. Throws std::bad_alloc. */
  monotonic_resource *monotonic() {
    if (monotonic_ == nullptr && id_ != TSLAB_NO_EPOCH)
      monotonic_ = make<monotonic_resource>(default_epoch, id_);
    return monotonic_.get();
  }

  /* tslab_epoch_set_limits. Throws ESTALE, ECANCELED. Any thread. */
  void set_limits(std::size_t soft_bytes, std::size_t hard_bytes) {
    detail::throw_if(tslab_epoch_set_limits(id_, soft_bytes, hard_bytes), "tslab_epoch_set_limits");
  }

  /* tslab_epoch_set_user, tslab_epoch_get_user. Throws ESTALE; NULL once the epoch is over. Any
   * thread. */
  void set_user(void *user) {
    detail::throw_if(tslab_epoch_set_user(id_, user), "tslab_epoch_set_user");
  }
  void *user() const noexcept { return tslab_epoch_get_user(id_); }

  /* tslab_epoch_on_over: the epoch may be over long after its owner. `call` must not throw. Throws
   * ESTALE. */
  void on_over(void (*call)(tslab_epoch, void *), void *context) {
    detail::throw_if(tslab_epoch_on_over(id_, call, context), "tslab_epoch_on_over");
  }

  /* tslab_epoch_close: what outlived the epoch stays valid until it is freed, and the destructor
   * leaves it alone. Throws ESTALE or ECANCELED when the epoch has ended already. */
  tslab_survivors close() {
    tslab_survivors left = tslab_epoch_close(id_);
    detail::throw_if(left.error, "tslab_epoch_close");
    if (monotonic_ != nullptr) monotonic_->stop();
    has_ended_ = true;
    return left;
  }

  /* tslab_epoch_release: ends the objects, those that outlived close() as well, without their
   * destructors. Does nothing when the epoch is over. */
  void release() {
    int error = tslab_epoch_release(id_);
    if (error != ESTALE) detail::throw_if(error, "tslab_epoch_release");
    if (monotonic_ != nullptr) monotonic_->release();
    has_ended_ = true;
  }

  /* tslab_epoch_reset: ends the objects, without their destructors, and the epoch stays open.
   * Throws ESTALE, ECANCELED, EBUSY (another thread is inside), ENOTSUP (it shares its label's
   * memory; an arena never does). */
  void reset() {
    detail::throw_if(tslab_epoch_reset(id_), "tslab_epoch_reset");
    if (monotonic_ != nullptr) monotonic_->release();
  }

  /* tslab_deferred_add: runs `f()` once when the epoch ends, on the thread that ends it, then
   * destroys it. A callable is moved here; one that throws ends the program. What is returned can
   * cancel it. Any thread may call. Throws ENOMEM, ESTALE, ECANCELED, and what moving `f` throws;
   * then `f` is never run. */
  template <class F>
  deferred defer(F &&f) {
    using call = std::decay_t<F>;
    auto kept = keep_call<call>(std::forward<F>(f));
    tslab_deferred id = tslab_deferred_add(id_, run_deferred<call>, kept.get());
    if (id.number == 0) detail::throw_if(errno, "tslab_deferred_add");
    return deferred(id, kept.release(), destroy_deferred<call>);
  }

 protected:
  epoch_owner(const char *label, const tslab_epoch_options *options) : id_(open(label, options)) {}
  epoch_owner(epoch_owner &&other) noexcept
      : id_(std::exchange(other.id_, TSLAB_NO_EPOCH)),
        resource_(other.resource_.exchange(nullptr, std::memory_order_acq_rel)),
        monotonic_(std::move(other.monotonic_)),
        has_ended_(std::exchange(other.has_ended_, true)) {}
  ~epoch_owner() {
    memory_resource *made = resource_.load(std::memory_order_acquire);
    if (made != nullptr) deleter<memory_resource>()(made);
  }

  void swap(epoch_owner &other) noexcept {
    std::swap(id_, other.id_);
    resource_ = other.resource_.exchange(resource_, std::memory_order_acq_rel);
    monotonic_.swap(other.monotonic_);
    std::swap(has_ended_, other.has_ended_);
  }
  bool has_ended() const noexcept { return has_ended_; }

  // Before a close: what no container has any more would survive it.
  void monotonic_end() noexcept { monotonic_.reset(); }

 private:
  static tslab_epoch open(const char *label, const tslab_epoch_options *options) {
    tslab_epoch id = tslab_epoch_open(label, options);
    if (id == TSLAB_NO_EPOCH) detail::throw_if(errno, "tslab_epoch_open");
    return id;
  }

  // In the default epoch: in its own it would be a survivor of every close, and in that of the
  // thread, where plain new puts it, it could end before its owner. Of two threads the first one's
  // is kept.
  memory_resource *make_resource() const {
    memory_resource *first = nullptr;
    auto made = make<memory_resource>(default_epoch, id_);
    if (!resource_.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel))
      return first;
    return made.release();
  }

  // In the default epoch for the same reasons.
  template <class Call, class F>
  static unique_ptr<Call> keep_call(F &&f) try {
    return make<Call>(default_epoch, std::forward<F>(f));
  } catch (const std::bad_alloc &) {
    throw std::system_error(ENOMEM, error_category(), "tslab_deferred_add");
  }

  template <class Call>
  static void run_deferred(void *kept) noexcept {
    unique_ptr<Call> call(static_cast<Call *>(kept));
    (*call)();
  }
  template <class Call>
  static void destroy_deferred(void *kept) noexcept {
    unique_ptr<Call>(static_cast<Call *>(kept)).reset();
  }

  tslab_epoch id_;
  mutable std::atomic<memory_resource *> resource_{nullptr};
  unique_ptr<monotonic_resource> monotonic_;
  bool has_ended_ = false;
};

inline epoch_ref::epoch_ref(const epoch_owner &owner) noexcept : id_(owner.id()) {}

/* An epoch that is closed when its owner ends: what lives in it stays valid until it is freed. */
class epoch : public epoch_owner {
 public:
  /* tslab_epoch_open. Throws EINVAL, ENOMEM, ESTALE, ECANCELED. */
  explicit epoch(const char *label) : epoch_owner(label, nullptr) {}
  epoch(const char *label, const tslab_epoch_options &options) : epoch_owner(label, &options) {}

  epoch(epoch &&other) noexcept = default;
  /* Closes the epoch that was owned here first. */
  epoch &operator=(epoch &&other) noexcept {
    epoch taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~epoch() {
    monotonic_end();
    if (!has_ended()) static_cast<void>(tslab_epoch_close(id()));
  }
};

/* An epoch that is released when its owner ends: every object in it ends then, without its
 * destructor unless make() made it. For work that keeps nothing, what libraries keep included
 * (tslab_epoch_release). When an exception ends the owner, the epoch is closed instead: what an
 * exception holds lies in the epoch, when it was thrown in a scope there. To release it
 * nevertheless, catch the exception while the owner lives. */
class arena : public epoch_owner {
 public:
  /* tslab_epoch_open. Throws EINVAL, ENOMEM, ESTALE, ECANCELED. */
  explicit arena(const char *label) : arena(label, epoch_options()) {}
  /* Its memory is its own: TSLAB_PLACE_SHARED throws EINVAL. */
  arena(const char *label, tslab_epoch_options options) : epoch_owner(label, own(options)) {}

  arena(arena &&other) noexcept = default;
  /* Ends the epoch that was owned here first. */
  arena &operator=(arena &&other) noexcept {
    arena taken(std::move(other));
    swap(taken);
    return *this;
  }
  /* An object that ends with the arena: by a close, release or reset of it, the one made last
   * first, its destructor runs on the thread that ends the arena. An object without a destructor is
   * memory of the arena and no more, so that making it is one allocation; a close leaves it alone.
   * Any thread. Throws std::bad_alloc, ESTALE or ECANCELED when the arena ends meanwhile, and what
   * T's constructor throws; then nothing is left. */
  template <class T, class... Args>
  T &make(Args &&...args) {
    unique_ptr<T> made = tslab::make<T>(id(), std::forward<Args>(args)...);
    if constexpr (!std::is_trivially_destructible_v<T>) {
      void *object = const_cast<std::remove_cv_t<T> *>(made.get());
      detail::throw_if(tslab_epoch_defer(id(), destroy<T>, object), "tslab_epoch_defer");
    }
    return *made.release();
  }

  ~arena() {
    if (has_ended()) return;
    if (std::uncaught_exceptions() > exceptions_) {
      monotonic_end();
      static_cast<void>(tslab_epoch_close(id()));
    } else {
      static_cast<void>(tslab_epoch_release(id()));
    }
  }

 private:
  // Frees it, too, because a close gives nothing else back.
  template <class T>
  static void destroy(void *object) noexcept {
    deleter<T>()(static_cast<T *>(object));
  }

  static const tslab_epoch_options *own(tslab_epoch_options &options) {
    if (options.size < sizeof options || options.place == TSLAB_PLACE_SHARED)
      detail::throw_if(EINVAL, "tslab_epoch_open");
    options.place = TSLAB_PLACE_OWN;
    return &options;
  }

  int exceptions_ = std::uncaught_exceptions();
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
  /* Misuse, by another thread or out of order, is reported as by tslab_scope_leave. */
  ~scope() { static_cast<void>(tslab_scope_leave(&scope_)); }
  scope(const scope &) = delete;
  scope &operator=(const scope &) = delete;
  static void *operator new(std::size_t) = delete;
  static void *operator new[](std::size_t) = delete;

 private:
  tslab_scope scope_;
};

/* A name of one object that can be checked (tslab_handle). Copies name the same object, a default
 * one none. Any thread. */
template <class T>
class handle {
 public:
  constexpr handle() noexcept = default;

  /* The object, NULL when it is gone. Another thread may free it right after. */
  T *get() const noexcept { return static_cast<T *>(tslab_handle_get(id_)); }

  /* Frees the object. True for one call, false when it was gone. */
  bool free() noexcept { return tslab_handle_free(id_); }

 private:
  template <class U, class... Args>
  friend handle<U> make_handle(epoch_ref, Args &&...);
  explicit handle(tslab_handle id) noexcept : id_(id) {}

  tslab_handle id_{};
};

/* An object in an epoch, and its handle. Nobody runs its destructor, so that it may end with its
 * epoch. Throws std::bad_alloc, and what T's constructor throws; then nothing is left. */
template <class T, class... Args>
[[nodiscard]] handle<T> make_handle(epoch_ref epoch, Args &&...args) {
  static_assert(std::is_trivially_destructible_v<T>, "who frees it runs no destructor");
  static_assert(alignof(T) <= detail::malloc_alignment, "handles are of blocks aligned to 16");
  tslab_handle id = tslab_handle_alloc(epoch.id(), sizeof(T));
  if (id.block == nullptr) throw std::bad_alloc();
  detail::handle_guard guard{id};
  ::new (id.block) std::remove_cv_t<T>(std::forward<Args>(args)...);
  guard.id = tslab_handle{};
  return handle<T>(id);
}

/* When a rotation turns, and the options of its epochs. */
struct rotation_options {
  std::chrono::milliseconds every{0}; /* 0: never by time */
  std::uint64_t every_requests = 0;   /* 0: never by calls of current() */
  epoch_options epochs;
};

/* Epochs that follow each other (tslab_rotation); both that are open are closed with the object.
 * Any thread may use it. */
class rotation {
 public:
  /* Opens nothing yet. Throws EINVAL: the label is too long, or `every` is negative. */
  explicit rotation(const char *label, const rotation_options &options = rotation_options())
      : options_(options) {
    std::size_t length = ::strnlen(label, sizeof label_);
    if (length == sizeof label_ || options.every.count() < 0)
      detail::throw_if(EINVAL, "tslab::rotation");
    std::memcpy(label_, label, length);
    rotation_.label = label_;
    rotation_.options = &options_.epochs;
    rotation_.every_ms = static_cast<std::uint64_t>(options.every.count());
    rotation_.every_requests = options.every_requests;
  }
  ~rotation() { end(); }
  rotation(const rotation &) = delete;
  rotation &operator=(const rotation &) = delete;

  /* The current epoch, after a turn when one is due. Throws as the constructor of epoch. */
  tslab_epoch current() {
    return opened(tslab_rotation_current(&rotation_), "tslab_rotation_current");
  }

  /* Turns now. Throws the same; then the current epoch stays. */
  tslab_epoch advance() {
    return opened(tslab_rotation_advance(&rotation_), "tslab_rotation_advance");
  }

  /* Closes both epochs. The rotation may be used again. */
  void end() noexcept { tslab_rotation_end(&rotation_); }

 private:
  static tslab_epoch opened(tslab_epoch id, const char *what) {
    if (id == TSLAB_NO_EPOCH) detail::throw_if(errno, what);
    return id;
  }

  char label_[TSLAB_LABEL_BYTES] = {};
  rotation_options options_;
  tslab_rotation rotation_{};
};

/* tslab_stats_get: what the process's memory is made of. */
inline tslab_stats stats() {
  tslab_stats all{};
  all.size = sizeof all;
  detail::throw_if(tslab_stats_get(&all), "tslab_stats_get");
  return all;
}

/* tslab_epoch_get_stats: what is known of an epoch. Throws ESTALE. */
inline tslab_epoch_stats stats(epoch_ref epoch) {
  tslab_epoch_stats one{};
  one.size = sizeof one;
  detail::throw_if(tslab_epoch_get_stats(epoch.id(), &one), "tslab_epoch_get_stats");
  return one;
}

namespace detail {

/* A callable as C's `visit`. What it throws ends the walk, and is thrown when the walk is over. */
template <class F>
class visitor {
 public:
  explicit visitor(F &visit) noexcept : visit_(visit) {}

  template <class... Args>
  int operator()(Args... args) noexcept try {
    using result = std::invoke_result_t<F &, Args...>;
    static_assert(std::is_void_v<result> || std::is_same_v<result, bool>, "void or bool");
    if constexpr (std::is_same_v<result, bool>) {
      return visit_(args...) ? 0 : stop;
    } else {
      visit_(args...);
      return 0;
    }
  } catch (...) {
    thrown_ = std::current_exception();
    return stop;
  }

  void end(int result, const char *what) const {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
    if (result != stop) throw_if(result, what);
  }

 private:
  static constexpr int stop = -1;  // no error of errno.h

  F &visit_;
  std::exception_ptr thrown_;
};

}  // namespace detail

/* tslab_epochs_each: calls `visit(tslab_epoch)` for each epoch but the default one that is not
 * over. A visit that returns bool ends the walk by false, one that throws by that. */
template <class F>
void for_each_epoch(F &&visit) {
  detail::visitor<F> visitor(visit);
  auto call = [](tslab_epoch epoch, void *context) {
    return (*static_cast<detail::visitor<F> *>(context))(epoch);
  };
  visitor.end(tslab_epochs_each(call, &visitor), "tslab_epochs_each");
}

/* tslab_epoch_blocks_each: calls `visit(void *block, std::size_t bytes)` for each live block of an
 * epoch. Nobody may allocate or free there meanwhile, but the visit may free the block that it is
 * given. A visit that returns bool ends the walk by false, one that throws by that. Throws ESTALE,
 * EPERM too. */
template <class F>
void for_each_block(epoch_ref epoch, F &&visit) {
  detail::visitor<F> visitor(visit);
  auto call = [](void *block, std::size_t bytes, void *context) {
    return (*static_cast<detail::visitor<F> *>(context))(block, bytes);
  };
  visitor.end(tslab_epoch_blocks_each(epoch.id(), call, &visitor), "tslab_epoch_blocks_each");
}

}  // namespace tslab
