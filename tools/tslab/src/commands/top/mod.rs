//! top: all processes, and one of them from close by, as they change.

mod model;
mod sample;
mod view;

use std::env;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::Rect;

use super::watch::interval;
use super::{Answer, Setting, show};
use model::{Model, Next};
use sample::Host;

// Of a frame that is printed, when COLUMNS and LINES do not say; and the most that they may say.
const COLUMNS: u16 = 80;
const LINES: u16 = 24;
const MOST_CELLS: u16 = 1000;

/// What `top` is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// How long to wait between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,

    /// Print frames as plain text instead: $COLUMNS wide and $LINES high, otherwise 80 x 24
    #[arg(long, short)]
    batch: bool,

    /// With --batch: end after so many frames
    #[arg(short, value_name = "FRAMES", requires = "batch")]
    number: Option<u64>,
}

/// Shows processes until the user has seen enough.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    if setting.json {
        bail!("top writes no JSON: `tslab ps --json` and `tslab watch --json PID` do");
    }
    let mut host = Host::new(&setting.directory);
    let mut model = Model::new(arguments.interval);
    model.update(host.look()?, 0.0);
    if arguments.batch {
        print_frames(&mut host, &mut model, arguments)?;
        return Ok(Answer::default());
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!("standard input and output are no terminal: `tslab top --batch` prints plain text");
    }
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let shown = show_frames(&mut terminal, &mut host, &mut model, arguments.interval);
    ratatui::restore();
    shown.map(|()| Answer::default())
}

fn show_frames(
    terminal: &mut DefaultTerminal,
    host: &mut Host,
    model: &mut Model,
    interval: Duration,
) -> Result<()> {
    let mut looked = Instant::now();
    let is_coloured = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    loop {
        terminal.draw(|frame| {
            view::draw(model, frame.area(), frame.buffer_mut());
            if !is_coloured {
                view::take_colours(frame.buffer_mut());
            }
        })?;
        let wait = interval.saturating_sub(looked.elapsed());
        if event::poll(wait)?
            && let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && model.key(key.code, key.modifiers) == Next::Quit
        {
            return Ok(());
        }
        let passed = looked.elapsed();
        if passed >= interval {
            looked = Instant::now();
            look(host, model, passed);
        }
    }
}

// A look that fails is told of, and the next one may not.
fn look(host: &mut Host, model: &mut Model, passed: Duration) {
    match host.look() {
        Ok(samples) => model.update(samples, passed.as_secs_f64()),
        Err(error) => model.fail(&format!("{error:#}")),
    }
}

fn print_frames(host: &mut Host, model: &mut Model, arguments: &Arguments) -> Result<()> {
    let size = |name, otherwise| size_of(env::var(name).ok().as_deref(), otherwise);
    let area = Rect::new(0, 0, size("COLUMNS", COLUMNS), size("LINES", LINES));
    let mut frames = 0;
    let mut looked = Instant::now();
    loop {
        let mut buffer = Buffer::empty(area);
        view::draw(model, area, &mut buffer);
        frames += 1;
        let is_last = arguments.number.is_some_and(|number| frames >= number);
        if !show(&format!("{}\n", view::plain(&buffer)))? || is_last {
            return Ok(());
        }
        std::thread::sleep(arguments.interval);
        let passed = looked.elapsed();
        looked = Instant::now();
        look(host, model, passed);
    }
}

fn size_of(text: Option<&str>, otherwise: u16) -> u16 {
    let size = text.and_then(|text| text.parse().ok()).filter(|size| *size > 0);
    size.unwrap_or(otherwise).min(MOST_CELLS)
}

/// A frame with one process.
#[cfg(test)]
pub(super) fn frame_of(subject: &super::Subject) -> String {
    let mut model = Model::new(Duration::from_secs(1));
    model.update(vec![sample::Sample::of_subject(subject)], 0.0);
    let mut buffer = Buffer::empty(Rect::new(0, 0, COLUMNS, LINES));
    view::draw(&model, buffer.area, &mut buffer);
    view::plain(&buffer)
}

#[cfg(test)]
mod tests;
