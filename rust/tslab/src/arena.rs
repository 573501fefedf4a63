//! arena: a lifetime whose objects borrow it, and that is released when its owner ends.

use std::alloc::{Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::{mem, ptr, slice, str};

use tslab_sys as sys;

use crate::block;
use crate::error::{Error, Result};
use crate::owner::{Options, Owner};

/// Memory for objects that end together: a frame, a parse, a query plan. Every object borrows the
/// arena; when it is dropped they are all gone, in time proportional to its memory. Nothing runs
/// their destructors. (A `Vec` or a `Box` of the crate allocator-api2 with `&Arena` as its
/// allocator runs them, when it is dropped.) Threads may share an arena.
///
/// ```
/// let frame = tslab::Arena::open("frame")?;
/// let name = frame.alloc_str("camera");
/// let depths = frame.alloc_slice_copy(&[3, 1, 2]);
/// depths.sort_unstable();
/// assert_eq!((&*name, depths.first()), ("camera", Some(&1)));
/// frame.release()?;
/// # Ok::<(), tslab::Error>(())
/// ```
///
/// An object does not outlive its arena:
///
/// ```compile_fail,E0505
/// let frame = tslab::Arena::open("frame")?;
/// let name = frame.alloc_str("camera");
/// frame.release()?;
/// println!("{name}");
/// # Ok::<(), tslab::Error>(())
/// ```
///
/// ```compile_fail,E0597
/// let name;
/// {
///     let frame = tslab::Arena::open("frame")?;
///     name = frame.alloc_str("camera");
/// }
/// println!("{name}");
/// # Ok::<(), tslab::Error>(())
/// ```
///
/// Nor does an arena outlive the one that its memory counts towards:
///
/// ```compile_fail,E0505
/// let tenant = tslab::Arena::open("tenant")?;
/// let query = tenant.child("query", &tslab::Options::new())?;
/// tenant.release()?;
/// query.alloc(1);
/// # Ok::<(), tslab::Error>(())
/// ```
///
/// Threads do not enter arenas, since a `Box` borrows nothing:
///
/// ```compile_fail,E0599
/// let frame = tslab::Arena::open("frame")?;
/// let name = frame.enter(|| String::from("camera"));
/// # Ok::<(), tslab::Error>(())
/// ```
#[derive(Debug)]
pub struct Arena<'parent> {
    owner: Owner,
    parent: PhantomData<&'parent ()>,
}

impl Arena<'static> {
    /// Opens an arena. The label, of at most 63 bytes, is the same for arenas of the same kind.
    ///
    /// # Errors
    /// As [`Epoch::open`](crate::Epoch::open).
    pub fn open(label: &str) -> Result<Self> {
        Self::open_with(label, &Options::new())
    }

    /// Opens an arena with options.
    ///
    /// # Errors
    /// As [`Epoch::open_with`](crate::Epoch::open_with).
    pub fn open_with(label: &str, options: &Options) -> Result<Self> {
        Owner::open_own(label, options, sys::TSLAB_DEFAULT).map(Self::of)
    }
}

impl Arena<'_> {
    pub(crate) fn of(owner: Owner) -> Self {
        Self { owner, parent: PhantomData }
    }

    /// Opens an arena whose memory counts towards this one's limit, and that ends before it.
    ///
    /// # Errors
    /// As [`Epoch::child`](crate::Epoch::child).
    pub fn child(&self, label: &str, options: &Options) -> Result<Arena<'_>> {
        Owner::open_own(label, options, self.id()).map(Arena::of)
    }

    /// The id by which C and the statistics know the arena.
    pub fn id(&self) -> u64 {
        self.owner.0
    }

    /// Moves a value into the arena. Aborts the program when there is no memory.
    pub fn alloc<T>(&self, value: T) -> &mut T {
        self.try_alloc(value).unwrap_or_else(|_| handle_alloc_error(Layout::new::<T>()))
    }

    /// Moves a value into the arena.
    ///
    /// # Errors
    /// `ENOMEM`: the system has no more memory, or a limit refused it. The value is dropped.
    #[expect(clippy::mut_from_ref, reason = "each call gives an object of its own")]
    pub fn try_alloc<T>(&self, value: T) -> Result<&mut T> {
        let place = self.take(Layout::new::<T>())?.cast::<T>();
        // SAFETY: the place is new, has the size and the alignment of T, and lives as long as
        // `self`.
        unsafe {
            place.write(value);
            Ok(&mut *place)
        }
    }

    /// Copies a slice into the arena. Aborts the program when there is no memory.
    #[expect(clippy::mut_from_ref, reason = "each call gives an object of its own")]
    pub fn alloc_slice_copy<T: Copy>(&self, values: &[T]) -> &mut [T] {
        let layout = Layout::for_value(values);
        let place = self.take(layout).unwrap_or_else(|_| handle_alloc_error(layout)).cast::<T>();
        // SAFETY: the place is new and large enough for as many T, and lives as long as `self`.
        unsafe {
            ptr::copy_nonoverlapping(values.as_ptr(), place, values.len());
            slice::from_raw_parts_mut(place, values.len())
        }
    }

    /// Copies a text into the arena. Aborts the program when there is no memory.
    #[expect(clippy::mut_from_ref, reason = "each call gives an object of its own")]
    pub fn alloc_str(&self, text: &str) -> &mut str {
        // SAFETY: a copy of UTF-8 is UTF-8.
        unsafe { str::from_utf8_unchecked_mut(self.alloc_slice_copy(text.as_bytes())) }
    }

    /// Ends the arena and every object in it.
    ///
    /// # Errors
    /// `ENOMEM`, and the memory stays with the process.
    pub fn release(self) -> Result<()> {
        // SAFETY: whatever lies in the arena or in its children borrows it, and it is moved here.
        let result = unsafe { self.owner.release() };
        mem::forget(self);
        result
    }

    /// Ends every object in the arena, which stays open: the next ones lie in the same memory.
    ///
    /// ```compile_fail,E0502
    /// let mut frame = tslab::Arena::open("frame")?;
    /// let depth = frame.alloc(1);
    /// frame.reset()?;
    /// *depth = 2;
    /// # Ok::<(), tslab::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ENOMEM`, and nothing changed.
    pub fn reset(&mut self) -> Result<()> {
        // SAFETY: whatever lies in the arena or in its children borrows it.
        unsafe { self.owner.reset() }
    }

    fn take(&self, layout: Layout) -> Result<*mut u8> {
        if layout.size() == 0 {
            return Ok(ptr::without_provenance_mut(layout.align()));
        }
        let place = block::take(self.id(), layout);
        if place.is_null() { Err(Error::last()) } else { Ok(place) }
    }
}

impl Drop for Arena<'_> {
    fn drop(&mut self) {
        // SAFETY: whatever lies in the arena or in its children borrows it. When there is no memory
        // for the end itself, the arena's memory stays with the process.
        _ = unsafe { self.owner.release() };
    }
}
