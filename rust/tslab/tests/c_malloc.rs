//! With the feature `override` C's malloc is the allocator, too, whatever the program's own is.

use std::ffi::{c_char, c_void};

unsafe extern "C" {
    fn strdup(text: *const c_char) -> *mut c_char;
    fn free(block: *mut c_void);
}

#[test]
fn what_c_allocates_lies_in_the_epoch() {
    assert!(tslab::captures());
    let epoch = tslab::Epoch::open("C").unwrap();
    // SAFETY: the text ends with a 0, and the copy is freed once.
    let seen = epoch.enter(|| unsafe {
        let copy = strdup(c"from the C library".as_ptr());
        let seen = tslab_sys::tslab_epoch_of(copy.cast());
        free(copy.cast());
        seen
    });
    assert_eq!(seen, epoch.id());
}
