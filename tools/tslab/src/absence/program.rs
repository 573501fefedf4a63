//! What a program's own texts say of option `stats`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::settings::{is_off, option};

const MOST_BYTES: u64 = 1 << 30;
const MOST_TEXT_BYTES: usize = 4096;

/// How a program can switch the option off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// By what it ships with.
    Conf,
    /// By a call.
    Call,
}

// Texts of a program that tell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Text {
    Conf,
    Off,
    Call,
    Option,
}

impl Switch {
    /// `place`: of the process in /proc. `links`: the library is a file of its own, so that the
    /// program's texts are not the library's.
    pub fn of(place: &Path, links: bool) -> Option<Self> {
        Self::of_program(File::open(place.join("exe")).ok()?, links)
    }

    fn of_program(program: impl Read, links: bool) -> Option<Self> {
        let mut texts = BTreeSet::new();
        let (mut reader, mut text) = (BufReader::new(program.take(MOST_BYTES)), Vec::new());
        while reader.read_until(0, &mut text).is_ok_and(|bytes| bytes > 0) {
            texts.extend(Text::of(text.strip_suffix(&[0]).unwrap_or(&text)));
            text.clear();
        }
        let has = |some: [Text; 2]| some.iter().all(|text| texts.contains(text));
        if has([Text::Conf, Text::Off]) {
            return Some(Self::Conf);
        }
        (links && has([Text::Call, Text::Option])).then_some(Self::Call)
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::Conf => "its program's `tslab_conf` switches option `stats` off",
            Self::Call => "its program switches option `stats` off by `tslab_option_set`",
        }
    }
}

impl Text {
    fn of(text: &[u8]) -> Option<Self> {
        match text {
            b"tslab_conf" => Some(Self::Conf),
            b"tslab_option_set" => Some(Self::Call),
            b"stats" => Some(Self::Option),
            _ if text.len() > MOST_TEXT_BYTES => None,
            _ => {
                let text = std::str::from_utf8(text).ok()?;
                option(text, "stats").is_some_and(is_off).then_some(Self::Off)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &str, links: bool) -> Option<Switch> {
        Switch::of_program(texts.as_bytes(), links)
    }

    #[test]
    fn what_a_program_says_of_the_option_is_found() {
        let shipped = "\u{7f}ELF\0\0tslab_conf\0thp:never,stats:0\0";
        assert_eq!(of(shipped, true), Some(Switch::Conf));
        assert_eq!(of(shipped, false), Some(Switch::Conf));
        assert_eq!(of("tslab_conf\0stats:1\0", true), None);
        assert_eq!(of("stats:0\0", true), None, "nobody reads it");
        let called = "tslab_option_set\0x\0stats\0";
        assert_eq!(of(called, true), Some(Switch::Call));
        assert_eq!(of(called, false), None, "the library has these texts");
        assert_eq!(of("tslab_option_set\0", true), None);
        assert_eq!(of("", true), None);
    }
}
