//! owner: an epoch's id, and what epochs and arenas have in common.

use tslab_sys as sys;

use crate::error::{Error, Result, check};

/// What happens to the pages of an epoch that ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purge {
    /// They go back once they were not needed for option `purge_delay_ms`.
    #[default]
    Decay,
    /// As many bytes as it held stay with the process, until [`trim`](crate::trim).
    Keep,
    /// All free memory, but for what threads keep at hand and what lies between live objects, goes
    /// back before the end returns.
    Now,
}

/// Where the objects of an epoch lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// As option `places` says: by default, epochs of a label share once some were closed that
    /// were small and short, or that their objects outlived.
    #[default]
    Auto,
    /// In memory of its own: what survives it is counted, and it can be released.
    Own,
    /// In the shared epoch of its label, from the label's first epoch on.
    Shared,
}

/// What an epoch or an arena is opened with. Limits count memory, not objects: cells of 4 to 64
/// KiB, slabs of 64 KiB and more, and large blocks, those of its children included.
#[derive(Clone, Debug, Default)]
pub struct Options {
    hard_limit_bytes: usize,
    purge: Purge,
    threads: u32,
    first_cell_bytes: usize,
    place: Place,
}

impl Options {
    /// No limit, and memory that decays.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses memory beyond so many bytes; 0: none. `Box` and `Vec` abort the program then, as
    /// with any allocator; `Vec::try_reserve` and [`Arena::try_alloc`](crate::Arena::try_alloc) say
    /// no.
    #[must_use]
    pub fn hard_limit_bytes(mut self, bytes: usize) -> Self {
        self.hard_limit_bytes = bytes;
        self
    }

    /// What happens to the pages at the end.
    #[must_use]
    pub fn purge(mut self, purge: Purge) -> Self {
        self.purge = purge;
        self
    }

    /// About how many threads will allocate at a time; 0: one or two.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// More than 4,096 for epochs that grow at once.
    #[must_use]
    pub fn first_cell_bytes(mut self, bytes: usize) -> Self {
        self.first_cell_bytes = bytes;
        self
    }

    /// Where the objects lie. An arena has memory of its own always.
    #[must_use]
    pub fn place(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    fn raw(&self, parent: sys::tslab_epoch) -> sys::tslab_epoch_options {
        sys::tslab_epoch_options {
            size: size_of::<sys::tslab_epoch_options>(),
            parent,
            soft_limit_bytes: 0,
            hard_limit_bytes: self.hard_limit_bytes,
            on_limit: None,
            limit_context: std::ptr::null_mut(),
            purge: match self.purge {
                Purge::Decay => sys::TSLAB_PURGE_DECAY,
                Purge::Keep => sys::TSLAB_PURGE_KEEP,
                Purge::Now => sys::TSLAB_PURGE_NOW,
            },
            threads: self.threads,
            first_cell_bytes: self.first_cell_bytes,
            place: match self.place {
                Place::Auto => sys::TSLAB_PLACE_AUTO,
                Place::Own => sys::TSLAB_PLACE_OWN,
                Place::Shared => sys::TSLAB_PLACE_SHARED,
            },
        }
    }
}

/// An id that is this program part's to end. Nothing ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Owner(pub(crate) sys::tslab_epoch);

impl Owner {
    pub(crate) fn open(label: &str, options: &Options, parent: sys::tslab_epoch) -> Result<Self> {
        let text = terminated(label).ok_or(Error::INVALID)?;
        let options = options.raw(parent);
        // SAFETY: the label ends with a 0, and both live through the call.
        let id = unsafe { sys::tslab_epoch_open(text.as_ptr().cast(), &raw const options) };
        if id == sys::TSLAB_NO_EPOCH { Err(Error::last()) } else { Ok(Self(id)) }
    }

    /// Opens one that will be released: only memory of its own can be.
    pub(crate) fn open_own(
        label: &str,
        options: &Options,
        parent: sys::tslab_epoch,
    ) -> Result<Self> {
        Self::open(label, &options.clone().place(Place::Own), parent)
    }

    /// Ends the epoch and every object in it and in its children.
    ///
    /// # Safety
    /// Nobody uses, allocates or frees objects of the epoch or of its children any more.
    pub(crate) unsafe fn release(&self) -> Result<()> {
        // SAFETY: the caller says so.
        check(unsafe { sys::tslab_epoch_release(self.0) })
    }

    /// Ends every object in the epoch and its children; the epoch stays open.
    ///
    /// # Safety
    /// Nobody uses, allocates or frees objects of the epoch or of its children meanwhile or later.
    pub(crate) unsafe fn reset(&self) -> Result<()> {
        // SAFETY: the caller says so.
        check(unsafe { sys::tslab_epoch_reset(self.0) })
    }
}

/// The label with a 0 at its end; None for one that has a 0 inside, or is too long.
fn terminated(label: &str) -> Option<[u8; sys::TSLAB_LABEL_BYTES]> {
    let mut text = [0; sys::TSLAB_LABEL_BYTES];
    if label.len() >= text.len() || label.contains('\0') {
        return None;
    }
    text[..label.len()].copy_from_slice(label.as_bytes());
    Some(text)
}
