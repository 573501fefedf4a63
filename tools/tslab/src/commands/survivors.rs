//! Who allocated the objects that outlived their epoch, as far as they were sampled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Serialize;

use super::growth::{Growth, Verdict};
use super::ignored::Ignored;
use super::kept::Kept;
use super::{Subject, profile};
use crate::names::Names;
use crate::sampling::{LiveSample, Sampling, Site, whole};
use crate::snapshot::{DEFAULT_EPOCH, Survivors};
use crate::symbols::Line;
use crate::text;

// In text; JSON has all.
const SHOWN_CALLS: usize = 3;
const SHOWN_STACKS: usize = 5;
const SHOWN_NAME: usize = 60;

/// Sampled survivors of one class that were allocated by the same calls.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Stack {
    /// None: blocks of whole units.
    class_bytes: Option<u64>,
    /// How many were sampled.
    samples: u64,
    /// For how many they stand.
    estimated_objects: u64,
    #[serde(skip)]
    bytes: u64,
    /// Of the class's sampled survivors, in percent.
    percent: u64,
    /// The oldest of them was allocated so long ago.
    age_ms: u64,
    /// Whether all samples of the same calls in epochs of the label become more.
    growth: Option<Growth>,
    /// As many as live were as old before they were freed.
    #[serde(skip)]
    has_ended: bool,
    /// Innermost first, without the allocator's own.
    calls: Vec<Call>,
    /// Of the sampled ones, when they are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<String>>,
}

/// A function on a call stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Call {
    function: String,
    file: Option<String>,
    line: Option<u32>,
}

impl Call {
    /// What is known of it.
    pub fn of(line: &Line) -> Self {
        Self { function: line.function.clone(), file: line.file.clone(), line: line.number }
    }

    /// Of bounded length.
    pub fn name(&self) -> String {
        let name = text::printable(&self.function);
        match name.char_indices().nth(SHOWN_NAME) {
            Some((end, _)) => format!("{}...", &name[..end]),
            None => name,
        }
    }

    /// Such as "http.c:211"; empty when it is not known.
    pub fn place(&self) -> String {
        text::place(self.file.as_deref(), self.line)
    }
}

/// The sampled survivors of a process, by epoch.
pub(super) struct Stacks<'a> {
    kept: Kept<'a>,
    names: Names,
}

impl<'a> Stacks<'a> {
    /// None when the process tells nothing of samples.
    pub fn read(before: Option<&'a Subject>, subject: &'a Subject, least_ms: u64) -> Option<Self> {
        let kept = Kept::read(before, subject, least_ms)?;
        let sites = subject.snapshot.sampling.iter().flat_map(Sampling::live_sites);
        let calls: BTreeSet<_> = sites.flat_map(Site::calls).collect();
        Some(Self { kept, names: profile::names(subject, &calls) })
    }

    /// Those of the default epoch that keep more and more, and free few.
    pub fn growing(&self, until_ms: u64) -> Vec<Stack> {
        let grows = |stack: &Stack| {
            stack.growth.is_some_and(|growth| growth.verdict == Verdict::Grows) && !stack.has_ended
        };
        let mut stacks = self.of(std::iter::once(DEFAULT_EPOCH), until_ms);
        stacks.retain(grows);
        stacks
    }

    /// The stacks of some epochs by class, those that stand for more first; of objects allocated
    /// before `until_ms`.
    pub fn of(&self, ids: impl Iterator<Item = u64>, until_ms: u64) -> Vec<Stack> {
        let mut groups = BTreeMap::<_, Vec<&LiveSample>>::new();
        let all = ids.flat_map(|id| self.kept.of_epoch(id));
        for live in all.filter(|live| live.sampled_ms < until_ms) {
            let site = self.kept.site(live);
            // Blocks of whole units come last.
            let class = site.class_bytes.unwrap_or(u64::MAX);
            let calls = self.names.user_calls(site);
            let lines = calls.iter().flat_map(|call| self.names.lines(*call));
            groups.entry((class, lines.collect::<Vec<_>>())).or_default().push(live);
        }
        let mut classes = BTreeMap::<u64, f64>::new();
        for ((class, _), group) in &groups {
            *classes.entry(*class).or_default() += self.kept.objects(group);
        }
        let mut stacks: Vec<_> = groups
            .iter()
            .map(|((class, lines), group)| self.stack(*class, lines, group, classes[class]))
            .collect();
        stacks.sort_by_key(|stack| {
            let class = stack.class_bytes.unwrap_or(u64::MAX);
            (class, std::cmp::Reverse(stack.estimated_objects))
        });
        stacks
    }

