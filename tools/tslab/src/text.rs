//! What people read: quantities, ages, labels and aligned columns.

use std::fmt::Write;

use serde::Serialize;

use crate::rows::EpochState;

/// What stands for a figure that is not known.
pub const NOT_KNOWN: &str = "?";

/// A number as it is.
pub fn number(value: Option<u64>) -> String {
    value.map_or_else(|| NOT_KNOWN.to_owned(), |value| value.to_string())
}

/// A number of things: "1 page", "2 pages".
pub fn count(value: Option<u64>, thing: &str) -> String {
    let ending = if value == Some(1) { "" } else { "s" };
    format!("{} {thing}{ending}", number(value))
}

/// The same of what is counted here: "1 process", "2 processes".
pub fn count_of(number: usize, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// A quantity of bytes, in the largest unit that it fills: "45.6 KiB".
pub fn bytes(value: Option<u64>) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(value) = value else { return NOT_KNOWN.to_owned() };
    if value < 1024 {
        return format!("{value} B");
    }
    let power = value.ilog2() / 10;
    let unit = 1_u128 << (10 * power);
    let tenths = (u128::from(value) * 10 + unit / 2) / unit;
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[power as usize - 1])
}

/// A number that only its size matters of: "7", "12.3k", "4.5M".
pub fn rate(value: f64) -> String {
    match value {
        value if value < 9_999.5 => format!("{value:.0}"),
        value if value < 999_950.0 => format!("{:.1}k", value / 1e3),
        value => format!("{:.1}M", value / 1e6),
    }
}

/// A time that has passed: "61 s", "17 min", "30 h", "9 d".
pub fn age(ms: Option<u64>) -> String {
    let Some(ms) = ms else { return NOT_KNOWN.to_owned() };
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, ms % 1000 / 100),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Text of another process, on one line and without any control of the terminal.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '"' | '\'' => shown.push(char),
            _ => shown.extend(char.escape_debug()),
        }
    }
    shown
}

/// So many of its characters, and dots where there are more.
pub fn shortened(text: &str, most_chars: usize) -> String {
    match text.char_indices().nth(most_chars) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A label in quotes; what would end them or control the terminal is escaped.
pub fn label(label: Option<&str>) -> String {
    label.map_or_else(|| NOT_KNOWN.to_owned(), |label| format!("{label:?}"))
}

/// Where a call stands, such as "http.c:211"; empty when it is not known.
pub fn place(file: Option<&str>, line: Option<u32>) -> String {
    let Some(file) = file else { return String::new() };
    let name = printable(file.rsplit('/').next().unwrap_or(file));
    line.map_or_else(|| name.clone(), |line| format!("{name}:{line}"))
}

/// Whether a pattern, in which `*` stands for anything, is of the whole text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let within = text.strip_prefix(start).and_then(|text| text.strip_suffix(end));
    let Some(mut within) = within else { return false };
    // Of what lies between two stars the first place will do: what follows has most room there.
    for piece in middle.split('*') {
        let Some(at) = within.find(piece) else { return false };
        within = &within[at + piece.len()..];
    }
    true
}

/// JSON, in which nothing controls the terminal.
pub fn json(report: &impl Serialize) -> serde_json::Result<String> {
    Ok(shown(&serde_json::to_string_pretty(report)?))
}

/// The same on one line.
pub fn json_line(report: &impl Serialize) -> serde_json::Result<String> {
    Ok(shown(&serde_json::to_string(report)?))
}

fn shown(json: &str) -> String {
    let mut shown = String::with_capacity(json.len() + 1);
    for char in json.chars() {
        // JSON escapes what is below a blank; further control characters occur in texts alone.
        if char < '\x7f' || char.escape_debug().len() == 1 {
            shown.push(char);
        } else {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        }
    }
    shown.push('\n');
    shown
}

/// The word for an epoch's state.
pub fn state(state: Option<EpochState>) -> &'static str {
    state.map_or(NOT_KNOWN, EpochState::text)
}

/// Where a column's texts begin or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// They begin below each other.
    Left,
    /// They end below each other.
    Right,
}

