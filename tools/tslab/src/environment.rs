//! Options of the library, as the environment sets them that a process was started with.
//!
//! A program that changes its title may write over its environment.

use std::fs;

/// None: the system does not tell.
pub fn of(pid: u32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    Some(String::from_utf8_lossy(&environment).into_owned())
}

/// What an environment says of an option; a variable of its own wins.
pub fn option<'a>(environment: &'a str, name: &str) -> Option<&'a str> {
    let variable = |name: &str| {
        environment.split('\0').find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
    };
    let in_list = || {
        let options = variable("TSLAB_CONF")?.split(',');
        options.filter_map(|one| one.trim().strip_prefix(name)?.strip_prefix(':')).next_back()
    };
    let value = variable(&format!("TSLAB_{}", name.to_uppercase())).or_else(in_list);
    value.map(str::trim)
}

/// Whether a process was started with a soft limit.
pub fn has_soft_limit(pid: u32) -> bool {
    of(pid).is_some_and(|environment| sets_soft_limit(&environment))
}

fn sets_soft_limit(environment: &str) -> bool {
    option(environment, "soft_limit").is_some_and(|value| value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_its_own_wins() {
        let environment = "A=b\0TSLAB_CONF=stats:true, helper:0,helper:1\0TSLAB_THP=never";
        assert_eq!(option(environment, "helper"), Some("1"));
        assert_eq!(option(environment, "thp"), Some("never"));
        assert_eq!(option(environment, "stat"), None);
        assert_eq!(option("TSLAB_HELPER=auto\0TSLAB_CONF=helper:never", "helper"), Some("auto"));
        assert_eq!(option("XTSLAB_HELPER=never", "helper"), None);
    }

    #[test]
    fn a_soft_limit_is_one_that_is_not_0() {
        for limited in ["TSLAB_SOFT_LIMIT=32M", "TSLAB_CONF=soft_limit:cgroup"] {
            assert!(sets_soft_limit(limited), "{limited}");
        }
        assert!(!sets_soft_limit("TSLAB_SOFT_LIMIT=0") && !sets_soft_limit("A=b"));
    }
}
