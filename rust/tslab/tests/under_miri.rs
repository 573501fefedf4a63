//! The pointers that this crate makes, as miri sees them. Miri runs no C: the functions below stand
//! in for the allocator's, and give each block back when its epoch ends. `test/rust/miri` runs it.

#![cfg(miri)]

use std::alloc::{self, GlobalAlloc, Layout};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use tslab::{Arena, Epoch, Options, TemporalSlab};
use tslab_sys as sys;

struct Block {
    place: *mut u8,
    layout: Layout,
    epoch: u64,
}

// SAFETY: the table alone gives blocks back, and it is locked then.
unsafe impl Send for Block {}

type Blocks = HashMap<usize, Block>;

static BLOCKS: LazyLock<Mutex<Blocks>> = LazyLock::new(Mutex::default);
static OPENED: AtomicU64 = AtomicU64::new(0);

fn with_blocks<R>(work: impl FnOnce(&mut Blocks) -> R) -> R {
    work(&mut BLOCKS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn take(epoch: u64, alignment: usize, bytes: usize) -> *mut c_void {
    let layout = Layout::from_size_align(bytes.max(1), alignment).unwrap();
    // SAFETY: the layout has a size.
    let place = unsafe { alloc::alloc(layout) };
    with_blocks(|blocks| blocks.insert(place.addr(), Block { place, layout, epoch }));
    place.cast()
}

fn give(block: &Block) {
    // SAFETY: it came from there, and is in the table no more.
    unsafe { alloc::dealloc(block.place, block.layout) }
}

fn resize(epoch: u64, old: *mut c_void, bytes: usize) -> *mut c_void {
    let new = take(epoch, 16, bytes);
    let most = with_blocks(|blocks| blocks[&old.addr()].layout.size());
    // SAFETY: both blocks have that many bytes, and one of them is new.
    unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), most.min(bytes)) };
    tslab_free(old);
    new
}

fn end(epoch: u64) {
    let ended: Vec<_> = with_blocks(|blocks| {
        blocks.extract_if(|_, block| block.epoch == epoch).map(|(_, block)| block).collect()
    });
    ended.iter().for_each(give);
}

fn living(epoch: u64) -> usize {
    with_blocks(|blocks| blocks.values().filter(|block| block.epoch == epoch).count())
}

#[unsafe(no_mangle)]
extern "C" fn tslab_malloc(bytes: usize) -> *mut c_void {
    take(sys::TSLAB_DEFAULT, 16, bytes)
}

#[unsafe(no_mangle)]
extern "C" fn tslab_calloc(count: usize, bytes: usize) -> *mut c_void {
    let block = tslab_malloc(count * bytes);
    // SAFETY: it has that many bytes.
    unsafe { block.write_bytes(0, count * bytes) };
    block
}

#[unsafe(no_mangle)]
extern "C" fn tslab_aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    take(sys::TSLAB_DEFAULT, alignment, bytes)
}

#[unsafe(no_mangle)]
extern "C" fn tslab_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    resize(sys::TSLAB_DEFAULT, block, bytes)
}

#[unsafe(no_mangle)]
extern "C" fn tslab_free(block: *mut c_void) {
    give(&with_blocks(|blocks| blocks.remove(&block.addr())).unwrap());
}

#[unsafe(no_mangle)]
extern "C" fn tslab_epoch_open(_: *const c_char, options: *const sys::tslab_epoch_options) -> u64 {
    // SAFETY: the caller's options live through the call.
    assert_eq!(unsafe { (*options).size }, size_of::<sys::tslab_epoch_options>());
    OPENED.fetch_add(1, Ordering::Relaxed) + 1
}

#[unsafe(no_mangle)]
extern "C" fn tslab_epoch_close(epoch: u64) -> sys::tslab_survivors {
    let objects = living(epoch);
    sys::tslab_survivors { error: 0, objects, bytes: 0, pages: 0 }
}

#[unsafe(no_mangle)]
extern "C" fn tslab_epoch_release(epoch: u64) -> c_int {
    end(epoch);
    0
}

#[unsafe(no_mangle)]
extern "C" fn tslab_epoch_reset(epoch: u64) -> c_int {
    end(epoch);
    0
}

#[unsafe(no_mangle)]
extern "C" fn tslab_epoch_malloc(epoch: u64, bytes: usize) -> *mut c_void {
    take(epoch, 16, bytes)
}

#[unsafe(no_mangle)]
extern "C" fn tslab_epoch_aligned_alloc(epoch: u64, alignment: usize, bytes: usize) -> *mut c_void {
    take(epoch, alignment, bytes)
}

#[unsafe(no_mangle)]
extern "C" fn tslab_epoch_realloc(epoch: u64, block: *mut c_void, bytes: usize) -> *mut c_void {
    resize(epoch, block, bytes)
}

