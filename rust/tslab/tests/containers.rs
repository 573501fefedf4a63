//! Containers of allocator-api2 in epochs and arenas.

use std::alloc::Layout;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use tslab::{Arena, Epoch, Options};

fn epoch_of<T: ?Sized>(object: &T) -> u64 {
    // SAFETY: any address may be asked about.
    unsafe { tslab_sys::tslab_epoch_of(std::ptr::from_ref(object).cast()) }
}

#[test]
fn containers_grow_shrink_and_give_back() {
    let epoch = Epoch::open("containers").unwrap();
    let mut numbers = Vec::new_in(&epoch);
    numbers.extend(0..10_000_u64);
    assert_eq!(epoch_of(numbers.as_slice()), epoch.id());
    numbers.truncate(5);
    numbers.shrink_to_fit();
    assert_eq!((numbers.as_slice(), numbers.capacity()), (&[0, 1, 2, 3, 4][..], 5));
    numbers.clear();
    numbers.shrink_to_fit();
    assert_eq!(epoch.stats().unwrap().live_objects, 0);
    numbers.push(6);
    assert_eq!(epoch.stats().unwrap().live_objects, 1);
    drop(numbers);
    assert_eq!(epoch.close().unwrap().objects, 0);
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
        assert_eq!((block.len(), epoch_of(block.as_ref())), (400, epoch.id()));
        let empty = allocator.shrink(block.cast(), some, none).unwrap();
        assert_eq!((empty.len(), epoch.stats().unwrap().live_objects), (0, 0));
        allocator.deallocate(empty.cast(), none);
    }
}

#[test]
fn wide_elements_keep_their_alignment() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(align(64))]
    struct Line(u8);
    let arena = Arena::open("lines").unwrap();
    let mut lines = Vec::new_in(&arena);
    for each in 0..100 {
        lines.push(Line(each));
        assert_eq!(lines.as_ptr().addr() % 64, 0);
    }
    assert!(lines.iter().map(|line| line.0).eq(0..100));
}

#[test]
fn boxes_run_destructors_and_their_memory_is_used_again() {
    struct Told<'a>(&'a std::cell::Cell<u32>);
    impl Drop for Told<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let dropped = std::cell::Cell::new(0);
    let arena = Arena::open("boxes").unwrap();
    for _ in 0..100 {
        drop(Box::new_in(Told(&dropped), &arena));
    }
    assert_eq!((dropped.get(), arena.stats().unwrap().live_objects), (100, 0));
}

#[test]
fn a_limit_is_an_error_of_the_container() {
    let options = Options::new().hard_limit_bytes(1 << 20);
    let arena = Arena::open_with("limited", &options).unwrap();
    let mut bytes = Vec::<u8, _>::new_in(&arena);
    assert!(bytes.try_reserve(8 << 20).is_err());
    assert!(bytes.try_reserve(1 << 16).is_ok());
}
