//! scope: a thread's stay in an epoch. Only closures of this crate hold one, so that scopes end in
//! the opposite order of their beginning, on their thread.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use tslab_sys as sys;

use crate::error::{Result, check};

pub(crate) struct Scope {
    raw: sys::tslab_scope,
    of_this_thread: PhantomData<*mut ()>,
}

/// Enters an epoch until the scope is dropped.
pub(crate) fn enter(epoch: sys::tslab_epoch) -> Result<Scope> {
    let mut raw = MaybeUninit::uninit();
    // SAFETY: the struct is written on success; the library keeps no pointer to it.
    check(unsafe { sys::tslab_scope_enter(raw.as_mut_ptr(), epoch) })?;
    // SAFETY: it was a success.
    Ok(Scope { raw: unsafe { raw.assume_init() }, of_this_thread: PhantomData })
}

impl Drop for Scope {
    fn drop(&mut self) {
        // SAFETY: the struct is one that was entered by this thread.
        let error = unsafe { sys::tslab_scope_leave(&raw mut self.raw) };
        debug_assert_eq!(error, 0, "code in C left a scope of another's, or entered one for good");
    }
}