#[test]
fn objects_of_an_arena_do_not_alias() {
    let arena = Arena::open("frame").unwrap();
    let (number, text) = (arena.alloc(40), arena.alloc_str("camera"));
    let depths = arena.alloc_slice_copy(&[3_u16, 1, 2]);
    let (unit, none) = (arena.alloc(()), arena.alloc_slice_copy::<u64>(&[]));
    *number += 2;
    text.make_ascii_uppercase();
    depths.sort_unstable();
    assert_eq!((*number, &*text, &*depths, *unit), (42, "CAMERA", &[1, 2, 3][..], ()));
    assert!(none.is_empty());
    let id = arena.id();
    arena.release().unwrap();
    assert_eq!(living(id), 0);
}

#[test]
fn a_reset_arena_is_used_again() {
    let mut arena = Arena::open("frames").unwrap();
    for frame in 0..3_u64 {
        let number = arena.alloc(frame);
        *number += 1;
        assert_eq!(*number, frame + 1);
        arena.reset().unwrap();
        assert_eq!(living(arena.id()), 0);
    }
}

#[test]
fn alignments_are_kept() {
    #[repr(align(256))]
    struct Wide(u8);
    let arena = Arena::open("wide").unwrap();
    let wide = arena.alloc(Wide(1));
    wide.0 += 1;
    assert_eq!((ptr::from_ref(wide).addr() % 256, wide.0), (0, 2));
}

#[test]
fn threads_share_an_arena() {
    let arena = Arena::open("shared").unwrap();
    let child = arena.child("child", &Options::new()).unwrap();
    let sums: u64 = thread::scope(|scope| {
        let work = || (0..20).map(|each| *child.alloc(each)).sum::<u64>();
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(sums, 3 * 190);
}

#[test]
fn blocks_of_the_global_allocator_grow_and_shrink() {
    let ours = TemporalSlab;
    for alignment in [1, 16, 64] {
        let layout = Layout::from_size_align(100, alignment).unwrap();
        // SAFETY: each block is of this allocator, and has the layout that is named.
        unsafe {
            let block = ours.alloc_zeroed(layout);
            block.add(99).write(1);
            let grown = ours.realloc(block, layout, 5000);
            assert_eq!((grown.read(), grown.add(99).read()), (0, 1));
            grown.add(4999).write(2);
            let large = Layout::from_size_align(5000, alignment).unwrap();
            let shrunk = ours.realloc(grown, large, 10);
            shrunk.add(9).write(3);
            ours.dealloc(shrunk, Layout::from_size_align(10, alignment).unwrap());
        }
    }
}

#[cfg(feature = "allocator-api2")]
mod containers {
    use allocator_api2::alloc::Allocator;
    use allocator_api2::boxed::Box;
    use allocator_api2::vec::Vec;

    use super::*;

    #[test]
    fn containers_grow_shrink_and_give_back() {
        let epoch = Epoch::open("containers").unwrap();
        let mut numbers = Vec::new_in(&epoch);
        numbers.extend(0..200_u64);
        numbers.truncate(5);
        numbers.shrink_to_fit();
        assert_eq!((numbers.as_slice(), living(epoch.id())), (&[0, 1, 2, 3, 4][..], 1));
        drop(numbers);
        assert_eq!(epoch.close().unwrap().objects, 0);
    }

    #[test]
    fn wide_elements_move_with_their_block() {
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Line(u8);
        let arena = Arena::open("lines").unwrap();
        let mut lines = Vec::new_in(&arena);
        lines.extend((0..20).map(Line));
        lines.truncate(3);
        lines.shrink_to_fit();
        assert!(lines.iter().map(|line| line.0).eq(0..3));
    }

    #[test]
    fn blocks_of_no_bytes_grow_and_come_back() {
        let epoch = Epoch::open("no bytes").unwrap();
        let (none, some) = (Layout::new::<()>(), Layout::new::<[u64; 50]>());
        let allocator = &epoch;
        let empty = allocator.allocate(none).unwrap();
        // SAFETY: each block is of this allocator, and has the layout that is named.
        unsafe {
            let block = allocator.grow(empty.cast(), none, some).unwrap();
            block.cast::<[u64; 50]>().write([1; 50]);
            let empty = allocator.shrink(block.cast(), some, none).unwrap();
            allocator.deallocate(empty.cast(), none);
        }
        assert_eq!(living(epoch.id()), 0);
    }

    #[test]
    fn boxes_end_before_their_arena() {
        let arena = Arena::open("boxes").unwrap();
        let mut boxed = Box::new_in(std::string::String::from("kept by Rust"), &arena);
        boxed.push('!');
        assert_eq!(boxed.as_str(), "kept by Rust!");
        drop(boxed);
        assert_eq!(living(arena.id()), 0);
    }
}
