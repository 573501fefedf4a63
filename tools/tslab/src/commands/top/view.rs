//! Draws what the user looks at. Every terminal size will do, down to none at all.

use std::collections::VecDeque;
use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::{Sparkline, Widget};

use super::model::{Mode, Model, Pane, Process};
use super::sample::{ClassRow, Told};
use crate::commands::epochs::Row;
use crate::text;

// Below that, columns do not fit.
const LEAST_WIDTH: u16 = 60;
const LEAST_HEIGHT: u16 = 12;

// Processes take half of the height at most, and are never without a row.
const LEAST_PROCESS_ROWS: u16 = 3;
const CLASSES_WIDTH: u16 = 28;
// Below that, there is no room for both epochs and classes.
const LEAST_WIDTH_OF_TWO: u16 = 78;
const SPARK_LABEL_WIDTH: u16 = 17;
// Heights that a bar may have.
const SPARK_STEPS: u64 = 8;

const PLAIN: Style = Style::new();
const HEADING: Style = Style::new().add_modifier(Modifier::BOLD);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
const ENDED: Style = Style::new().fg(Color::DarkGray);
const LOUD: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);

const KEYS: &str = "q quit  ? help  / filter  s sort  r reverse  space freeze  tab pane  d dismiss";

const HELP: [&str; 23] = [
    "tslab top: processes on the allocator tslab, and what one of them holds",
    "",
    "  up, down, j, k        the next process; in other panes, scroll",
    "  page up, page down    ten of them",
    "  home, end             the first, the last",
    "  tab, left, right      the next pane: processes, epochs, size classes",
    "  s                     sort by RSS, LIVE, RSS/LIVE, ALLOCS/s, PID, NAME",
    "  r                     reverse the order",
    "  /                     show only processes with a text in their name or number:",
    "                        enter keeps it, escape forgets it",
    "  space                 freeze, and go on",
    "  d                     dismiss processes that have ended, which are gray",
    "  q, ctrl-c             quit",
    "",
    "RSS    resident memory of the process, also what is not the allocator's",
    "LIVE   objects that the program has not freed, rounded up to their size classes",
    "HELD   memory of an epoch or a class: live objects, and free ones among them",
    "CLOSED closed epochs that still have objects: `tslab leaks PID` names them",
    "at hand  free objects that threads keep for what they allocate next",
    "dirty    free memory that has not gone back to the system yet",
    "shared   where many short epochs of one label lie side by side",
    "",
    "Any key goes back.",
];

/// Draws everything.
pub fn draw(model: &Model, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.width < LEAST_WIDTH || area.height < LEAST_HEIGHT {
        let wanted = format!("too small: {LEAST_WIDTH} x {LEAST_HEIGHT} at least");
        return put(buffer, area, 0, &wanted, PLAIN);
    }
    if model.mode == Mode::Helping {
        return put_lines(buffer, area, HELP.iter().map(|line| (*line).to_owned()));
    }
    let rows = u16::try_from(model.shown().len()).unwrap_or(u16::MAX);
    let most = (area.height / 2).max(LEAST_PROCESS_ROWS);
    let height = rows.clamp(1, most - 1) + 1;
    let [title, processes, selected, sparks, _, panes, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(height),
        Constraint::Length(1),
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_title(model, title, buffer);
    draw_processes(model, processes, buffer);
    draw_selected(model, [selected, sparks, panes], buffer);
    draw_keys(model, keys, buffer);
}

/// Takes the colours of what is drawn (`NO_COLOR`); what is bold or reversed stays so.
pub fn take_colours(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
    }
}

