//! What is known of both sides, side by side.

use std::collections::{BTreeMap, BTreeSet};

/// Whether more than so many percent were added. What was not there before grew without measure.
#[expect(clippy::cast_precision_loss, reason = "a tolerance is no exact number")]
pub fn grew(before: u64, after: u64, tolerance: f64) -> bool {
    after > before && (after - before) as f64 * 100.0 > before as f64 * tolerance
}

/// What is known of both sides; what one of them lacks altogether is 0 there.
pub fn pairs<K: Ord + Clone, V: Copy>(
    before: Option<&BTreeMap<K, V>>,
    after: Option<&BTreeMap<K, V>>,
    nothing: V,
) -> Vec<(K, V, V)> {
    let (Some(before), Some(after)) = (before, after) else { return Vec::new() };
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let of = |side: &BTreeMap<K, V>, key: &K| side.get(key).copied().unwrap_or(nothing);
    keys.into_iter().map(|key| (key.clone(), of(before, key), of(after, key))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tolerance_is_what_may_be_added() {
        assert!(!grew(100, 105, 5.0) && grew(100, 106, 5.0));
        assert!(!grew(100, 100, 0.0) && grew(100, 101, 0.0) && !grew(100, 99, 0.0));
        assert!(grew(0, 1, 1e9) && !grew(0, 0, 0.0));
        assert!(grew(1, u64::MAX, 5.0) && !grew(u64::MAX, 1, 5.0));
    }
}
