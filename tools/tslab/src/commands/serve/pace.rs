//! How often the watch asks the system what is resident of each process.

use std::time::{Duration, Instant};

use super::store::STEP_S;

/// As the command line says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At a look of the watch that comes so long after the last one, or later.
    Every(Duration),
    /// What needs it is not told.
    Never,
}

impl Pace {
    /// Understands seconds, or "never".
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Never);
        }
        match text.parse::<u64>() {
            Ok(seconds) if seconds >= STEP_S => Ok(Self::Every(Duration::from_secs(seconds))),
            _ => Err(format!("a number of seconds from {STEP_S} on is wanted, or \"never\"")),
        }
    }

    /// Whether the system is asked at all.
    pub fn walks(self) -> bool {
        self != Self::Never
    }

    /// Whether processes are to be judged anew. Without what is resident it costs next to nothing.
    pub fn is_due(self, last: Option<Instant>, now: Instant) -> bool {
        match self {
            Self::Every(time) => last.is_none_or(|last| now.duration_since(last) >= time),
            Self::Never => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_never_are_understood() {
        assert_eq!(Pace::parse("10"), Ok(Pace::Every(Duration::from_secs(10))));
        assert_eq!(Pace::parse("never"), Ok(Pace::Never));
        for text in ["9", "0", "-1", "1.5", "", "always"] {
            assert!(Pace::parse(text).is_err_and(|why| why.contains("from 10 on")), "{text}");
        }
    }

    #[test]
    fn a_walk_is_due_when_its_time_has_passed() {
        let (pace, start) = (Pace::Every(Duration::from_secs(30)), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(pace.walks() && pace.is_due(None, start));
        assert!(!pace.is_due(Some(start), after(29)) && pace.is_due(Some(start), after(30)));
        assert!(!Pace::Never.walks() && Pace::Never.is_due(Some(start), start));
    }
}
