//! The C interface of the allocator tslab, as `include/tslab.h` declares and documents it.
//! The crate compiles the allocator from its sources or, with the feature `system`, links the
//! installed library; the crate `tslab` is what programs use.
//!
//! Names, types and the order of fields are those of the header, and a test compares them.

#![allow(non_camel_case_types)]
#![allow(missing_docs)] // the header has them

use core::ffi::{c_char, c_int, c_uint, c_void};

pub type tslab_epoch = u64;
pub type tslab_limit = c_uint;
pub type tslab_purge = c_uint;
pub type tslab_place = c_uint;
pub type tslab_state = c_uint;
pub type tslab_advice = c_uint;

pub const TSLAB_DEFAULT: tslab_epoch = 0;
pub const TSLAB_NO_EPOCH: tslab_epoch = u64::MAX;
pub const TSLAB_LABEL_BYTES: usize = 64;
pub const TSLAB_NO_CELLS: usize = usize::MAX;

pub const TSLAB_PURGE_DECAY: tslab_purge = 0;
pub const TSLAB_PURGE_KEEP: tslab_purge = 1;
pub const TSLAB_PURGE_NOW: tslab_purge = 2;

pub const TSLAB_PLACE_AUTO: tslab_place = 0;
pub const TSLAB_PLACE_OWN: tslab_place = 1;
pub const TSLAB_PLACE_SHARED: tslab_place = 2;

pub const TSLAB_SOFT_LIMIT: tslab_limit = 0;
pub const TSLAB_HARD_LIMIT: tslab_limit = 1;

pub const TSLAB_OPEN: tslab_state = 0;
pub const TSLAB_CLOSED: tslab_state = 1;
pub const TSLAB_RELEASED: tslab_state = 2;
pub const TSLAB_SHARED: tslab_state = 3;

pub const TSLAB_ADVISE_COLD: tslab_advice = 0;
pub const TSLAB_ADVISE_PAGEOUT: tslab_advice = 1;
pub const TSLAB_ADVISE_WILLNEED: tslab_advice = 2;

