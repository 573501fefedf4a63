//! Epochs hold what `Box` and `Vec` allocate inside, and never invalidate it.

use std::alloc::{Layout, alloc_zeroed, dealloc, realloc};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use tslab::{Epoch, Error, Options, Place, Purge, State, TemporalSlab, outside};

#[global_allocator]
static ALLOCATOR: TemporalSlab = TemporalSlab;

fn epoch_of<T: ?Sized>(object: &T) -> u64 {
    // SAFETY: any address may be asked about.
    unsafe { tslab_sys::tslab_epoch_of(std::ptr::from_ref(object).cast()) }
}

fn here() -> u64 {
    // SAFETY: it asks no more.
    unsafe { tslab_sys::tslab_epoch_current() }
}

#[test]
fn what_is_allocated_inside_lies_in_the_epoch() {
    assert!(tslab::captures());
    let epoch = Epoch::open("inside").unwrap();
    let (boxed, text) = epoch.enter(|| (Box::new(1_u64), String::from("a text of its own")));
    assert_eq!((epoch_of(&*boxed), epoch_of(text.as_str())), (epoch.id(), epoch.id()));
    let after = Box::new(2_u64);
    assert_eq!(epoch_of(&*after), 0);
    assert_eq!(epoch.stats().unwrap().live_objects, 2);
}

#[test]
fn epochs_nest_and_have_a_way_out() {
    let (outer, inner) = (Epoch::open("outer").unwrap(), Epoch::open("inner").unwrap());
    outer.enter(|| {
        inner.enter(|| {
            assert_eq!(here(), inner.id());
            outer.enter(|| assert_eq!(here(), outer.id()));
            outside(|| assert_eq!(here(), 0));
            assert_eq!(here(), inner.id());
        });
        assert_eq!(here(), outer.id());
    });
    assert_eq!(here(), 0);
}

#[test]
fn objects_outlive_an_epoch_that_is_closed() {
    let epoch = Epoch::open("closed").unwrap();
    let id = epoch.id();
    let mut kept = epoch.enter(|| vec![7_u8; 1000]);
    let left = epoch.close().unwrap();
    assert_eq!(left.objects, 1);
    assert!(left.bytes >= 1000 && left.pages >= 1, "{left:?}");
    let stats = tslab::epoch_stats(id).unwrap();
    assert_eq!((stats.state, stats.label.as_str()), (State::Closed, "closed"));
    kept.extend(0..100);
    assert_eq!((kept[999], kept[1099]), (7, 99));
    drop(kept);
    let over = tslab::epoch_stats(id).unwrap_err();
    assert_eq!(over.to_string(), "the epoch is over, or never was");
}

#[test]
fn dropping_an_epoch_closes_it() {
    let epoch = Epoch::open("dropped").unwrap();
    let id = epoch.id();
    let kept = epoch.enter(|| Box::new(3));
    drop(epoch);
    assert_eq!(tslab::epoch_stats(id).unwrap().state, State::Closed);
    assert_eq!(*kept, 3);
}

#[test]
fn a_panic_leaves_the_epoch() {
    let epoch = Epoch::open("panic").unwrap();
    let caught = catch_unwind(AssertUnwindSafe(|| epoch.enter(|| panic!("on purpose"))));
    assert!(caught.is_err());
    assert_eq!(here(), 0);
}

