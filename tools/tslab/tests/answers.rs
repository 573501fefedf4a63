//! The answers have what the page reads of them: names and kinds of values.

mod common;
mod place;
#[path = "../src/rows.rs"]
mod rows;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use common::{Image, add_samples, sample};
use place::Directory;

const EXPECTED: &str = include_str!("../page/src/api/answers.ts");

const NOBODY: u32 = 4_000_000;

/// Each interface of the page's, with the names and types of its members.
struct Interfaces {
    known: HashMap<&'static str, Vec<(&'static str, &'static str)>>,
    /// Lists by where they stand, and whether any answer had something in it.
    lists: RefCell<BTreeMap<String, bool>>,
}

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
        Self { known, lists: RefCell::default() }
    }

    fn check(&self, kind: &str, value: &Value, place: &str) {
        let optional = kind.strip_suffix(" | null");
        let list = kind.strip_prefix("readonly ").and_then(|kind| kind.strip_suffix("[]"));
        let is_right = match (kind, optional, list) {
            _ if self.known.contains_key(kind) => return self.check_members(kind, value, place),
            (.., Some(one)) => {
                let values = value.as_array().unwrap_or_else(|| panic!("{place}: {value}"));
                let is_some = !values.is_empty() || one == "string";
                *self.lists.borrow_mut().entry(place.to_owned()).or_default() |= is_some;
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
        for (key, kind) in &self.known[name] {
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

// It loses objects outside of epochs, and of its shared epoch no sample is old enough yet.
fn losing(pid: u32) -> Image {
    let mut image = sample(pid, 7);
    add_samples(&mut image);
    image.set_all("epochs", 7, &[("state", 3), ("closed_ms", 0), ("opened_ms", 1)]);
    image.set("sites", 4, "frees", 0);
    let (told_ms, lived_ms) = (image.told_ms, image.told_ms - image.made_ms);
    for row in 1..=5 {
        image.set("samples", row, "sampled_ms", told_ms - 29_000);
    }
    for (row, age_ms) in (6..).zip((0..lived_ms).step_by(5_000)) {
        image.reach("samples", row);
        let address = row as u64 * 0x100_000;
        let values = [("site", 4), ("address", address), ("bytes", 100_000), ("epoch", 0)];
        image.set_all("samples", row, &values);
        image.set("samples", row, "sampled_ms", told_ms - age_ms);
    }
    image
}

fn answers() -> [(&'static str, Value); 8] {
    let files = Directory::new();
    let mut image = sample(NOBODY, 7);
    add_samples(&mut image);
    files.add(&image);
    files.add(&losing(NOBODY + 1));
    let pid = NOBODY.to_string();
    [
        ("Processes", files.json(&["ps"])),
        ("Stats", files.json(&["stats", &pid])),
        ("Epochs", files.json(&["epochs", &pid])),
        ("Leaks", files.json(&["leaks", &pid])),
        ("Leaks", files.json(&["leaks", &(NOBODY + 1).to_string()])),
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
    for (place, is_some) in interfaces.lists.take() {
        assert!(is_some, "no answer has anything in {place}");
    }
    let members = &interfaces.known["Epochs"];
    assert_eq!(
        (members[0], members.last()),
        (("pid", "number"), Some(&("epochs", "readonly Epoch[]")))
    );
}
