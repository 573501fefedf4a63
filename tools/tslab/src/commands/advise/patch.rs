//! What the advice looks like in the source: a scope around a call, as a patch if the source is
//! there.

use std::fs;
use std::path::Path;

use crate::text;

// Of other files nobody wants to see a line.
const MOST_SOURCE_BYTES: u64 = 16 << 20;

// What stands before the call, and what behind it.
struct Lines {
    before: &'static [&'static str],
    behind: &'static [&'static str],
}

const C: Lines = Lines {
    before: &[
        "tslab_epoch work = tslab_epoch_open(\"NAME\", NULL);",
        "tslab_scope here;",
        "int outside = tslab_scope_enter(&here, work);",
    ],
    behind: &["if (outside == 0) tslab_scope_leave(&here);", "tslab_epoch_close(work);"],
};
const CPP: Lines = Lines {
    before: &["tslab::epoch work{\"NAME\"};", "tslab::scope here{work};  // ends with its block"],
    behind: &[],
};
const RUST: Lines = Lines {
    before: &["let work = tslab::Epoch::open(\"NAME\")?;  // and call by work.enter(|| ...)"],
    behind: &["work.close()?;"],
};

fn lines_of(file: Option<&str>) -> Lines {
    let ending = file.and_then(|file| Path::new(file).extension()).and_then(|end| end.to_str());
    match ending {
        Some("cc" | "cpp" | "cxx" | "hpp" | "hh" | "hxx") => CPP,
        Some("rs") => RUST,
        _ => C,
    }
}

/// A function's call with a scope around it, in the language of its source. `call`: the file and
/// the line where it is called.
pub fn around(function: &str, file: Option<&str>, call: Option<(&str, u64)>) -> Vec<String> {
    // Without parameters, and their brackets.
    let name = function.split('(').next().unwrap_or(function);
    let source = call.and_then(|(file, number)| Some((file, number, line_of(file, number)?)));
    let lines = lines_of(source.as_ref().map(|(file, ..)| *file).or(file));
    let call = source.as_ref().map_or_else(|| format!("{name}(...);"), |(_, _, line)| line.clone());
    let indent: String = call.chars().take_while(|c| c.is_whitespace()).collect();
    let added = |line: &&str| format!("+{indent}{}", line.replace("NAME", name));
    let mut all = Vec::new();
    if let Some((file, number, _)) = source {
        let count = 1 + lines.before.len() + lines.behind.len();
        all.push(format!("--- {}", text::printable(file)));
        all.push(format!("+++ {}", text::printable(file)));
        all.push(format!("@@ -{number} +{number},{count} @@"));
    }
    all.extend(lines.before.iter().map(added));
    all.push(format!(" {call}"));
    all.extend(lines.behind.iter().map(added));
    all
}

fn line_of(file: &str, number: u64) -> Option<String> {
    let path = Path::new(file);
    let about = fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > MOST_SOURCE_BYTES {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().nth(usize::try_from(number).ok()?.checked_sub(1)?)?;
    let is_plain = line.chars().all(|c| c == '\t' || !c.is_control());
    is_plain.then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_language_is_spoken() {
        let first = |file| around("serve(int)", file, None)[0].clone();
        assert_eq!(first(Some("/a/b.cc")), "+tslab::epoch work{\"serve\"};");
        assert!(first(Some("b.rs")).starts_with("+let work"));
        for file in [Some("b.c"), Some("b.h"), None] {
            let lines = around("serve", file, None);
            assert!(lines[0].starts_with("+tslab_epoch work"), "{file:?}");
            assert_eq!(lines[3], " serve(...);", "{file:?}");
        }
    }

    #[test]
    fn a_source_that_is_there_is_patched() {
        let name = format!("tslab-patch-{}.c", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = path.to_str().unwrap();
        fs::write(&path, "int main(void) {\n  int left = serve(3);\n}\n").unwrap();
        let lines = around("serve", None, Some((file, 2)));
        assert_eq!(lines[0], format!("--- {file}"));
        assert_eq!(lines[2], "@@ -2 +2,6 @@");
        assert!(lines[3].starts_with("+  tslab_epoch work"), "{lines:?}");
        assert_eq!(lines[6], "   int left = serve(3);");
        assert_eq!(lines.len(), 9);
        let lines = around("serve", None, Some((file, 9)));
        assert_eq!(lines[3], " serve(...);", "a line that is not there");
        fs::remove_file(path).unwrap();
    }
}
