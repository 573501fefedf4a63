//! epoch: a lifetime that threads enter, and that is closed when its owner ends.

use std::mem;

use tslab_sys as sys;

use crate::arena::Arena;
use crate::error::{Result, check};
use crate::owner::{Options, Owner};
use crate::scope;

/// A lifetime that the program declares: a request, a batch, a tenant. What threads allocate while
/// they are [inside](Epoch::enter) lies together. Dropping an epoch closes it: what lives in it
/// stays valid until it is dropped itself, and the memory goes back with the last object.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: tslab::TemporalSlab = tslab::TemporalSlab;
/// # fn main() -> tslab::Result<()> {
/// let request = tslab::Epoch::open("GET /upload")?;
/// let kept = request.enter(|| vec![1, 2, 3]);
/// let left = request.close()?;
/// assert_eq!((kept.len(), left.objects), (3, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Epoch(Owner);

/// What outlived an epoch that was closed, and is still valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survivors {
    /// How many objects.
    pub objects: usize,
    /// That they may use.
    pub bytes: usize,
    /// Of 4 KiB, that stay because of them.
    pub pages: usize,
}

impl Epoch {
    /// Opens an epoch. The label, of at most 63 bytes, is the same for epochs of the same kind.
    ///
    /// # Errors
    /// `EINVAL` for a label that is too long or has a 0 in it, `ENOMEM`.
    pub fn open(label: &str) -> Result<Self> {
        Self::open_with(label, &Options::new())
    }

    /// Opens an epoch with options.
    ///
    /// # Errors
    /// As [`open`](Epoch::open), also for options that make no sense.
    pub fn open_with(label: &str, options: &Options) -> Result<Self> {
        Owner::open(label, options, sys::TSLAB_DEFAULT).map(Self)
    }

    /// Opens an epoch whose memory counts towards this one's limit.
    ///
    /// # Errors
    /// As [`open_with`](Epoch::open_with), and `ELOOP` for one that would have 64 ancestors.
    pub fn child(&self, label: &str, options: &Options) -> Result<Epoch> {
        Owner::open(label, options, self.id()).map(Self)
    }

    /// Opens an arena whose memory counts towards this epoch's limit.
    ///
    /// # Errors
    /// As [`child`](Epoch::child).
    pub fn arena(&self, label: &str, options: &Options) -> Result<Arena<'_>> {
        Owner::open_own(label, options, self.id()).map(Arena::of)
    }

    /// The id by which C and the statistics know the epoch.
    pub fn id(&self) -> u64 {
        self.0.0
    }

    /// Runs `work` inside: what the thread allocates meanwhile lies in the epoch. Calls nest. Where
    /// the epoch cannot be entered, `work` runs where the thread is.
    ///
    /// A closure is the only way in: threads leave what they entered last, whatever `work` does.
    pub fn enter<R>(&self, work: impl FnOnce() -> R) -> R {
        let _inside = scope::enter(self.id());
        work()
    }

    /// [`enter`](Epoch::enter), or not at all.
    ///
    /// # Errors
    /// `ENOMEM`, `EPERM` where the thread's destructors ran already, `ESTALE` and `ECANCELED` where
    /// code in C ended the epoch. `work` did not run.
    pub fn try_enter<R>(&self, work: impl FnOnce() -> R) -> Result<R> {
        let _inside = scope::enter(self.id())?;
        Ok(work())
    }

    /// Ends the epoch, and says what outlived it. What threads that are inside go on to allocate is
    /// not in the answer. Of an epoch that shares its label's memory nothing is:
    /// [`Place::Own`](crate::Place::Own) lets it be counted.
    ///
    /// # Errors
    /// `ESTALE` and `ECANCELED` where code in C ended the epoch.
    pub fn close(self) -> Result<Survivors> {
        // SAFETY: nothing becomes invalid.
        let left = unsafe { sys::tslab_epoch_close(self.id()) };
        mem::forget(self);
        check(left.error)?;
        Ok(Survivors { objects: left.objects, bytes: left.bytes, pages: left.pages })
    }

    /// Ends the epoch and every object in it and in its children, without destructors. An [`Arena`]
    /// does this safely for objects that borrow it.
    ///
    /// # Errors
    /// `ENOMEM`, and the epoch is closed. `ENOTSUP` for one that shared its label's memory: its
    /// objects live until they are dropped. [`Place::Own`](crate::Place::Own) lets it be released.
    ///
    /// # Safety
    /// No object that was allocated inside is used or dropped afterwards. Libraries keep more than
    /// one thinks: the first `println!` makes the buffer of stdout, the first use of a thread-local
    /// variable its place.
    pub unsafe fn release(self) -> Result<()> {
        // SAFETY: the caller says so.
        unsafe { self.0.release() }.inspect(|()| mem::forget(self))
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        // SAFETY: nothing becomes invalid. One that code in C ended already refuses it.
        _ = unsafe { sys::tslab_epoch_close(self.id()) };
    }
}

/// Runs `work` outside of all epochs: a way out for objects that are meant to survive.
pub fn outside<R>(work: impl FnOnce() -> R) -> R {
    let _inside = scope::enter(sys::TSLAB_DEFAULT);
    work()
}