    // `of`: objects for which all samples of the class stand.
    fn stack(&self, class: u64, lines: &[Line], group: &[&LiveSample], of: f64) -> Stack {
        let objects = self.kept.objects(group);
        let addresses = group.iter().map(|live| format!("{:#x}", live.address));
        Stack {
            class_bytes: (class != u64::MAX).then_some(class),
            samples: group.len() as u64,
            estimated_objects: whole(objects),
            bytes: whole(self.kept.bytes(group)),
            percent: whole(100.0 * objects / of),
            age_ms: self.kept.age_ms(group),
            growth: self.kept.growth(group),
            has_ended: self.kept.has_ended(group),
            calls: lines.iter().map(Call::of).collect(),
            addresses: Some(addresses.collect()),
        }
    }
}

/// Whether there are some, and all are allocated by functions that are passed over.
pub(super) fn are_ignored(stacks: &[Stack], ignored: &Ignored) -> bool {
    let is_known =
        |stack: &Stack| stack.calls.iter().any(|call| ignored.has_function(&call.function));
    !stacks.is_empty() && stacks.iter().all(is_known)
}

impl Stack {
    /// Addresses were not asked for.
    pub fn hide_addresses(&mut self) {
        self.addresses = None;
    }

    /// Whether these become more.
    pub fn growth(&self) -> Option<Growth> {
        self.growth
    }

    /// How many samples these are.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// How large those are for which they stand.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The innermost calls in a line. None: nobody knows.
    pub fn callers(&self) -> Option<String> {
        let calls = self.calls.iter().take(SHOWN_CALLS);
        let shown = calls.map(|call| format!("{} {}", call.name(), call.place()));
        let shown: Vec<_> = shown.map(|call| call.trim_end().to_owned()).collect();
        (!shown.is_empty()).then(|| shown.join(" <- "))
    }

    fn growth_text(&self) -> &'static str {
        match self.growth.map(|growth| growth.verdict) {
            Some(Verdict::Grows) => "  (grows)",
            Some(Verdict::TurnsOver) => "  (turns over)",
            _ => "",
        }
    }

    fn text(&self, widths: Widths) -> String {
        let mut out = String::new();
        for (number, call) in self.calls.iter().take(SHOWN_CALLS).enumerate() {
            let (name, place) = (call.name(), call.place());
            // Writing to a String does not fail.
            let _ = match number {
                0 => write!(out, "{name:<0$}  {place:<1$}", widths.name, widths.place),
                _ => write!(out, "  <-  {name}  {place}"),
            };
            out.truncate(out.trim_end().len());
            if number == 0 && self.calls.len() > 1 {
                out += &" ".repeat(widths.both().saturating_sub(out.chars().count()));
            }
        }
        out
    }
}

// Of the innermost calls of an epoch, so that those that called them stand below each other.
#[derive(Clone, Copy)]
struct Widths {
    name: usize,
    place: usize,
}

impl Widths {
    fn both(self) -> usize {
        if self.place == 0 { self.name } else { self.name + 2 + self.place }
    }

    fn of(stacks: &[Stack]) -> Self {
        let innermost = || stacks.iter().filter_map(|stack| stack.calls.first());
        let longest = |texts: &mut dyn Iterator<Item = String>| {
            texts.map(|text| text.chars().count()).max().unwrap_or_default()
        };
        Self {
            name: longest(&mut innermost().map(Call::name)),
            place: longest(&mut innermost().map(Call::place)),
        }
    }
}

/// The classes of an epoch, with the stacks of their survivors. The number of objects is known of
/// those whose threads left; of others there is an estimate.
pub(super) fn text(classes: &[Survivors], large_objects: Option<u64>, stacks: &[Stack]) -> String {
    let widths = Widths::of(stacks);
    let of_class = |bytes: Option<u64>| -> Vec<&Stack> {
        stacks.iter().filter(|stack| stack.class_bytes == bytes).collect()
    };
    let mut counts: BTreeMap<u64, Option<u64>> =
        stacks.iter().filter_map(|stack| Some((stack.class_bytes?, None))).collect();
    let mut out = String::new();
    for class in classes {
        match class.class_bytes {
            Some(bytes) => {
                counts.insert(bytes, Some(class.objects));
            }
            None => out += &class_text("? B", Some(class.objects), &[], widths),
        }
    }
    for (bytes, objects) in counts {
        out += &class_text(&format!("{bytes} B"), objects, &of_class(Some(bytes)), widths);
    }
    let large = of_class(None);
    let large_objects = large_objects.filter(|&objects| objects > 0);
    if large_objects.is_some() || !large.is_empty() {
        out += &class_text("large", large_objects, &large, widths);
    }
    out
}

