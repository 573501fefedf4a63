//! global: the allocator as the program's own.

use std::alloc::{GlobalAlloc, Layout};

use tslab_sys as sys;

use crate::block;

/// The allocator, for `#[global_allocator]`: `Box`, `Vec` and all the rest then lie where the
/// thread is, in an epoch that it entered or outside.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: tslab::TemporalSlab = tslab::TemporalSlab;
///
/// assert!(tslab::captures());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TemporalSlab;

// SAFETY: blocks have the size and the alignment of their layout, and are nobody else's until they
// are freed. What the C functions keep, in errno or otherwise, moves no block, and none unwinds.
unsafe impl GlobalAlloc for TemporalSlab {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        block::take_here(layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        block::take_zeroed_here(layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: as the caller says of GlobalAlloc::dealloc.
        unsafe { block::free(block) }
    }

    unsafe fn realloc(&self, block: *mut u8, old: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller says that `bytes`, rounded up to the alignment, is no overflow.
        let new = unsafe { Layout::from_size_align_unchecked(bytes, old.align()) };
        // SAFETY: the caller says that the block is live.
        let resize = |block: *mut u8| unsafe { sys::tslab_realloc(block.cast(), bytes) }.cast();
        // SAFETY: the same.
        unsafe { block::change(block, old, new, resize, || block::take_here(new)) }
    }
}

/// Whether epochs hold what `Box` and `Vec` allocate: [`TemporalSlab`] is the global allocator, or
/// the feature `override` is on.
pub fn captures() -> bool {
    // SAFETY: it asks no more.
    unsafe { sys::tslab_captures_malloc() }
}
