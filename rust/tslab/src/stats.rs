//! stats: what is known of the process's memory, and of an epoch.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::slice;
use std::time::Duration;

use tslab_sys as sys;

use crate::arena::Arena;
use crate::epoch::{Epoch, outside};
use crate::error::{Result, check};

/// What the process's memory is made of, in bytes. The parts add up: `resident` is `live + hot +
/// free + cached + dirty + metadata - untouched`. Exact while no other thread allocates or frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Blocks in use; not in bytes.
    pub live_objects: usize,
    /// That they may use.
    pub live: usize,
    /// Of these: in blocks of whole 64 KiB.
    pub large: usize,
    /// Free blocks that threads keep at hand.
    pub hot: usize,
    /// Free blocks and rounding in slabs and cells.
    pub free: usize,
    /// Empty units of 64 KiB, ready for any thread.
    pub cached: usize,
    /// Free memory that has not gone back to the system yet.
    pub dirty: usize,
    /// The allocator's own records.
    pub metadata: usize,
    /// Of live and hot blocks: never written to, not resident.
    pub untouched: usize,
    /// Of all that the allocator has.
    pub resident: usize,
}

/// What the process's memory is made of. Takes time in proportion to it.
///
/// # Errors
/// None of this version of the library.
pub fn stats() -> Result<Stats> {
    let mut raw = MaybeUninit::<sys::tslab_stats>::zeroed();
    // SAFETY: zeros are a value of each field, and `size` is what the library asks for.
    let raw = unsafe {
        (*raw.as_mut_ptr()).size = size_of::<sys::tslab_stats>();
        check(sys::tslab_stats_get(raw.as_mut_ptr()))?;
        raw.assume_init()
    };
    Ok(Stats {
        live_objects: raw.live_objects,
        live: raw.live_bytes,
        large: raw.large_bytes,
        hot: raw.hot_bytes,
        free: raw.free_bytes,
        cached: raw.cached_bytes,
        dirty: raw.dirty_bytes,
        metadata: raw.metadata_bytes,
        untouched: raw.untouched_bytes,
        resident: raw.resident_bytes,
    })
}

/// The same, and every epoch that is not over, as a JSON object.
pub fn stats_json() -> String {
    let mut text = Vec::new();
    let context: *mut Vec<u8> = &raw mut text;
    // SAFETY: `append` gets the vector back, which nobody else has meanwhile.
    outside(|| unsafe { sys::tslab_stats_json(append, context.cast()) });
    String::from_utf8_lossy(&text).into_owned()
}

unsafe extern "C" fn append(text: *const c_char, length: usize, context: *mut c_void) {
    // SAFETY: `stats_json` passed the vector, and the library a text of that length.
    unsafe {
        (*context.cast::<Vec<u8>>()).extend_from_slice(slice::from_raw_parts(text.cast(), length));
    }
}

/// Where an epoch is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Threads may enter it.
    Open,
    /// Objects live on in it.
    Closed,
    /// Its memory is on its way back.
    Released,
    /// The shared epoch of its label, which never ends.
    Shared,
}

/// What is known of an epoch. Exact while no other thread allocates or frees in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochStats {
    /// Its id.
    pub id: u64,
    /// Its parent's id, 0 for none.
    pub parent: u64,
    /// What it was opened with.
    pub label: String,
    /// Where it is in its life.
    pub state: State,
    /// Threads that have memory in it.
    pub threads: u32,
    /// Stays of threads in it.
    pub scopes: u32,
    /// Its children that are not over.
    pub children: u32,
    /// Objects in it, not in its children.
    pub live_objects: usize,
    /// That they may use.
    pub live_bytes: usize,
    /// Its cells, slabs and large blocks, and its children's.
    pub held_bytes: usize,
    /// Since it was opened.
    pub age: Duration,
    /// Since it was closed or released; zero while it is open.
    pub closed: Duration,
    /// Allocations refused because it had ended.
    pub late: u64,
    /// The id of the epoch where its objects lie: its own, or that of the shared epoch of its
    /// label, whose figures objects, bytes, threads and scopes are then.
    pub place: u64,
    /// The most that `held_bytes` was.
    pub peak_bytes: usize,
    /// Since it was opened; those that do not live were freed, or reset.
    pub allocated_objects: u64,
    /// Of them: what they took, and what large ones grew by.
    pub allocated_bytes: u64,
}

impl From<sys::tslab_epoch_stats> for EpochStats {
    fn from(raw: sys::tslab_epoch_stats) -> Self {
        // SAFETY: the library says that labels stay valid for ever.
        let label = unsafe { CStr::from_ptr(raw.label) };
        Self {
            id: raw.epoch,
            parent: raw.parent,
            label: label.to_string_lossy().into_owned(),
            state: match raw.state {
                sys::TSLAB_OPEN => State::Open,
                sys::TSLAB_CLOSED => State::Closed,
                sys::TSLAB_SHARED => State::Shared,
                _ => State::Released,
            },
            threads: raw.threads,
            scopes: raw.scopes,
            children: raw.children,
            live_objects: raw.live_objects,
            live_bytes: raw.live_bytes,
            held_bytes: raw.held_bytes,
            age: Duration::from_millis(raw.age_ms),
            closed: Duration::from_millis(raw.closed_ms),
            late: raw.late,
            place: raw.place,
            peak_bytes: raw.peak_bytes,
            allocated_objects: raw.allocated_objects,
            allocated_bytes: raw.allocated_bytes,
        }
    }
}

/// What is known of the epoch of an id. Takes time in proportion to its extent (`tslab.h`).
///
/// # Errors
/// `ESTALE` when the epoch is over, `ENOMEM`.
pub fn epoch_stats(id: u64) -> Result<EpochStats> {
    let mut raw = MaybeUninit::<sys::tslab_epoch_stats>::zeroed();
    // SAFETY: zeros are a value of each field, and `size` is what the library asks for.
    let raw = unsafe {
        (*raw.as_mut_ptr()).size = size_of::<sys::tslab_epoch_stats>();
        check(sys::tslab_epoch_get_stats(id, raw.as_mut_ptr()))?;
        raw.assume_init()
    };
    Ok(raw.into())
}

/// Every epoch and arena that is not over, those that were closed and still hold objects included.
pub fn epochs() -> Vec<EpochStats> {
    let mut ids = Vec::<u64>::new();
    // SAFETY: `collect` gets the vector back, which nobody else has meanwhile.
    outside(|| unsafe { sys::tslab_epochs_each(collect, (&raw mut ids).cast()) });
    ids.into_iter().filter_map(|id| epoch_stats(id).ok()).collect()
}

unsafe extern "C" fn collect(id: u64, context: *mut c_void) -> c_int {
    // SAFETY: `epochs` passed the vector.
    unsafe { (*context.cast::<Vec<u64>>()).push(id) };
    0
}

impl Epoch {
    /// What is known of it. Takes time in proportion to its extent (`tslab.h`).
    ///
    /// # Errors
    /// `ESTALE` where code in C ended the epoch, `ENOMEM`.
    pub fn stats(&self) -> Result<EpochStats> {
        epoch_stats(self.id())
    }
}

impl Arena<'_> {
    /// What is known of it. Takes time in proportion to its extent (`tslab.h`).
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn stats(&self) -> Result<EpochStats> {
        epoch_stats(self.id())
    }
}
