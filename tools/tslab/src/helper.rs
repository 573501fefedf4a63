//! The thread by which a process gives memory back while it idles (option `helper`).

use std::fs;

use serde::{Deserialize, Serialize};

use crate::environment;

// As the library names it.
const NAME: &[u8] = b"tslab-helper";

/// Whether there is one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Helper {
    /// It runs.
    Runs,
    /// There is none now: nothing was to be given back, or the system refused it.
    Absent,
    /// The process was started with `helper:never`.
    Never,
}

impl Helper {
    /// Of a process that runs. None: the system does not tell.
    pub fn of(pid: u32) -> Option<Self> {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let name = |thread: fs::DirEntry| fs::read(thread.path().join("comm")).ok();
        if threads.flatten().filter_map(name).any(|name| name.trim_ascii_end() == NAME) {
            return Some(Self::Runs);
        }
        Self::absent(&environment::of(pid)?)
    }

    // Why there is none. A program that changes its title may write over its environment.
    fn absent(environment: &str) -> Option<Self> {
        let is_known = environment.contains('=');
        let kind = if is_never(environment) { Self::Never } else { Self::Absent };
        is_known.then_some(kind)
    }
}

fn is_never(environment: &str) -> bool {
    let value = environment::option(environment, "helper");
    value.is_some_and(|value| ["never", "0", "false"].contains(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_that_none_is_wanted() {
        for never in
            ["A=b\0TSLAB_HELPER=never", "TSLAB_CONF=stats:true,helper:0", "TSLAB_HELPER=false"]
        {
            assert!(is_never(never), "{never}");
        }
        let others = [
            "",
            "TSLAB_HELPER=auto\0TSLAB_CONF=helper:never",
            "XTSLAB_HELPER=never",
            "TSLAB_CONF=x",
        ];
        for other in others {
            assert!(!is_never(other), "{other}");
        }
    }

    #[test]
    fn an_environment_that_was_written_over_tells_nothing() {
        for environment in ["", "\0\0\0", "redis-server *:6379\0\0"] {
            assert_eq!(Helper::absent(environment), None, "{environment:?}");
        }
        assert_eq!(Helper::absent("A=b"), Some(Helper::Absent));
        assert_eq!(Helper::absent("TSLAB_HELPER=never"), Some(Helper::Never));
    }

    #[test]
    fn this_process_has_none() {
        assert_eq!(Helper::of(std::process::id()), Some(Helper::Absent));
        assert_eq!(Helper::of(u32::MAX), None);
    }
}
