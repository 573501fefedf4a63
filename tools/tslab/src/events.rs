//! When sampled blocks were allocated and freed, and by whom, in the order in which it happened
//! (`tell/events.h`).

use crate::rows::events;
use crate::segment::{Error, Segment, Source};

/// A sampled block was allocated or freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Of the block; None: it was freed.
    pub bytes: Option<u64>,
    /// Samples at `weight_bytes` that it stands for.
    pub times: u64,
    /// The same of both events of a block.
    pub sample: u64,
    /// Row in sites of who did it; 0: not known.
    pub site: usize,
    /// Who did it.
    pub thread: u64,
}

/// All that is told.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// In their order.
    pub all: Vec<Event>,
    /// Further ones found no room.
    pub is_cut: bool,
}

impl Events {
    /// None when the file has no such table, as of an older library.
    pub fn read<S: Source>(segment: &Segment<S>) -> Result<Option<Self>, Error> {
        let Some(rows) = segment.rows(events::TABLE)? else { return Ok(None) };
        let column = |field| rows.column(field);
        let columns = [
            column(events::AT_NS),
            column(events::BYTES),
            column(events::TIMES),
            column(events::SAMPLE),
            column(events::SITE),
            column(events::THREAD),
        ];
        let event = |row| {
            let mut values = [0; 6];
            for (value, column) in values.iter_mut().zip(columns) {
                *value = column?.get(row)?;
            }
            let [at_ns, bytes, times, sample, site, thread] = values;
            let bytes = (bytes != 0).then_some(bytes);
            let site = usize::try_from(site).ok()?;
            (at_ns != 0).then_some(Event { at_ns, bytes, times, sample, site, thread })
        };
        let last = rows.len().checked_sub(1).filter(|&last| last as u64 + 1 == rows.most());
        Ok(Some(Self {
            all: (0..rows.len()).filter_map(event).collect(),
            is_cut: last.is_some_and(|last| event(last).is_some()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Image;

    fn read(image: &Image) -> Option<Events> {
        Events::read(&Segment::open(image.bytes()).unwrap()).unwrap()
    }

    #[test]
    fn events_are_read_in_their_order() {
        let mut image = Image::new(1, 2);
        let begun = [("at_ns", 5), ("bytes", 64), ("times", 2), ("sample", 9), ("site", 3)];
        image.set_all("events", 1, &begun);
        image.set_all("events", 3, &[("at_ns", 7), ("sample", 9), ("site", 4), ("thread", 6)]);
        let events = read(&image).unwrap();
        let begun = Event { at_ns: 5, bytes: Some(64), times: 2, sample: 9, site: 3, thread: 0 };
        let ended = Event { at_ns: 7, bytes: None, times: 0, sample: 9, site: 4, thread: 6 };
        assert_eq!(events.all, [begun, ended], "row 2 is still being written");
        assert!(!events.is_cut);
    }

    #[test]
    fn a_full_table_is_said_to_be_cut() {
        let mut image = Image::new(1, 2);
        let last = image.table("events").most_rows as usize - 1;
        image.set("events", last, "at_ns", 1);
        assert!(read(&image).unwrap().is_cut);
    }

    #[test]
    fn older_libraries_have_none() {
        let mut image = Image::new(1, 2);
        image.tables.retain(|table| table.name != "events");
        assert!(read(&image).is_none());
    }
}
