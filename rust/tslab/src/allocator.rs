//! allocator: epochs and arenas as allocators of the crate allocator-api2.

use std::alloc::Layout;
use std::ptr::{self, NonNull};

use allocator_api2::alloc::{AllocError, Allocator};
use tslab_sys as sys;

use crate::arena::Arena;
use crate::block;
use crate::epoch::Epoch;

fn empty(layout: Layout) -> NonNull<u8> {
    // An alignment is not 0.
    NonNull::new(ptr::without_provenance_mut(layout.align())).unwrap_or(NonNull::dangling())
}

fn slice(block: *mut u8, bytes: usize) -> Result<NonNull<[u8]>, AllocError> {
    let block = NonNull::new(block).ok_or(AllocError)?;
    Ok(NonNull::slice_from_raw_parts(block, bytes))
}

fn allocate(epoch: u64, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
    if layout.size() == 0 {
        return Ok(NonNull::slice_from_raw_parts(empty(layout), 0));
    }
    slice(block::take(epoch, layout), layout.size())
}

/// # Safety
/// As `Allocator::deallocate`.
unsafe fn deallocate(block: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: the caller says that it is a block of this allocator.
        unsafe { block::free(block.as_ptr()) }
    }
}

/// # Safety
/// As `Allocator::grow` and `Allocator::shrink`.
unsafe fn resize(
    epoch: u64,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<[u8]>, AllocError> {
    if old.size() == 0 {
        return allocate(epoch, new);
    }
    if new.size() == 0 {
        // SAFETY: the caller says that it is a block of this allocator.
        unsafe { block::free(block.as_ptr()) };
        return allocate(epoch, new);
    }
    let in_epoch = |block: *mut u8| {
        // SAFETY: the caller says that the block is live.
        unsafe { sys::tslab_epoch_realloc(epoch, block.cast(), new.size()) }.cast()
    };
    // SAFETY: the same.
    let moved =
        unsafe { block::change(block.as_ptr(), old, new, in_epoch, || block::take(epoch, new)) };
    slice(moved, new.size())
}

macro_rules! allocator {
    ($owner:ty, $example:literal) => {
        #[doc = $example]
        // SAFETY: a block stays valid until it is deallocated or its owner ends, which every copy
        // of the reference borrows; all of them deallocate in the same way.
        unsafe impl Allocator for &$owner {
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                allocate(self.id(), layout)
            }

            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: the caller keeps the trait's rules.
                unsafe { deallocate(block, layout) }
            }

            unsafe fn grow(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the caller keeps the trait's rules.
                unsafe { resize(self.id(), block, old, new) }
            }

            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the caller keeps the trait's rules.
                unsafe { resize(self.id(), block, old, new) }
            }
        }
    };
}

allocator!(
    Epoch,
    "
A container in an epoch, from wherever the thread is:

```
use allocator_api2::vec::Vec;

let session = tslab::Epoch::open(\"session\")?;
let mut names: Vec<&str, _> = Vec::new_in(&session);
names.push(\"ada\");
assert_eq!(session.stats()?.live_objects, 1);
# drop(names);
# Ok::<(), tslab::Error>(())
```

It does not outlive the epoch's owner:

```compile_fail,E0505
use allocator_api2::vec::Vec;

let session = tslab::Epoch::open(\"session\")?;
let mut names: Vec<&str, _> = Vec::new_in(&session);
session.close()?;
names.push(\"ada\");
# Ok::<(), tslab::Error>(())
```
"
);
allocator!(
    Arena<'_>,
    "
A container in an arena:

```
use allocator_api2::vec::Vec;

let frame = tslab::Arena::open(\"frame\")?;
let mut depths = Vec::new_in(&frame);
depths.extend([3, 1, 2]);
# assert_eq!(depths.len(), 3);
# Ok::<(), tslab::Error>(())
```

It is gone before the arena is:

```compile_fail,E0505
use allocator_api2::vec::Vec;

let frame = tslab::Arena::open(\"frame\")?;
let mut depths = Vec::new_in(&frame);
depths.push(3);
frame.release()?;
depths.push(1);
# Ok::<(), tslab::Error>(())
```

An object whose address is promised for ever does not lie in one that ends:

```compile_fail,E0597
use allocator_api2::boxed::Box;

let frame = tslab::Arena::open(\"frame\")?;
let pinned = Box::pin_in(1, &frame);
# Ok::<(), tslab::Error>(())
```
"
);
