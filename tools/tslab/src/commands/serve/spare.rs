//! Memory of the server itself that it needed for a moment.

/// Gives what was freed back to the system. The C library would keep it: reading the symbols of a
/// large program takes more than the server needs in all the time between.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the C library is asked")]
pub fn give_back() {
    // SAFETY: it may be called at any time, by any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Nothing: this C library gives back what is freed.
#[cfg(not(target_env = "gnu"))]
pub fn give_back() {}
