//! What people know and do not want to be told of again: labels, and functions that allocate.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, anyhow};
use clap::Args;

use crate::text::{self, matches};

/// What is to be passed over.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
pub struct Arguments {
    /// Pass over `label:TEXT` or `function:TEXT`, where * in TEXT stands for anything
    #[arg(long, value_name = "PATTERN")]
    ignore: Vec<Pattern>,

    /// The same, a pattern a line; lines that begin with # are comments
    #[arg(long, value_name = "FILE")]
    ignore_file: Vec<PathBuf>,
}

/// Patterns of the option and of files.
#[derive(Clone, Debug, Default)]
pub struct Ignored(Vec<Pattern>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Label(String),
    Function(String),
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("label", pattern)) => Ok(Self::Label(pattern.to_owned())),
            Some(("function", pattern)) => Ok(Self::Function(pattern.to_owned())),
            _ => Err(format!(
                "{text:?} is no pattern: write label:TEXT or function:TEXT, where * stands for \
                 anything"
            )),
        }
    }
}

impl Arguments {
    /// Reads the files.
    pub fn read(&self) -> Result<Ignored> {
        let mut patterns = self.ignore.clone();
        for path in &self.ignore_file {
            patterns.extend(of_file(path)?);
        }
        Ok(Ignored(patterns))
    }
}

fn of_file(path: &Path) -> Result<Vec<Pattern>> {
    let name = text::printable(&path.to_string_lossy());
    let written =
        fs::read_to_string(path).with_context(|| format!("cannot read patterns from {name}"))?;
    let lines = written.lines().map(str::trim).enumerate();
    let patterns = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let parse = |(number, line): (usize, &str)| {
        line.parse().map_err(|error: String| anyhow!("{name}, line {}: {error}", number + 1))
    };
    patterns.map(parse).collect()
}

impl Ignored {
    /// What to say where functions are not known. None: no pattern is of one.
    pub fn functions_note(&self) -> Option<&'static str> {
        let is_function = |known: &Pattern| matches!(known, Pattern::Function(_));
        self.0
            .iter()
            .any(is_function)
            .then_some("doctor judges labels: patterns of functions are for `tslab leaks` alone")
    }

    /// Whether epochs of this label are passed over.
    pub fn has_label(&self, label: Option<&str>) -> bool {
        let Some(label) = label else { return false };
        self.0.iter().any(|known| matches!(known, Pattern::Label(text) if matches(text, label)))
    }

    /// Whether what this function allocates is passed over.
    pub fn has_function(&self, function: &str) -> bool {
        let is_it =
            |known: &Pattern| matches!(known, Pattern::Function(text) if matches(text, function));
        self.0.iter().any(is_it)
    }
}

#[cfg(test)]
impl Ignored {
    /// Of patterns that are right.
    pub fn of(patterns: &[&str]) -> Self {
        Self(patterns.iter().map(|text| text.parse().expect("a pattern")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_of_labels_or_of_functions() {
        let ignored = Ignored::of(&["label:session*", "function:cache::*"]);
        assert!(ignored.has_label(Some("session 5")) && !ignored.has_label(Some("cache::put")));
        assert!(ignored.has_function("cache::put") && !ignored.has_function("session 5"));
        assert!(ignored.functions_note().is_some());
        assert!(Ignored::of(&["label:function:x"]).functions_note().is_none());
        assert!(!ignored.has_label(None) && !Ignored::default().has_label(Some("")));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_advice() {
        for text in ["", "session", "epoch:x", "Label:x"] {
            let error = text.parse::<Pattern>().unwrap_err();
            assert!(error.contains("write label:TEXT or function:TEXT"), "{error}");
        }
    }
}
