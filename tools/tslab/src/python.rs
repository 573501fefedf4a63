//! Python, which allocates small objects in arenas of its own unless it is told not to.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::elf;

/// The variable that chooses its allocator.
pub const VARIABLE: &str = "PYTHONMALLOC";

// Its objects up to so many bytes do not come from malloc.
const SMALL_BYTES: u32 = 512;

/// What limits the figures of a program that runs with this value of the variable, if it is Python.
pub fn note(program: &Path, value: Option<&OsStr>) -> Option<String> {
    let is_told = value.is_some_and(|value| value.as_bytes().starts_with(b"malloc"));
    (is_python(program) && !is_told).then(|| {
        format!(
            "Python allocates objects up to {SMALL_BYTES} bytes in arenas of its own, which hide \
             them: start it with {VARIABLE}=malloc in its environment to see them"
        )
    })
}

/// Whether a process is Python and does so, as far as the system shows how it was started.
pub fn hides_objects(pid: u32) -> bool {
    note_of_process(pid).is_some()
}

/// The same as `note` of a process.
pub fn note_of_process(pid: u32) -> Option<String> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = variables.split(|&byte| byte == 0).find_map(|one| {
        let (name, value) = one.split_at_checked(VARIABLE.len() + 1)?;
        (name.strip_suffix(b"=") == Some(VARIABLE.as_bytes())).then_some(value)
    });
    note(&program, value.map(OsStr::from_bytes))
}

// The interpreter itself, or a script whose first line names it.
fn is_python(program: &Path) -> bool {
    is_named_so(program) || elf::first_line(program).is_some_and(|line| names_python(&line))
}

fn names_python(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace);
    words.any(|word| is_named_so(Path::new(OsStr::from_bytes(word))))
}

// Such as python, python3, python3.13t.
fn is_named_so(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let version = name.strip_prefix("python").map(|rest| rest.trim_end_matches(['d', 't']));
    version.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_is_known_by_its_name() {
        for name in ["/usr/bin/python3", "python", "python3.12", "python3.13t", "python3.11d"] {
            assert!(is_python(Path::new(name)), "{name}");
        }
        for name in ["/usr/bin/pypy3", "python-config", "pythonic", "/", "", "/proc/self/exe"] {
            assert!(!is_python(Path::new(name)), "{name}");
        }
        assert!(names_python(b"/usr/bin/env -S python3 -E"));
        assert!(names_python(b" /opt/bin/python3.12"));
        assert!(!names_python(b"/bin/sh -e"));
    }

    #[test]
    fn scripts_of_python_are_python() {
        let name = format!("tslab-python-{}", std::process::id());
        let script = std::env::temp_dir().join(name);
        fs::write(&script, "#!/usr/bin/env python3\nprint()\n").unwrap();
        assert!(is_python(&script));
        fs::write(&script, "#!/bin/sh\npython3\n").unwrap();
        assert!(!is_python(&script));
        fs::remove_file(script).unwrap();
    }

    #[test]
    fn small_objects_are_hidden_unless_malloc_has_them() {
        let python = Path::new("/usr/bin/python3");
        for value in [None, Some("debug"), Some("pymalloc"), Some("")] {
            let note = note(python, value.map(OsStr::new)).unwrap();
            assert!(note.contains("PYTHONMALLOC=malloc"), "{note}");
        }
        for value in ["malloc", "malloc_debug"] {
            assert_eq!(note(python, Some(OsStr::new(value))), None);
        }
        assert_eq!(note(Path::new("/bin/sh"), None), None);
        assert_eq!(note_of_process(std::process::id()), None);
        assert_eq!(note_of_process(u32::MAX), None);
    }
}