fn class_text(size: &str, objects: Option<u64>, stacks: &[&Stack], widths: Widths) -> String {
    let each = stacks.iter().map(|stack| stack.estimated_objects);
    let estimate = || each.fold(0, u64::saturating_add);
    let count = objects.map_or_else(|| format!("~{}", estimate()), |count| count.to_string());
    let mut start = format!("{size:>8}  {count:>4}");
    let mut out = String::new();
    if stacks.is_empty() {
        out = start.clone() + "\n";
    }
    for stack in stacks.iter().take(SHOWN_STACKS) {
        let share =
            if stacks.len() > 1 { format!("{:>3} %  ", stack.percent) } else { String::new() };
        // Writing to a String does not fail.
        let _ = writeln!(out, "{start}   {share}{}{}", stack.text(widths), stack.growth_text());
        out += &addresses_text(stack);
        start = " ".repeat(start.chars().count());
    }
    let further = stacks.len().saturating_sub(SHOWN_STACKS);
    if further > 0 {
        let percent: u64 = stacks[SHOWN_STACKS..].iter().map(|stack| stack.percent).sum();
        let _ = writeln!(out, "{start}   {percent:>3} %  {further} further call stacks");
    }
    out
}

fn addresses_text(stack: &Stack) -> String {
    let addresses = stack.addresses.iter().flatten();
    addresses.fold(String::new(), |out, address| out + &format!("{:>17}at {address}\n", ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::sampled;

    fn subject() -> Subject {
        Subject::of_bytes(sampled().bytes())
    }

    fn stacks() -> Vec<Stack> {
        let subject = subject();
        let mut stacks = Stacks::read(None, &subject, 0).unwrap();
        stacks.names = crate::names::of_test(&[
            (0x1000, "tsl_sample_small", "sample.c", 1),
            (0x2000, "parse_header", "src/http.c", 211),
            (0x3000, "handle", "/src/server.c", 88),
            (0x4000, "copy_name", "user.c", 40),
        ]);
        stacks.of([1 << 24 | 7].into_iter(), u64::MAX)
    }

    fn of_class(bytes: u64, objects: u64) -> Survivors {
        Survivors { class_bytes: Some(bytes), objects }
    }

    #[test]
    fn stacks_stand_beside_their_classes_with_their_shares() {
        let mut stacks = stacks();
        stacks.iter_mut().for_each(Stack::hide_addresses);
        let text = text(&[of_class(128, 340), of_class(256, 17)], None, &stacks);
        let expected = "   \
   128 B   340    75 %  parse_header  http.c:211
                  25 %  handle        server.c:88
   256 B    17   copy_name     user.c:40    <-  parse_header  http.c:211  <-  0x5000
"
        .trim_start_matches(' ');
        assert_eq!(text.trim_start_matches(' '), expected);
        assert!(text.starts_with("   128 B   340    75 %"), "{text}");
    }

    #[test]
    fn one_stack_has_all_and_addresses_are_shown_when_wanted() {
        let stacks = stacks();
        let text = text(&[], Some(3), &stacks[2..]);
        let expected = "   256 B   ~17   copy_name  user.c:40  <-  parse_header  http.c:211  \
                        <-  0x5000\n                 at 0xb000\n   large     3\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn samples_are_grouped_by_class_and_stack() {
        let stacks = stacks();
        assert_eq!(stacks.len(), 3);
        let first = &stacks[0];
        assert_eq!((first.class_bytes, first.samples(), first.percent), (Some(128), 3, 75));
        assert_eq!((first.estimated_objects, first.age_ms), (98, 61_500));
        let addresses = first.addresses.as_ref().unwrap();
        assert_eq!(addresses, &["0x7000", "0x8000", "0x9000"]);
        assert_eq!(stacks[2].calls.len(), 4);
        let json = serde_json::to_value(first).unwrap();
        assert_eq!(json["calls"][0]["function"], "parse_header");
        assert_eq!((&json["calls"][0]["line"], &json["percent"]), (&211.into(), &75.into()));
    }

    #[test]
    fn a_sample_that_stands_for_several_counts_as_several() {
        let mut image = sampled();
        image.set("samples", 5, "times", 3);
        let subject = Subject::of_bytes(image.bytes());
        let stacks = Stacks::read(None, &subject, 0).unwrap();
        let stacks = stacks.of([1 << 24 | 7].into_iter(), u64::MAX);
        assert_eq!(stacks[2].estimated_objects, 50);
    }

    #[test]
    fn of_many_stacks_the_first_are_shown() {
        let one = stacks().remove(1);
        let many = vec![one; 8];
        let text = text(&[of_class(128, 9)], None, &many);
        assert_eq!(text.lines().filter(|line| line.contains("handle")).count(), SHOWN_STACKS);
        assert!(text.ends_with(" 75 %  3 further call stacks\n"), "{text}");
    }

    #[test]
    fn calls_are_shown_without_directories_and_controls() {
        let call = |function: &str, file: Option<&str>, line| Call {
            function: function.to_owned(),
            file: file.map(ToOwned::to_owned),
            line,
        };
        assert_eq!(call("a\nb", None, None).name(), "a\\nb");
        assert_eq!(call(&"x".repeat(500), None, None).name().len(), SHOWN_NAME + 3);
        assert_eq!(call("", Some("/a/b\x1b.c"), Some(7)).place(), "b\\u{1b}.c:7");
        assert_eq!(call("", Some("b.c"), None).place(), "b.c");
    }
}
