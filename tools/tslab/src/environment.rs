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
}