/// What is drawn, as text.
pub fn plain(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let mut text = String::new();
    for cells in buffer.content.chunks(width) {
        let mut line = String::new();
        let mut hidden = 0;
        for cell in cells {
            if hidden == 0 {
                line.push_str(cell.symbol());
                hidden = Span::raw(cell.symbol()).width();
            }
            hidden = hidden.saturating_sub(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

// A line of an area, which may have none.
fn put(buffer: &mut Buffer, area: Rect, line: u16, text: &str, style: Style) {
    if line < area.height {
        buffer.set_stringn(area.x, area.y + line, text, area.width.into(), style);
    }
}

fn put_lines(buffer: &mut Buffer, area: Rect, lines: impl Iterator<Item = String>) {
    for (line, text) in (0..area.height).zip(lines) {
        put(buffer, area, line, &text, PLAIN);
    }
}

// A whole line, whose blanks have the style too.
fn put_bar(buffer: &mut Buffer, area: Rect, line: u16, text: &str, style: Style) {
    if line < area.height {
        buffer.set_style(Rect { y: area.y + line, height: 1, ..area }, style);
    }
    put(buffer, area, line, text, style);
}

fn draw_title(model: &Model, area: Rect, buffer: &mut Buffer) {
    let (shown, all) = (model.shown().len(), model.count());
    let of = if shown == all { String::new() } else { format!("{shown} of ") };
    let reversed = if model.is_reversed { " reversed" } else { "" };
    let frozen = if model.is_frozen { "  FROZEN: space goes on" } else { "" };
    let title = format!(
        "tslab top  {of}{}, by {}{reversed}, every {} s{frozen}",
        processes(all),
        model.sort.name(),
        model.interval.as_secs_f64()
    );
    put_bar(buffer, area, 0, &title, if model.is_frozen { LOUD } else { HEADING });
}

fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

fn draw_keys(model: &Model, area: Rect, buffer: &mut Buffer) {
    if let Some(error) = &model.error {
        put_bar(buffer, area, 0, &text::printable(error), LOUD);
    } else if model.mode == Mode::Typing {
        let typed = text::printable(&model.filter);
        put_bar(buffer, area, 0, &format!("/{typed}_  enter keeps, escape forgets"), LOUD);
    } else if model.filter.is_empty() {
        put(buffer, area, 0, KEYS, ENDED);
    } else {
        let filter = text::printable(&model.filter);
        put_bar(buffer, area, 0, &format!("only /{filter}  escape shows all"), LOUD);
    }
}

fn draw_processes(model: &Model, area: Rect, buffer: &mut Buffer) {
    let heading = format!(
        "{:>8} {:>10} {:>10} {:>8} {:>8} {:>6} {:>6}  NAME",
        "PID", "RSS", "LIVE", "RSS/LIVE", "ALLOCS/s", "OPEN", "CLOSED"
    );
    put_bar(buffer, area, 0, &heading, HEADING);
    let shown = model.shown();
    if shown.is_empty() {
        let why = if model.count() == 0 {
            "no process runs on tslab: start one with `tslab run -- PROGRAM`"
        } else {
            "no process has this in its name or number: escape shows all"
        };
        return put(buffer, area, 1, why, PLAIN);
    }
    let rows = usize::from(area.height.saturating_sub(1)).max(1);
    let place = model.place().unwrap_or_default();
    let (first, rows) = window(shown.len(), place, rows);
    for (line, (number, process)) in (1..).zip(shown.iter().enumerate().skip(first).take(rows)) {
        let is_chosen = number == place;
        put_bar(buffer, area, line, &process_text(process), style_of(process, is_chosen));
    }
    let more = shown.len() - first - rows;
    if more > 0 {
        put(buffer, area, area.height - 1, &more_text(more), PLAIN);
    }
}

// Which of `all` are shown: from where on, and how many. The one at `place` is always among them;
// where others follow they leave a row to say so.
fn window(all: usize, place: usize, rows: usize) -> (usize, usize) {
    if all <= rows {
        return (0, all);
    }
    let first = place.saturating_sub(rows.saturating_sub(2)).min(all - rows);
    let are_last = first + rows == all || rows == 1;
    (first, if are_last { rows } else { rows - 1 })
}

fn more_text(more: usize) -> String {
    format!("  and {more} more")
}

fn style_of(process: &Process, is_chosen: bool) -> Style {
    let style = if process.has_ended { ENDED } else { PLAIN };
    if is_chosen { style.patch(CHOSEN) } else { style }
}

fn process_text(process: &Process) -> String {
    let totals = process.sample.told.as_ref().ok().map(|told| &told.totals);
    let open = totals.and_then(|totals| totals.epochs_open);
    let closed = totals.and_then(|totals| totals.epochs_closed_with_survivors);
    let ended = if process.has_ended { "  (ended)" } else { "" };
    format!(
        "{:>8} {:>10} {:>10} {:>8} {:>8} {:>6} {:>6}  {}{ended}",
        process.sample.key.pid,
        text::bytes(process.sample.rss_bytes),
        text::bytes(process.live_bytes()),
        process.ratio().map_or_else(unknown, |ratio| format!("{ratio:.2}")),
        process.allocations_a_s.map_or_else(unknown, text::rate),
        text::number(open),
        text::number(closed),
        text::printable(&process.sample.name),
    )
}

fn unknown() -> String {
    text::NOT_KNOWN.to_owned()
}

fn draw_selected(model: &Model, areas: [Rect; 3], buffer: &mut Buffer) {
    let [head, sparks, panes] = areas;
    let Some(process) = model.selected() else { return };
    put_bar(buffer, head, 0, &head_text(process), HEADING);
    let most = process.rss.iter().chain(&process.live).flatten().max().copied();
    let rows = [("RSS", &process.rss, Color::Blue), ("LIVE", &process.live, Color::Green)];
    for (line, (name, history, color)) in (0..).zip(rows) {
        draw_spark(buffer, sparks, line, (name, history, color), most.unwrap_or(1).max(1));
    }
    match &process.sample.told {
        Err(error) => put(buffer, panes, 0, &text::printable(error), LOUD),
        Ok(told) => draw_panes(model, told, panes, buffer),
    }
}

fn head_text(process: &Process) -> String {
    let sample = &process.sample;
    let mut head = format!("{} {}", sample.key.pid, text::printable(&sample.name));
    if let Ok(told) = &sample.told {
        // Writing to a String does not fail.
        let _ = write!(
            head,
            "  tslab {}  {}  {} at hand  {} dirty",
            text::printable(&told.version),
            text::count(told.totals.threads, "thread"),
            text::bytes(told.totals.hot_bytes),
            text::bytes(told.dirty_bytes)
        );
    }
    if process.has_ended { head + "  (ended)" } else { head }
}

// Both lines have the same scale, so that the gap between them is what is not live.
fn draw_spark(
    buffer: &mut Buffer,
    area: Rect,
    line: u16,
    (name, history, color): (&str, &VecDeque<Option<u64>>, Color),
    most: u64,
) {
    if line >= area.height {
        return;
    }
    let now = history.front().copied().flatten();
    put(buffer, area, line, &format!("{name:<5}{:>10}", text::bytes(now)), PLAIN);
    let spark = Rect {
        x: area.x + SPARK_LABEL_WIDTH,
        y: area.y + line,
        width: area.width.saturating_sub(SPARK_LABEL_WIDTH),
        height: 1,
    };
    // The newest stand at the right, and what was not known is blank.
    let missing = usize::from(spark.width).saturating_sub(history.len());
    let values = history.iter().take(spark.width.into()).rev();
    // What is there is seen, however little it is.
    let least = most.div_ceil(SPARK_STEPS);
    let values =
        values.map(|value| value.map(|value| value.max(least.min(value.saturating_mul(most)))));
    let values = std::iter::repeat_n(None, missing).chain(values);
    Sparkline::default().data(values).max(most).style(Style::new().fg(color)).render(spark, buffer);
}

fn draw_panes(model: &Model, told: &Told, area: Rect, buffer: &mut Buffer) {
    let has_both = area.width >= LEAST_WIDTH_OF_TWO;
    let widths = if has_both { [1, CLASSES_WIDTH] } else { [0, 0] };
    let [gap, width] = widths.map(Constraint::Length);
    let [epochs, _, classes] = Layout::horizontal([Constraint::Min(0), gap, width]).areas(area);
    let heading = format!("{:>10} {:>10} {:>7}  EPOCHS", "HELD", "LIVE", "AGE");
    let rows = told.epochs.iter().map(epoch_text);
    let is_here = model.pane == Pane::Epochs;
    draw_pane(buffer, epochs, (&heading, is_here), model.epochs_from, rows);
    let heading = format!("{:>8} {:>8} {:>10}", "CLASS", "OBJECTS", "HELD");
    let rows = told.classes.iter().map(class_text);
    let is_here = model.pane == Pane::Classes;
    draw_pane(buffer, classes, (&heading, is_here), model.classes_from, rows);
}

fn draw_pane(
    buffer: &mut Buffer,
    area: Rect,
    (heading, is_here): (&str, bool),
    first: usize,
    rows: impl ExactSizeIterator<Item = String>,
) {
    let style = if is_here { HEADING.patch(CHOSEN) } else { HEADING };
    put_bar(buffer, area, 0, heading, style);
    let inner = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let room = usize::from(inner.height);
    let first = first.min(rows.len().saturating_sub(1));
    let left = rows.len().saturating_sub(first);
    if left <= room {
        return put_lines(buffer, inner, rows.skip(first));
    }
    let shown = room.saturating_sub(1);
    put_lines(buffer, inner, rows.skip(first).take(shown).chain([more_text(left - shown)]));
}

fn epoch_text(row: &Row) -> String {
    let depth = "  ".repeat(row.depth.min(8));
    let state = match text::state(row.state) {
        "open" => String::new(),
        state => format!("{state} "),
    };
    format!(
        "{:>10} {:>10} {:>7}  {depth}{state}{}",
        text::bytes(row.held_bytes),
        text::bytes(row.live.bytes),
        text::age(row.age_ms),
        text::label(row.label.as_deref()),
    )
}

fn class_text(class: &ClassRow) -> String {
    format!(
        "{:>6} B {:>8} {:>10}",
        text::number(class.bytes),
        text::number(class.objects),
        text::bytes(class.held_bytes)
    )
}