/// Rows of texts in columns.
#[derive(Debug)]
pub struct Grid {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// A grid with a first row of headings.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            columns: columns.iter().map(|(_, align)| *align).collect(),
            rows: vec![columns.iter().map(|(heading, _)| (*heading).to_owned()).collect()],
        }
    }

    /// Adds a row, with a text for each column.
    pub fn row(&mut self, texts: Vec<String>) {
        self.rows.push(texts);
    }

    fn widths(&self) -> Vec<usize> {
        let lengths = |column: usize| {
            let texts = self.rows.iter().filter_map(move |row| row.get(column));
            texts.map(|text| text.chars().count())
        };
        (0..self.columns.len()).map(|column| lengths(column).max().unwrap_or_default()).collect()
    }

    /// All rows, one a line.
    pub fn render(&self) -> String {
        let widths = self.widths();
        self.rows.iter().fold(String::new(), |mut out, row| {
            let mut line = String::new();
            for ((text, width), align) in row.iter().zip(&widths).zip(&self.columns) {
                pad(&mut line, text, *width, *align);
            }
            out.push_str(line.trim_end());
            out.push('\n');
            out
        })
    }
}

fn pad(line: &mut String, text: &str, width: usize, align: Align) {
    if !line.is_empty() {
        line.push_str("  ");
    }
    // Writing to a String does not fail.
    let _ = match align {
        Align::Left => write!(line, "{text:<width$}"),
        Align::Right => write!(line, "{text:>width$}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_digit_behind_the_point() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (46_694, "45.6 KiB"),
            (1 << 20, "1.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (value, shown) in cases {
            assert_eq!(bytes(Some(value)), shown);
        }
        assert_eq!(bytes(None), "?");
    }

    #[test]
    fn rates_have_at_most_five_digits() {
        let cases = [
            (0.4, "0"),
            (9_999.0, "9999"),
            (9_999.6, "10.0k"),
            (999_949.0, "999.9k"),
            (1e9, "1000.0M"),
        ];
        for (value, shown) in cases {
            assert_eq!(rate(value), shown);
        }
    }

    #[test]
    fn one_thing_is_not_two() {
        assert_eq!(count(Some(1), "page"), "1 page");
        assert_eq!(count(Some(0), "page"), "0 pages");
        assert_eq!(count(None, "page"), "? pages");
    }

    #[test]
    fn ages_have_two_or_three_digits() {
        let cases = [
            (0, "0.0 s"),
            (1_449, "1.4 s"),
            (61_000, "61 s"),
            (120_000, "2 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 d"),
        ];
        for (ms, shown) in cases {
            assert_eq!(age(Some(ms)), shown);
        }
        assert_eq!(age(None), "?");
    }

    #[test]
    fn stars_stand_for_anything() {
        let whole = ["", "*", "a", "a*", "*c", "a*c", "a*b*c", "*b*", "**", "a**c"];
        let of = |text| whole.map(|pattern| matches(pattern, text));
        assert_eq!(of("abc"), [false, true, false, true, true, true, true, true, true, true]);
        assert_eq!(of("a"), [false, true, true, true, false, false, false, false, true, false]);
        assert_eq!(of(""), [true, true, false, false, false, false, false, false, true, false]);
        // No character serves as start and end.
        assert!(!matches("ab*ba", "aba") && matches("ab*ba", "abba"));
        assert!(matches("*ab*ba*", "xabxbax") && !matches("*ab*ba*", "xabax"));
    }

    #[test]
    fn labels_cannot_move_the_cursor_or_end_their_quotes() {
        let shown = label(Some("a\"b\n\x1b[2J\u{202e}\u{200b}\u{9b}\0ü"));
        assert_eq!(shown, "\"a\\\"b\\n\\u{1b}[2J\\u{202e}\\u{200b}\\u{9b}\\0ü\"");
        assert_eq!(printable("a'\tb"), "a'\\tb");
    }

    #[test]
    fn json_is_understood_as_it_was_meant() {
        let text = "a\"\n\x1b\x7f\u{9b}\u{202e}\u{e0001}ü";
        let shown = json(&text).unwrap();
        assert_eq!(shown, "\"a\\\"\\n\\u001b\\u007f\\u009b\\u202e\\udb40\\udc01ü\"\n");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn what_is_too_long_ends_in_dots() {
        assert_eq!(["", "üä", "üäö"].map(|text| shortened(text, 2)), ["", "üä", "üä..."]);
    }

    #[test]
    fn columns_are_aligned_and_lines_have_no_blanks_at_their_ends() {
        let mut grid = Grid::new(&[("N", Align::Right), ("NAME", Align::Left)]);
        grid.row(vec!["10".into(), "ü".into()]);
        grid.row(vec!["5".into(), String::new()]);
        assert_eq!(grid.render(), " N  NAME\n10  ü\n 5\n");
    }
}
