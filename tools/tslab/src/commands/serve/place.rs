//! Where the history lies.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// For servers of the whole machine.
const OF_ROOT: &str = "/var/lib";
const NAME: &str = "tslab/history.db";

/// The file that `--history` names, or else the usual one. None: there is to be none.
pub fn find(option: Option<&Path>) -> Option<PathBuf> {
    match option {
        Some(path) if path == Path::new("none") => None,
        Some(path) => Some(path.to_owned()),
        None if geteuid().is_root() => Some(Path::new(OF_ROOT).join(NAME)),
        None => usual(env::var_os("XDG_STATE_HOME"), env::var_os("HOME")),
    }
}

// As the XDG Base Directory Specification has it: relative paths count for nothing.
fn usual(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<_>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute(state).or_else(|| Some(absolute(home)?.join(".local/state")))?;
    Some(state.join(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_goes_first() {
        assert_eq!(find(Some(Path::new("none"))), None);
        assert_eq!(find(Some(Path::new("./none"))), Some("./none".into()));
    }

    #[test]
    fn the_usual_file_is_among_what_the_user_s_programs_remember() {
        let of = |state: &str, home: &str| usual(Some(state.into()), Some(home.into()));
        assert_eq!(of("/state", "/users/x"), Some("/state/tslab/history.db".into()));
        let in_home = Some("/users/x/.local/state/tslab/history.db".into());
        assert_eq!((of("state", "/users/x"), of("", "/users/x")), (in_home.clone(), in_home));
        assert_eq!((of("", ""), usual(None, None)), (None, None));
    }
}
