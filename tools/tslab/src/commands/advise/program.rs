//! What a program's file says before it is started.

use std::fs;
use std::path::Path;

use object::{Object, ObjectSymbol};

// Of larger ones nothing is said.
const MOST_BYTES: u64 = 1 << 30;

/// Whether a program brings its own allocator, which the loader prefers to ours.
pub fn has_own_malloc(program: &Path) -> bool {
    let is_small = fs::metadata(program).is_ok_and(|file| file.len() <= MOST_BYTES);
    let Some(bytes) = is_small.then(|| fs::read(program).ok()).flatten() else { return false };
    let Ok(file) = object::File::parse(&*bytes) else { return false };
    let defines = |wanted: &[u8]| {
        let mut symbols = file.dynamic_symbols().chain(file.symbols());
        symbols.any(|symbol| symbol.is_definition() && symbol.name_bytes() == Ok(wanted))
    };
    defines(b"malloc") && !defines(b"tslab_epoch_open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_c_library_have_none() {
        assert!(!has_own_malloc(&std::env::current_exe().unwrap()));
        assert!(!has_own_malloc(Path::new("/no/such")));
        assert!(!has_own_malloc(Path::new("/etc/passwd")));
    }
}
