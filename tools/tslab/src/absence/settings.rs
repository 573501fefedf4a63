//! Settings of options, as a variable or a program has them.

/// An option's value in such a list as `thp:never,stats:0`; the last one counts.
pub fn option<'a>(settings: &'a str, name: &str) -> Option<&'a str> {
    let pairs = settings.rsplit(',').filter_map(|setting| setting.split_once(':'));
    pairs.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
}

/// Whether this switches an option off that is on.
pub fn is_off(value: &str) -> bool {
    matches!(value, "0" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_counts() {
        assert_eq!(option("stats:0,thp:never,stats:1", "stats"), Some("1"));
        assert_eq!(option("stats_delay_ms:5", "stats"), None);
        assert_eq!(option("", "stats"), None);
        assert!(is_off("0") && is_off("false") && !is_off("1") && !is_off(""));
    }
}
