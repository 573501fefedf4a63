//! block: memory for a layout, from an epoch or from where the thread is.

use std::alloc::Layout;
use std::ptr;

use tslab_sys as sys;

/// What every block of the allocator is aligned to.
const ALIGNMENT: usize = 16;

/// A block in an epoch, uninitialised; null when there is no memory.
pub(crate) fn take(epoch: sys::tslab_epoch, layout: Layout) -> *mut u8 {
    // SAFETY: any id, size and power of two may be given.
    let block = unsafe {
        if layout.align() <= ALIGNMENT {
            sys::tslab_epoch_malloc(epoch, layout.size())
        } else {
            sys::tslab_epoch_aligned_alloc(epoch, layout.align(), layout.size())
        }
    };
    block.cast()
}

/// A block where the thread is.
pub(crate) fn take_here(layout: Layout) -> *mut u8 {
    // SAFETY: any size and power of two may be given.
    let block = unsafe {
        if layout.align() <= ALIGNMENT {
            sys::tslab_malloc(layout.size())
        } else {
            sys::tslab_aligned_alloc(layout.align(), layout.size())
        }
    };
    block.cast()
}

/// A block of zeros where the thread is.
pub(crate) fn take_zeroed_here(layout: Layout) -> *mut u8 {
    if layout.align() <= ALIGNMENT {
        // SAFETY: any size may be given.
        return unsafe { sys::tslab_calloc(1, layout.size()) }.cast();
    }
    let block = take_here(layout);
    if !block.is_null() {
        // SAFETY: the block is new, and has that many bytes.
        unsafe { block.write_bytes(0, layout.size()) };
    }
    block
}

/// Moves what fits to a block of another size, and frees the old one; null leaves all as it is.
///
/// # Safety
/// `block` is a live block of layout `old`, and `resize` is realloc for one epoch or another.
pub(crate) unsafe fn change(
    block: *mut u8,
    old: Layout,
    new: Layout,
    resize: impl FnOnce(*mut u8) -> *mut u8,
    take: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    if old.align() <= ALIGNMENT && new.align() <= ALIGNMENT {
        return resize(block);
    }
    let moved = take();
    if !moved.is_null() {
        // SAFETY: both blocks have that many bytes, and one of them is new.
        unsafe { ptr::copy_nonoverlapping(block, moved, old.size().min(new.size())) };
        // SAFETY: the block is live, and nobody uses it after its contents moved.
        unsafe { free(block) };
    }
    moved
}

/// # Safety
/// `block` is a live block of the allocator's.
pub(crate) unsafe fn free(block: *mut u8) {
    // SAFETY: the caller says so.
    unsafe { sys::tslab_free(block.cast()) }
}
