//! The one sentence that the samples of a run come to.

use serde::Serialize;

use super::places::Places;
use super::predicted::Resident;
use super::rounds::Run;
use crate::sampling::whole;
use crate::text;

// With fewer samples nothing is said of places.
const ENOUGH_SAMPLES: usize = 100;

// Of all bytes, those that live when the program ends, so that it is no use to look further.
const NEARLY_ALL_PERCENT: u64 = 90;

/// What kind of a sentence it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Places were found.
    Scope,
    /// None was, but an epoch for each phase or thread would save memory.
    Span,
    /// There are too few samples.
    Thin,
    /// The program's functions have no names.
    Nameless,
    /// Nearly all lives until the end.
    Lives,
    /// Next to nothing would be saved.
    Vain,
    /// No function's objects die in its rounds.
    Outlives,
}

/// The sentence.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Whatever its words.
    pub kind: Kind,
    /// For people.
    pub text: String,
}

impl Verdict {
    /// Whether something would be saved.
    pub fn helps(&self) -> bool {
        matches!(self.kind, Kind::Scope | Kind::Span)
    }

    /// Of a run and its places. `span`: what an epoch for each of would save memory.
    pub fn of(run: &Run, places: &Places, span: Option<&str>) -> Self {
        let lives = lives_percent(run);
        let kind = match () {
            () if run.objects.len() < ENOUGH_SAMPLES => Kind::Thin,
            () if lives >= NEARLY_ALL_PERCENT => Kind::Lives,
            () if places.is_nameless => Kind::Nameless,
            () if !places.found.is_empty() => Kind::Scope,
            () if span.is_some() => Kind::Span,
            () if !places.vain.is_empty() => Kind::Vain,
            () => Kind::Outlives,
        };
        let text = match kind {
            Kind::Thin => format!(
                "only {} were taken, which is too few to say where a scope belongs: give the \
                 program more to do, or fewer --bytes",
                text::count(Some(run.objects.len() as u64), "sample")
            ),
            Kind::Lives => {
                format!("no epoch would help: {lives} % of what was allocated lived until the end")
            }
            Kind::Nameless => "the program's functions have no names, and where a scope belongs \
                               cannot be said: it was stripped; build it with -g, or install its \
                               debugging information"
                .to_owned(),
            Kind::Scope => "scopes would save memory at these places".to_owned(),
            Kind::Span => format!(
                "no function is found whose objects die before its next round, but an epoch for \
                 each {} would save memory",
                span.unwrap_or_default()
            ),
            Kind::Vain => vain(places.vain[0].outcome()),
            Kind::Outlives => "no epoch would help: no function is found whose objects die \
                               before its next round; closest:"
                .to_owned(),
        };
        Self { kind, text }
    }
}

fn lives_percent(run: &Run) -> u64 {
    let sum = |lives: bool| -> f64 {
        let some = run.objects.iter().filter(|object| !lives || object.ended.is_none());
        some.map(|object| object.bytes).sum()
    };
    whole(100.0 * sum(true) / sum(false).max(1.0))
}

fn vain((function, then, now): (&str, Resident, Resident)) -> String {
    format!(
        "no epoch would help: a scope around {}, whose objects die in it, saves next to nothing: \
         resident {} instead of {} at the peak, {} instead of {} behind",
        text::printable(function),
        text::bytes(Some(then.peak_bytes)),
        text::bytes(Some(now.peak_bytes)),
        text::bytes(Some(then.trough_bytes)),
        text::bytes(Some(now.trough_bytes)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::advise::rounds::Object;
    use crate::commands::advise::stacks::Stacks;

    fn kind(samples: usize, dead: usize, places: &Places, span: Option<&str>) -> Kind {
        let ended = |number| (number < dead).then_some(number);
        let object = |number| Object { begun: number, ended: ended(number), bytes: 1.0 };
        let objects: Vec<_> = (0..samples).map(object).collect();
        let stacks = Stacks::default();
        let verdict =
            Verdict::of(&Run { events: &[], stacks: &stacks, objects: &objects }, places, span);
        assert!(!verdict.text.is_empty());
        verdict.kind
    }

    #[test]
    fn what_is_not_known_is_said_first() {
        let named = Places::default();
        assert_eq!(kind(99, 99, &named, Some("phase")), Kind::Thin);
        assert_eq!(kind(100, 10, &named, Some("phase")), Kind::Lives);
        assert_eq!(kind(100, 11, &named, None), Kind::Outlives);
        assert_eq!(kind(100, 11, &named, Some("phase")), Kind::Span);
        let nameless = Places { is_nameless: true, ..Places::default() };
        assert_eq!(kind(100, 100, &nameless, None), Kind::Nameless);
    }
}
