//! Arenas hold objects that borrow them. Here the program's allocator is another one.

use std::rc::Rc;
use std::thread;

use tslab::{Arena, Epoch, Options, Place};

#[test]
fn objects_lie_in_the_arena_and_end_with_it() {
    let arena = Arena::open("frame").unwrap();
    let id = arena.id();
    let number = arena.alloc(40);
    *number += 2;
    let names = [arena.alloc_str("a"), arena.alloc_str("")];
    let depths = arena.alloc_slice_copy(&[3_u16, 1, 2]);
    depths.sort_unstable();
    assert_eq!((*number, &*names[0], &*names[1], &*depths), (42, "a", "", &[1, 2, 3][..]));
    assert_eq!(arena.stats().unwrap().live_objects, 3);
    arena.release().unwrap();
    assert_eq!(tslab::epoch_stats(id).unwrap_err().raw_os_error(), 116);
}

#[test]
fn a_reset_arena_is_used_again() {
    let mut arena = Arena::open("frames").unwrap();
    let mut places = Vec::new();
    for frame in 0..3_u64 {
        let number = arena.alloc(frame);
        places.push(&raw const *number);
        assert_eq!(*number, frame);
        arena.reset().unwrap();
        assert_eq!(arena.stats().unwrap().live_objects, 0);
    }
    // The hardened build takes any free block.
    assert!(cfg!(feature = "secure") || places.iter().all(|place| *place == places[0]));
    arena.release().unwrap();
}

#[test]
fn dropping_an_arena_releases_it() {
    let arena = Arena::open("dropped").unwrap();
    let id = arena.id();
    arena.alloc_slice_copy(&vec![0_u8; 100_000]);
    drop(arena);
    assert_eq!(tslab::epoch_stats(id).unwrap_err().raw_os_error(), 116);
}

#[test]
fn arenas_of_a_label_whose_epochs_share_have_memory_of_their_own() {
    let options = Options::new().place(Place::Shared);
    let epoch = Epoch::open_with("query", &options).unwrap();
    let opened = [Arena::open_with("query", &options), epoch.arena("query", &options)];
    assert_ne!(epoch.stats().unwrap().place, epoch.id());
    for arena in opened.map(Result::unwrap) {
        let (id, stats) = (arena.id(), arena.stats().unwrap());
        assert_eq!((stats.place, *arena.alloc(7)), (id, 7));
        arena.release().unwrap();
        assert_eq!(tslab::epoch_stats(id).unwrap_err().raw_os_error(), 116);
    }
}

#[test]
fn nobody_runs_destructors() {
    let arena = Arena::open("no destructors").unwrap();
    let counted = Rc::new(());
    arena.alloc(Rc::clone(&counted));
    drop(arena);
    assert_eq!(Rc::strong_count(&counted), 2);
}

#[test]
fn alignments_are_kept() {
    #[repr(align(256))]
    struct Wide(u8);
    let arena = Arena::open("wide").unwrap();
    let (wide, unit) = (arena.alloc(Wide(1)), arena.alloc(()));
    assert_eq!(std::ptr::from_ref(wide).addr() % 256, 0);
    assert_eq!((wide.0, *unit), (1, ()));
}

#[test]
fn a_limit_refuses_a_value_and_drops_it() {
    let tenant = Epoch::open_with("tenant", &Options::new().hard_limit_bytes(8 << 10)).unwrap();
    let arena = tenant.arena("query", &Options::new()).unwrap();
    let counted = Rc::new(());
    let refused = arena.try_alloc(([0_u8; 16 << 10], Rc::clone(&counted)));
    let error = refused.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("a limit of the epoch refused it"), "{error}");
    assert_eq!(Rc::strong_count(&counted), 1);
}

#[test]
fn threads_share_an_arena_and_its_children() {
    let arena = Arena::open("shared").unwrap();
    let child = arena.child("child", &Options::new()).unwrap();
    let sums: u64 = thread::scope(|scope| {
        let work = || (0..1000).map(|each| *child.alloc(each)).sum::<u64>();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(sums, 4 * 499_500);
    assert_eq!(child.stats().unwrap().live_objects, 4000);
    assert_eq!(child.stats().unwrap().parent, arena.id());
}

/// The other test starts this one.
#[cfg(not(feature = "override"))]
#[test]
#[ignore = "it is a program of its own"]
fn enters_an_epoch() {
    assert!(!tslab::captures());
    let epoch = Epoch::open("empty").unwrap();
    let _kept = epoch.enter(|| vec![1_u8; 100]);
    assert_eq!(epoch.close().unwrap().objects, 0);
}

#[cfg(not(feature = "override"))]
#[test]
fn without_the_global_allocator_a_program_that_enters_an_epoch_is_told() {
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let done = again.args(["--ignored", "--exact", "enters_an_epoch"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("let a `static` of type tslab::TemporalSlab be the"), "{said}");
}
