//! Times by decade: how many blocks lived, or have lived so far, for how long.

use crate::rows::{DECADES, SHORT_MS};

/// How many decades are told apart. The first is all below `SHORT_MS`, since the library's clock
/// has a grain of several ms; the last has no end.
pub const COUNT: usize = DECADES as usize;

/// What people read of each.
pub const NAMES: [&str; COUNT] =
    ["0-10ms", "10-100ms", "0.1-1s", "1-10s", "10-100s", "100-1000s", "1000s+"];

/// Where a decade ends, in ms, which is not of it; None: nowhere.
pub fn end_ms(decade: usize) -> Option<u64> {
    let power = u32::try_from(decade).ok().filter(|_| decade < COUNT - 1)?;
    Some(u64::from(SHORT_MS) * 10_u64.pow(power))
}

/// That of a time.
pub fn of_ms(ms: u64) -> usize {
    let decade = (0..COUNT).find(|&decade| end_ms(decade).is_none_or(|end_ms| ms < end_ms));
    decade.unwrap_or(COUNT - 1)
}

/// Numbers of blocks, each decade's: estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decades(pub [f64; COUNT]);

impl Decades {
    /// Blocks for all of which it took `ms`.
    pub fn of_ms(ms: u64, objects: f64) -> Self {
        let mut all = Self::default();
        all.0[of_ms(ms)] = objects;
        all
    }

    /// Both together.
    pub fn add(&mut self, other: Self) {
        for (sum, objects) in self.0.iter_mut().zip(other.0) {
            *sum += objects;
        }
    }

    /// That of the block in the middle: half of them took no longer. None: there are no blocks.
    pub fn median(&self) -> Option<usize> {
        let half = self.0.iter().sum::<f64>() / 2.0;
        let mut sum = 0.0;
        (0..COUNT).find(|&decade| {
            sum += self.0[decade];
            sum > 0.0 && sum >= half
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decade_ends_where_the_next_begins() {
        let ends: Vec<_> = (0..=COUNT).filter_map(end_ms).collect();
        assert_eq!(ends, [10, 100, 1_000, 10_000, 100_000, 1_000_000]);
        let decade = |ms| Decades::of_ms(ms, 1.0).median();
        for (number, end_ms) in ends.into_iter().enumerate() {
            assert_eq!((decade(end_ms - 1), decade(end_ms)), (Some(number), Some(number + 1)));
        }
        assert_eq!((decade(0), decade(u64::MAX)), (Some(0), Some(COUNT - 1)));
    }

    #[test]
    fn half_of_the_blocks_took_no_longer_than_the_median() {
        let median = |counts| Decades(counts).median();
        assert_eq!(median([0.0; COUNT]), None);
        assert_eq!(median([5.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0]), Some(0));
        assert_eq!(median([5.0, 0.0, 0.0, 0.0, 0.0, 6.0, 0.0]), Some(5));
        assert_eq!(median([0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), Some(2));
    }

    #[test]
    fn decades_are_added_up() {
        let mut sum = Decades::of_ms(50, 2.5);
        sum.add(Decades([2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 6.0]));
        assert_eq!(sum, Decades([2.0, 6.5, 0.0, 0.0, 0.0, 0.0, 6.0]));
    }
}
