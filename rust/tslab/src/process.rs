//! process: the allocator's options, its version, and memory that goes back at once.

use std::ffi::{CStr, CString};

use tslab_sys as sys;

use crate::error::{Error, Result, check};

const LONGEST_VALUE: usize = 128;

/// The value of an option of docs/options.md.
///
/// # Errors
/// `ENOENT` for an unknown name.
pub fn option(name: &str) -> Result<String> {
    let name = terminated(name)?;
    let mut value = [0_u8; LONGEST_VALUE];
    // SAFETY: both texts end with a 0, and `value` has that many bytes.
    check(unsafe { sys::tslab_option_get(name.as_ptr(), value.as_mut_ptr().cast(), value.len()) })?;
    let text = CStr::from_bytes_until_nul(&value).map_err(|_| Error::INVALID)?;
    Ok(text.to_string_lossy().into_owned())
}

/// Sets an option.
///
/// # Errors
/// `ENOENT` for an unknown name, `EINVAL` for a value that does not fit; then nothing changed.
pub fn set_option(name: &str, value: &str) -> Result<()> {
    let (name, value) = (terminated(name)?, terminated(value)?);
    // SAFETY: both texts end with a 0.
    check(unsafe { sys::tslab_option_set(name.as_ptr(), value.as_ptr()) })
}

fn terminated(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::INVALID)
}

/// Gives free memory back to the system, but for `keep_bytes` bytes. Whether there was some.
pub fn trim(keep_bytes: usize) -> bool {
    // SAFETY: it takes nobody's memory.
    unsafe { sys::tslab_trim(keep_bytes) != 0 }
}

/// The version of the allocator.
pub fn version() -> &'static str {
    // SAFETY: a text that is there for ever.
    let text = unsafe { CStr::from_ptr(sys::tslab_version()) };
    text.to_str().unwrap_or_default()
}
