//! Which process a question is about.

use std::fmt;

/// A number, and when the process began if the number alone would not do: it may have returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The number.
    pub pid: u32,
    /// None: the process that runs, or else the last one that had the number.
    pub start_ticks: Option<u64>,
}

impl Target {
    /// "42" or "42.777"; None: it is neither.
    pub fn parse(name: &str) -> Option<Self> {
        let (pid, start) = name.split_once('.').map_or((name, None), |(pid, at)| (pid, Some(at)));
        let start_ticks = match start {
            Some(start) => Some(number(start)?),
            None => None,
        };
        Some(Self { pid: number(pid)?.try_into().ok()?, start_ticks })
    }
}

// Digits alone: a sign is no part of a name.
fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// As commands take it.
impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self.start_ticks {
            Some(start) => write!(out, "{}.{start}", self.pid),
            None => write!(out, "{}", self.pid),
        }
    }
}

#[cfg(test)]
impl From<u32> for Target {
    fn from(pid: u32) -> Self {
        Self { pid, start_ticks: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_numbers() {
        for name in ["42", "42.777"] {
            assert_eq!(Target::parse(name).unwrap().to_string(), name);
        }
        let no_process = ["", "+42", "-1", "4294967296", "../1", "/etc/passwd", "self"];
        for name in no_process.into_iter().chain(["42.", ".7", "42.7.7", "42.+7", "42.7/1"]) {
            assert_eq!(Target::parse(name), None, "{name}");
        }
    }
}