pub type tslab_limit_callback =
    unsafe extern "C" fn(tslab_epoch, tslab_limit, usize, usize, *mut c_void);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tslab_stats {
    pub size: usize,
    pub live_objects: usize,
    pub live_bytes: usize,
    pub large_bytes: usize,
    pub hot_bytes: usize,
    pub free_bytes: usize,
    pub cached_bytes: usize,
    pub dirty_bytes: usize,
    pub metadata_bytes: usize,
    pub untouched_bytes: usize,
    pub resident_bytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tslab_epoch_options {
    pub size: usize,
    pub parent: tslab_epoch,
    pub soft_limit_bytes: usize,
    pub hard_limit_bytes: usize,
    pub on_limit: Option<tslab_limit_callback>,
    pub limit_context: *mut c_void,
    pub purge: tslab_purge,
    pub threads: c_uint,
    pub first_cell_bytes: usize,
    pub place: tslab_place,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tslab_survivors {
    pub error: c_int,
    pub objects: usize,
    pub bytes: usize,
    pub pages: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tslab_deferred {
    pub epoch: tslab_epoch,
    pub number: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tslab_scope {
    pub epoch: tslab_epoch,
    pub heap: *mut c_void,
    pub outer: *mut c_void,
    pub depth: c_uint,
    pub before: tslab_epoch,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tslab_epoch_stats {
    pub size: usize,
    pub epoch: tslab_epoch,
    pub parent: tslab_epoch,
    pub label: *const c_char,
    pub state: tslab_state,
    pub threads: c_uint,
    pub scopes: c_uint,
    pub children: c_uint,
    pub live_objects: usize,
    pub live_bytes: usize,
    pub held_bytes: usize,
    pub age_ms: u64,
    pub closed_ms: u64,
    pub late: u64,
    pub place: tslab_epoch,
    pub peak_bytes: usize,
    pub allocated_objects: u64,
    pub allocated_bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tslab_block_info {
    pub size: usize,
    pub epoch: tslab_epoch,
    pub usable_bytes: usize,
    pub shared_bytes: usize,
    pub live: c_uint,
    pub capacity: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tslab_handle {
    pub block: *mut c_void,
    pub epoch: tslab_epoch,
    pub stamp: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct tslab_rotation {
    pub label: *const c_char,
    pub options: *const tslab_epoch_options,
    pub every_ms: u64,
    pub every_requests: u64,
    pub current: tslab_epoch,
    pub previous: tslab_epoch,
    pub requests: u64,
    pub due_ms: u64,
}

unsafe extern "C" {
    pub fn tslab_malloc(bytes: usize) -> *mut c_void;
    pub fn tslab_calloc(count: usize, bytes: usize) -> *mut c_void;
    pub fn tslab_realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    pub fn tslab_reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void;
    pub fn tslab_free(block: *mut c_void);
    pub fn tslab_free_sized(block: *mut c_void, bytes: usize);
    pub fn tslab_resize_in_place(block: *mut c_void, bytes: usize) -> bool;
    pub fn tslab_aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void;
    pub fn tslab_posix_memalign(block: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int;
    pub fn tslab_usable_size(block: *const c_void) -> usize;
    pub fn tslab_good_size(bytes: usize) -> usize;
    pub fn tslab_trim(keep_bytes: usize) -> c_int;
    pub fn tslab_captures_malloc() -> bool;
    pub fn tslab_version() -> *const c_char;
    pub fn tslab_error_text(error: c_int) -> *const c_char;
    pub fn tslab_option_get(name: *const c_char, value: *mut c_char, size: usize) -> c_int;
    pub fn tslab_option_set(name: *const c_char, value: *const c_char) -> c_int;

    pub fn tslab_stats_get(stats: *mut tslab_stats) -> c_int;
    pub fn tslab_stats_json(
        write: unsafe extern "C" fn(*const c_char, usize, *mut c_void),
        context: *mut c_void,
    );

    pub fn tslab_epoch_open(
        label: *const c_char,
        options: *const tslab_epoch_options,
    ) -> tslab_epoch;
    pub fn tslab_epoch_close(epoch: tslab_epoch) -> tslab_survivors;
    pub fn tslab_epoch_release(epoch: tslab_epoch) -> c_int;
    pub fn tslab_epoch_reset(epoch: tslab_epoch) -> c_int;
    pub fn tslab_epoch_keep(block: *const c_void) -> c_int;
    pub fn tslab_epoch_defer(
        epoch: tslab_epoch,
        run: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    ) -> c_int;
    pub fn tslab_deferred_add(
        epoch: tslab_epoch,
        run: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    ) -> tslab_deferred;
    pub fn tslab_deferred_cancel(call: tslab_deferred) -> bool;
    pub fn tslab_epoch_on_over(
        epoch: tslab_epoch,
        call: unsafe extern "C" fn(tslab_epoch, *mut c_void),
        context: *mut c_void,
    ) -> c_int;
    pub fn tslab_epoch_set_user(epoch: tslab_epoch, user: *mut c_void) -> c_int;
    pub fn tslab_epoch_get_user(epoch: tslab_epoch) -> *mut c_void;
    pub fn tslab_epoch_set_limits(
        epoch: tslab_epoch,
        soft_limit_bytes: usize,
        hard_limit_bytes: usize,
    ) -> c_int;

    pub fn tslab_scope_enter(scope: *mut tslab_scope, epoch: tslab_epoch) -> c_int;
    pub fn tslab_scope_default(scope: *mut tslab_scope) -> c_int;
    pub fn tslab_scope_leave(scope: *mut tslab_scope) -> c_int;
    pub fn tslab_epoch_current() -> tslab_epoch;

    pub fn tslab_epoch_malloc(epoch: tslab_epoch, bytes: usize) -> *mut c_void;
    pub fn tslab_epoch_calloc(epoch: tslab_epoch, count: usize, bytes: usize) -> *mut c_void;
    pub fn tslab_epoch_strdup(epoch: tslab_epoch, text: *const c_char) -> *mut c_char;
    pub fn tslab_epoch_strndup(
        epoch: tslab_epoch,
        text: *const c_char,
        most_bytes: usize,
    ) -> *mut c_char;
    pub fn tslab_epoch_aligned_alloc(
        epoch: tslab_epoch,
        alignment: usize,
        bytes: usize,
    ) -> *mut c_void;
    pub fn tslab_epoch_realloc(epoch: tslab_epoch, block: *mut c_void, bytes: usize)
    -> *mut c_void;

    pub fn tslab_epoch_get_stats(epoch: tslab_epoch, stats: *mut tslab_epoch_stats) -> c_int;
    pub fn tslab_epochs_each(
        visit: unsafe extern "C" fn(tslab_epoch, *mut c_void) -> c_int,
        context: *mut c_void,
    ) -> c_int;
    pub fn tslab_epoch_blocks_each(
        epoch: tslab_epoch,
        visit: unsafe extern "C" fn(*mut c_void, usize, *mut c_void) -> c_int,
        context: *mut c_void,
    ) -> c_int;
    pub fn tslab_epoch_of(block: *const c_void) -> tslab_epoch;
    pub fn tslab_block_get_info(block: *const c_void, info: *mut tslab_block_info) -> c_int;
    pub fn tslab_epoch_advise(epoch: tslab_epoch, advice: tslab_advice) -> c_int;

    pub fn tslab_handle_alloc(epoch: tslab_epoch, bytes: usize) -> tslab_handle;
    pub fn tslab_handle_get(handle: tslab_handle) -> *mut c_void;
    pub fn tslab_handle_free(handle: tslab_handle) -> bool;

    pub fn tslab_rotation_current(rotation: *mut tslab_rotation) -> tslab_epoch;
    pub fn tslab_rotation_advance(rotation: *mut tslab_rotation) -> tslab_epoch;
    pub fn tslab_rotation_end(rotation: *mut tslab_rotation);
}

/// Whether a block of Rust's global allocator lies in tslab's memory. `src/face.c` asks.
#[cfg(not(feature = "override"))]
#[unsafe(no_mangle)]
extern "C" fn tslab_rust_captures() -> bool {
    use std::alloc::{Layout, alloc, dealloc};
    let layout = Layout::new::<u64>();
    // SAFETY: the layout has a size, and only an address is asked about.
    unsafe {
        let block = alloc(layout);
        let captures = tslab_epoch_of(block.cast()) != TSLAB_NO_EPOCH;
        if !block.is_null() {
            dealloc(block, layout);
        }
        captures
    }
}
