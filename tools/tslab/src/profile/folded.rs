//! Stacks on one line each, `main;handle;parse 12345`, for tools that draw flame graphs.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Profile, View};
use crate::sampling::whole;
use crate::text;

/// One line for each stack of functions, with estimated bytes.
pub fn text(profile: &Profile, view: View) -> String {
    let mut stacks = BTreeMap::<String, f64>::new();
    for sample in &profile.samples {
        let bytes = match view {
            View::Live => sample.estimate.bytes,
            View::Cumulative => sample.estimate.alloc_bytes,
        };
        if bytes > 0.0 {
            *stacks.entry(stack(profile, &sample.key.calls)).or_default() += bytes;
        }
    }
    stacks.iter().fold(String::new(), |mut out, (stack, bytes)| {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{stack} {}", whole(*bytes));
        out
    })
}

fn stack(profile: &Profile, calls: &[u64]) -> String {
    let functions = profile.functions(calls).into_iter().rev();
    let functions: Vec<_> =
        functions.map(|name| text::printable(&name).replace(';', ":")).collect();
    functions.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::of_test;

    #[test]
    fn each_stack_is_a_line_from_its_root_on() {
        let lines = text(&of_test(), View::Live);
        let expected = "0x5000 100000\n0x6000;0x5000;handle;copy_name 4225\nhandle 12481\n\
                        parse:header 4160\n";
        assert_eq!(lines, expected);
        let allocated = text(&of_test(), View::Cumulative);
        assert!(allocated.starts_with("0x5000 200000\n"), "{allocated}");
        assert_eq!(allocated.lines().count(), 4);
    }
}
