//! The answers have what the page reads of them: names and kinds of values.

mod common;
mod place;
#[path = "../src/rows.rs"]
mod rows;

use std::collections::HashMap;

use serde_json::Value;

use common::{add_samples, sample};
use place::Directory;

const EXPECTED: &str = include_str!("../page/src/api/answers.ts");

const NOBODY: u32 = 4_000_000;

/// Each interface of the page's, with the names and types of its members.
struct Interfaces(HashMap<&'static str, Vec<(&'static str, &'static str)>>);

impl Interfaces {
    fn of(source: &'static str) -> Self {
        let mut known = HashMap::<_, Vec<_>>::new();
        let mut name = "";
        for line in source.lines() {
            if let Some(head) = line.strip_prefix("export interface ") {
                let head = head.trim_end_matches(" {");
                let (own, base) = head.split_once(" extends ").unwrap_or((head, ""));
                let inherited = known.get(base).cloned().unwrap_or_default();
                name = own;
                known.insert(name, inherited);
            } else if let Some(member) = line.strip_prefix("  readonly ") {
                let (key, kind) = member.trim_end_matches(';').split_once(": ").unwrap();
                known.get_mut(name).unwrap().push((key, kind));
            }
        }
        Self(known)
    }

    fn check(&self, kind: &str, value: &Value, place: &str) {
        let optional = kind.strip_suffix(" | null");
        let list = kind.strip_prefix("readonly ").and_then(|kind| kind.strip_suffix("[]"));
        let is_right = match (kind, optional, list) {
            _ if self.0.contains_key(kind) => return self.check_members(kind, value, place),
            (.., Some(one)) => {
                let values = value.as_array().unwrap_or_else(|| panic!("{place}: {value}"));
                assert!(!values.is_empty() || one == "string", "{place} shows nothing of {one}");
                return values.iter().for_each(|value| self.check(one, value, place));
            }
            (_, Some(_), _) if value.is_null() => true,
            (_, Some(kind), _) => return self.check(kind, value, place),
            ("Figure", ..) => value.is_number() || value.is_null(),
            ("number", ..) => value.is_number(),
            ("boolean", ..) => value.is_boolean(),
            ("string" | "Life" | "EpochState" | "Verdict" | "Age" | "Reach", ..) => {
                value.is_string()
            }
            _ => kind.starts_with("Readonly<") && value.is_object(),
        };
        assert!(is_right, "{place} is {value}, the page expects {kind}");
    }

    fn check_members(&self, name: &str, value: &Value, place: &str) {
        for (key, kind) in &self.0[name] {
            let inner = value.get(key).unwrap_or_else(|| panic!("{place} has no {key}"));
            self.check(kind, inner, &format!("{place}.{key}"));
        }
    }
}

// The mappings of a process of which the allocator and a file have some memory.
fn smaps(files: &Directory) -> String {
    let mapping = |start: u64, name: &str| {
        format!("{start:x}-{:x} rw-p 0 00:00 0 {name}\nRss: 900 kB\n", start + (1 << 20))
    };
    let path = files.path("smaps");
    std::fs::write(&path, mapping((1 << 44) + (16 << 20), "") + &mapping(1 << 45, "/bin/x"))
        .unwrap();
    path.to_str().unwrap().to_owned()
}

fn answers() -> [(&'static str, Value); 7] {
    let files = Directory::new();
    let mut image = sample(NOBODY, 7);
    add_samples(&mut image);
    files.add(&image);
    let pid = NOBODY.to_string();
    [
        ("Processes", files.json(&["ps"])),
        ("Stats", files.json(&["stats", &pid])),
        ("Epochs", files.json(&["epochs", &pid])),
        ("Leaks", files.json(&["leaks", &pid])),
        ("Profile", files.json(&["profile", &pid])),
        ("Why", files.json(&["why", &pid, "--smaps", &smaps(&files)])),
        ("Doctor", files.json(&["doctor", &pid])),
    ]
}

#[test]
fn answers_are_as_the_page_expects() {
    let interfaces = Interfaces::of(EXPECTED);
    for (name, answer) in answers() {
        interfaces.check(name, &answer, name);
    }
    let members = &interfaces.0["Epochs"];
    assert_eq!(
        (members[0], members.last()),
        (("pid", "number"), Some(&("epochs", "readonly Epoch[]")))
    );
}
