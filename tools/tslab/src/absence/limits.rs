//! The limits of a process by which it makes no statistics file.

use std::fs;
use std::path::Path;

use crate::text;

/// What the file takes of a limit, though most of it never gets memory (`test/tools/live.py`).
const FILE_BYTES: u64 = 170_807_296;

/// Of a limited address space the file may take such a part (`os_linux.c`).
const SPACE_SHARE: u64 = 16;

/// None: without a limit, or not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub file_bytes: Option<u64>,
    pub space_bytes: Option<u64>,
    pub files: Option<u64>,
    /// Not a limit: those that it has open.
    pub files_open: Option<u64>,
}

impl Limits {
    /// `place`: of the process in /proc.
    pub fn of(place: &Path) -> Self {
        let text = fs::read_to_string(place.join("limits")).unwrap_or_default();
        let open = fs::read_dir(place.join("fd")).ok();
        Self {
            file_bytes: soft(&text, "Max file size"),
            space_bytes: soft(&text, "Max address space"),
            files: soft(&text, "Max open files"),
            files_open: open.map(|open| open.count() as u64),
        }
    }

    /// Which of them refuses the file.
    pub fn cause(&self) -> Option<String> {
        let bytes = |value| text::bytes(Some(value));
        if let Some(most) = self.file_bytes.filter(|&most| most < FILE_BYTES) {
            return Some(format!(
                "its limit on the size of files (ulimit -f) is {}, and the file has {}, though \
                 memory for a small part of them: raise the limit",
                bytes(most),
                bytes(FILE_BYTES)
            ));
        }
        if let Some(most) = self.space_bytes.filter(|&most| most / SPACE_SHARE < FILE_BYTES) {
            return Some(format!(
                "its limit of address space (ulimit -v) is {}, and the file comes from {} on: \
                 raise the limit",
                bytes(most),
                bytes(FILE_BYTES * SPACE_SHARE)
            ));
        }
        let (files, open) = self.files.zip(self.files_open)?;
        (open >= files).then(|| {
            format!(
                "it has {open} files open, and its limit (ulimit -n) is {files}: raise the limit, \
                 and start it again"
            )
        })
    }
}

// Of a line such as `Max file size    1048576    unlimited    bytes`.
fn soft(text: &str, name: &str) -> Option<u64> {
    let values = text.lines().find_map(|line| line.strip_prefix(name))?;
    values.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limits_are_read() {
        let text = "Limit              Soft Limit  Hard Limit  Units\n\
                    Max file size      1048576     unlimited   bytes\n\
                    Max open files     20          4096        files\n\
                    Max address space  unlimited   unlimited   bytes\n";
        assert_eq!(soft(text, "Max file size"), Some(1_048_576));
        assert_eq!(soft(text, "Max open files"), Some(20));
        assert_eq!(soft(text, "Max address space"), None);
        assert_eq!(soft("", "Max file size"), None);
        let own = Limits::of(Path::new("/proc/self"));
        assert!(own.files.is_none_or(|most| own.files_open.unwrap() <= most), "{own:?}");
    }

    #[test]
    fn the_limit_that_refuses_is_named() {
        let cause = |limits: Limits| limits.cause().unwrap_or_default();
        assert_eq!(Limits::default().cause(), None);
        let wide = Limits {
            file_bytes: Some(FILE_BYTES),
            space_bytes: Some(FILE_BYTES * SPACE_SHARE),
            files: Some(20),
            files_open: Some(19),
        };
        assert_eq!(wide.cause(), None);
        let of_files = cause(Limits { file_bytes: Some(FILE_BYTES - 1), ..wide });
        assert!(of_files.contains("(ulimit -f) is 162.9 MiB"), "{of_files}");
        let of_space = cause(Limits { space_bytes: Some(2 << 30), ..wide });
        assert!(of_space.contains("(ulimit -v) is 2.0 GiB"), "{of_space}");
        let of_number = cause(Limits { files_open: Some(20), ..wide });
        assert!(of_number.contains("20 files open"), "{of_number}");
    }
}
