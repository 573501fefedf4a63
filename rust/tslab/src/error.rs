//! error: why a call was refused.

use std::ffi::{CStr, c_int};
use std::{fmt, io};

/// An errno value with the allocator's own text for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Error(c_int);

/// What functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An argument that does not fit: `EINVAL`.
    pub(crate) const INVALID: Self = Self(22);

    /// The errno value: `ENOMEM`, `ESTALE`, `ECANCELED`, ...
    pub fn raw_os_error(self) -> i32 {
        self.0
    }

    /// What `errno` says after a function that returns a value of its own on failure.
    pub(crate) fn last() -> Self {
        Self(io::Error::last_os_error().raw_os_error().unwrap_or_default())
    }
}

/// What a function says that returns 0 or an errno value.
pub(crate) fn check(error: c_int) -> Result<()> {
    if error == 0 { Ok(()) } else { Err(Error(error)) }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: every number has a text that is there for ever.
        let text = unsafe { CStr::from_ptr(tslab_sys::tslab_error_text(self.0)) };
        out.write_str(&text.to_string_lossy())
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(io::Error::from_raw_os_error(error.0).kind(), error)
    }
}