#[test]
fn threads_share_an_epoch_and_free_each_others_objects() {
    let epoch = Epoch::open("threads").unwrap();
    let boxes: Vec<Box<u64>> = thread::scope(|scope| {
        let work = || epoch.enter(|| (0..100).map(Box::new).collect::<Vec<_>>());
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(boxes.iter().all(|each| epoch_of(&**each) == epoch.id()));
    assert_eq!(boxes.iter().map(|each| **each).sum::<u64>(), 4 * 4950);
    assert!(epoch.stats().unwrap().live_objects >= 400);
    drop(boxes);
    assert_eq!(epoch.close().unwrap().objects, 0);
}

#[test]
fn an_epoch_that_was_ended_behind_its_owner_is_not_entered() {
    let epoch = Epoch::open("ended").unwrap();
    // SAFETY: nothing lies in it.
    assert_eq!(unsafe { tslab_sys::tslab_epoch_release(epoch.id()) }, 0);
    let refused = epoch.try_enter(|| panic!("it did run")).unwrap_err();
    assert_eq!(refused.raw_os_error(), 116);
    assert_eq!(epoch.enter(here), 0);
    assert_eq!(epoch.close().unwrap_err(), refused);
}

#[test]
fn release_ends_what_nobody_looks_at() {
    let epoch = Epoch::open("released").unwrap();
    let id = epoch.id();
    std::mem::forget(epoch.enter(|| vec![1_u8; 5000]));
    // SAFETY: nobody has the vector.
    unsafe { epoch.release() }.unwrap();
    assert_eq!(tslab::epoch_stats(id).unwrap_err().raw_os_error(), 116);
}

#[test]
fn epochs_that_share_lie_in_the_shared_one_of_their_label() {
    let options = Options::new().place(Place::Shared);
    let open = || Epoch::open_with("sharing", &options).unwrap();
    let (first, second) = (open(), open());
    let kept = [&first, &second].map(|epoch| epoch.enter(|| Box::new(1_u64)));
    let place = first.stats().unwrap().place;
    assert!(place != first.id() && place == second.stats().unwrap().place);
    assert!(kept.iter().all(|each| epoch_of(&**each) == place));
    let shared = tslab::epoch_stats(place).unwrap();
    assert_eq!((shared.state, shared.place, shared.live_objects), (State::Shared, place, 2));
    assert_eq!(first.close().unwrap().objects, 0);
    // SAFETY: nobody has a block that a release could end.
    let refused = unsafe { second.release() }.unwrap_err();
    assert!(refused.to_string().contains("shares its label's memory"), "{refused}");
    assert_eq!(kept.map(|each| *each), [1, 1]);
}

#[test]
fn of_many_epochs_of_a_label_only_those_with_memory_of_their_own_count_survivors() {
    let close = |options: &Options| {
        let epoch = Epoch::open_with("many", options).unwrap();
        let kept = epoch.enter(|| Box::new([0_u8; 100]));
        let short = epoch.enter(|| vec![0_u8; 10_000]);
        drop(short);
        (epoch.close().unwrap().objects, kept)
    };
    let own: Vec<_> = (0..20).map(|_| close(&Options::new().place(Place::Own))).collect();
    assert!(own.iter().all(|(survivors, _)| *survivors == 1));
    let told: Vec<_> = (0..40).map(|_| close(&Options::new()).0).collect();
    assert_eq!(told[39], 0);
    assert_eq!(close(&Options::new().place(Place::Own)).0, 1);
}

#[test]
fn a_limit_refuses_memory() {
    let options = Options::new().hard_limit_bytes(1 << 20).purge(Purge::Now).threads(1);
    let tenant = Epoch::open_with("tenant", &options).unwrap();
    let child = tenant.child("child", &Options::new().first_cell_bytes(1 << 16)).unwrap();
    let refused = child.enter(|| Vec::<u8>::new().try_reserve(8 << 20).is_err());
    assert!(refused);
    let served = child.enter(|| Vec::<u8>::with_capacity(1 << 18));
    assert_eq!(epoch_of(served.spare_capacity_slice()), child.id());
    assert_eq!(child.stats().unwrap().parent, tenant.id());
    assert!(tenant.stats().unwrap().held_bytes >= 1 << 18);
}

trait Spare {
    fn spare_capacity_slice(&self) -> &u8;
}

impl Spare for Vec<u8> {
    fn spare_capacity_slice(&self) -> &u8 {
        // SAFETY: only its address is looked at, and the vector has room.
        unsafe { &*self.as_ptr() }
    }
}

#[test]
fn labels_fit_or_are_refused() {
    for label in ["x".repeat(64), "a\0b".to_owned()] {
        let error = Epoch::open(&label).unwrap_err();
        assert_eq!(error.raw_os_error(), 22);
        assert!(error.to_string().contains("a label over 63 bytes"), "{error}");
        assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::InvalidInput);
    }
    let longest = "x".repeat(63);
    assert_eq!(Epoch::open(&longest).unwrap().stats().unwrap().label, longest);
}

#[test]
fn layouts_are_kept_through_changes_of_size() {
    for align in [1, 16, 64, 4096] {
        let layout = Layout::from_size_align(3 * align, align).unwrap();
        // SAFETY: the layout has a size; the block is used within it and freed once.
        unsafe {
            let block = alloc_zeroed(layout);
            assert!((0..layout.size()).all(|at| *block.add(at) == 0));
            block.write_bytes(5, layout.size());
            let block = realloc(block, layout, 40 * align);
            assert_eq!(block.addr() % align, 0);
            assert!((0..layout.size()).all(|at| *block.add(at) == 5));
            dealloc(block, Layout::from_size_align(40 * align, align).unwrap());
        }
    }
}

#[test]
fn blocks_that_grow_a_little_stay_aligned() {
    let (old, new) = (Layout::from_size_align(64, 64), Layout::from_size_align(80, 64));
    let (old, new) = (old.unwrap(), new.unwrap());
    // SAFETY: the layouts have a size, and each block is freed once.
    unsafe {
        let blocks: Vec<_> = (0..20).map(|_| realloc(alloc_zeroed(old), old, 80)).collect();
        assert!(blocks.iter().all(|block| block.addr() % 64 == 0));
        for block in blocks {
            dealloc(block, new);
        }
    }
}

#[test]
fn the_process_says_what_it_is_made_of() {
    let epoch = Epoch::open("told").unwrap();
    let kept = epoch.enter(|| vec![0_u8; 1 << 20]);
    let stats = tslab::stats().unwrap();
    assert!(stats.live >= 1 << 20 && stats.large >= 1 << 20, "{stats:?}");
    assert!(tslab::epochs().iter().any(|each| each.label == "told" && each.live_bytes >= 1 << 20));
    assert!(tslab::stats_json().contains("\"label\":\"told\""));
    let mut files = std::fs::read_dir("/dev/shm").unwrap().map(|file| file.unwrap().file_name());
    let own = format!("tslab.{}.", std::process::id());
    assert!(files.any(|name| name.to_string_lossy().starts_with(&own)));
    drop(kept);
    tslab::trim(0);
    assert_eq!(tslab::version(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn options_are_read_and_set() {
    tslab::set_option("detain_ms", "11").unwrap();
    assert_eq!(tslab::option("detain_ms").unwrap(), "11");
    let errors = [
        tslab::option("no_such").unwrap_err(),
        tslab::set_option("detain_ms", "soon").unwrap_err(),
        tslab::set_option("detain\0ms", "1").unwrap_err(),
    ];
    assert_eq!(errors.map(Error::raw_os_error), [2, 22, 22]);
}
