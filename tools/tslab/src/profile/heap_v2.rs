//! The heap profile that gperftools and tcmalloc write: samples as they were taken, which readers
//! weigh themselves, and the process's mappings, by which they find functions.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Amount, Profile};
use crate::sampling::whole;

/// The text, of which `pprof` and `jeprof` tell the form by its first line.
pub fn text(profile: &Profile) -> String {
    let mut stacks = BTreeMap::<(&[u64], Option<u64>), Amount>::new();
    let mut total = Amount::default();
    for sample in &profile.samples {
        let key = (sample.key.calls.as_slice(), sample.key.class_bytes);
        stacks.entry(key).or_default().add(sample.sampled);
        total.add(sample.sampled);
    }
    let mut out = format!("heap profile: {} @ heap_v2/{}\n", counts(total), profile.weight_bytes);
    for ((calls, _), amount) in stacks {
        out += &counts(amount);
        out += " @";
        for call in calls {
            // Readers take them for return addresses. Writing to a String does not fail.
            let _ = write!(out, " {:#x}", call.wrapping_add(1));
        }
        out.push('\n');
    }
    out + "\nMAPPED_LIBRARIES:\n" + &printable(&profile.names.maps_text)
}

// Files may be named in a way that controls a terminal.
fn printable(maps: &str) -> String {
    let harmless = |char: char| if char.is_control() && char != '\n' { '?' } else { char };
    maps.chars().map(harmless).collect()
}

fn counts(amount: Amount) -> String {
    let Amount { alloc_objects, alloc_bytes, objects, bytes } = amount;
    let [objects, bytes] = [objects, bytes].map(whole);
    let [alloc_objects, alloc_bytes] = [alloc_objects, alloc_bytes].map(whole);
    format!("{objects:6}: {bytes:8} [{alloc_objects:6}: {alloc_bytes:8}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::of_test;

    #[test]
    fn samples_are_as_they_were_taken() {
        let mut profile = of_test();
        profile.names.maps_text = "1000-2000 r-xp 00000000 08:01 42 /opt/\x1bserver\n".to_owned();
        let expected = "\
heap profile:      6:   100768 [    27:   203712] @ heap_v2/4096
     3:      384 [    20:     2560] @ 0x2001
     1:      128 [     1:      128] @ 0x3001
     1:      256 [     4:     1024] @ 0x4001 0x2001 0x5001 0x6001
     1:   100000 [     2:   200000] @ 0x5001

MAPPED_LIBRARIES:
1000-2000 r-xp 00000000 08:01 42 /opt/?server
";
        assert_eq!(text(&profile), expected);
    }
}
