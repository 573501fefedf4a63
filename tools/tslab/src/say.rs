//! What the user is told beside the output.

use std::io::{self, Write};

/// One line on standard error.
pub fn say(what: &str) {
    // Nobody is left to tell when it is closed.
    let _ = writeln!(io::stderr(), "tslab: {what}");
}
