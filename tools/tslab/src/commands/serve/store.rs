//! The history on disk: what processes held, and what happened to them.
//!
//!  T1  one server at a time has the file
//!  T2  its size is bounded, and so is the age of what is in it: the oldest goes first
//!  T3  rows lie in the order of time: what goes first lies together

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use serde::Serialize;

use super::events::Event;
use super::holders::Holder;
use super::schema;

/// Seconds between two rows of a process.
pub const STEP_S: u64 = 10;
/// Rows that are older than this are thinned.
const FINE_S: u64 = DAY_S;
const COARSE_STEP_S: u64 = 60;
/// The same of what labels hold.
const HOLDERS_STEP_S: u64 = 60;
const COARSE_HOLDERS_STEP_S: u64 = 600;
const DAY_S: u64 = 86_400;
/// An answer has all rows of the last hour, and one a minute of what was before.
const ANSWERED_FINE_S: u64 = 3_600;
/// Of each kind: purges are many.
const MOST_EVENTS: u32 = 500;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Of the file. Its log lies beside it while a server has it.
    pub bytes: u64,
    /// From the newest to the oldest row.
    pub seconds: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bytes: 64 << 20, seconds: 30 * DAY_S }
    }
}

/// A process, whatever other process gets its number later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// When it started, counted from when the machine did.
    pub start_ticks: u64,
    /// Its program.
    pub name: Option<String>,
}

/// What one look at a process found.
#[derive(Clone, Debug)]
pub struct Row {
    /// Whose it is.
    pub owner: Owner,
    /// Memory that is resident.
    pub rss_bytes: Option<u64>,
    /// Bytes of live objects.
    pub live_bytes: Option<u64>,
    /// The labels that hold most.
    pub holders: Vec<Holder>,
    /// What happened since the look before.
    pub events: Vec<Event>,
}

/// Seconds since 1970, resident and live bytes.
pub type Moment = (u64, Option<u64>, Option<u64>);

/// What a label held: seconds since 1970, bytes of live objects.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct LabelPast {
    /// As the metrics have it.
    pub label: String,
    /// Those at which it was among the labels that held most.
    pub moments: Vec<(u64, u64)>,
}

/// The past of a process, the oldest first.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Past {
    /// What it held then.
    pub moments: Vec<Moment>,
    /// What its labels held then, that which held most first.
    pub labels: Vec<LabelPast>,
    /// The newest, the oldest of them first.
    pub events: Vec<Event>,
}

/// An event, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostEvent {
    /// The process's number.
    pub pid: u32,
    /// When it started, counted from when the machine did; None: before the machine was started
    /// last.
    pub start_ticks: Option<u64>,
    /// Its program.
    pub name: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// The file.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    bounds: Bounds,
    boot: String,
    thinned_until_s: u64,
}

impl Store {
    /// Opens or makes the file, which is then nobody else's.
    pub fn open(path: &Path, bounds: Bounds, boot: &str) -> Result<Self> {
        if let Some(folder) = path.parent() {
            let cannot = || format!("cannot make the folder {}", folder.display());
            fs::create_dir_all(folder).with_context(cannot)?;
        }
        // Names and labels are for those who may read the processes.
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600).open(path)?;
        let db = Connection::open(path)?;
        schema::prepare(&db)?;
        Ok(Self { db, bounds, boot: boot.to_owned(), thinned_until_s: 0 })
    }

    /// Keeps what was found at a moment, and lets go of what is too old or too much.
    pub fn add(&mut self, at_s: u64, rows: &[Row]) -> Result<()> {
        let at_s = at_s - at_s % STEP_S;
        let change = self.db.unchecked_transaction()?;
        for row in rows {
            let (process, holders_s) = self.process(&row.owner, at_s)?;
            let moment = "INSERT OR REPLACE INTO moment VALUES (?, ?, ?, ?)";
            let (rss, live) = (row.rss_bytes.map(stored), row.live_bytes.map(stored));
            let moment = self.db.prepare_cached(moment)?.execute(params![at_s, process, rss, live]);
            moment?;
            if at_s / HOLDERS_STEP_S != holders_s / HOLDERS_STEP_S {
                self.add_holders(process, at_s, &row.holders)?;
            }
            row.events.iter().try_for_each(|event| self.add_event(process, event))?;
        }
        change.commit()?;
        self.thin(at_s)?;
        self.trim(at_s)
    }

    // Its number here, and when its holders were kept last.
    fn process(&self, owner: &Owner, at_s: u64) -> Result<(i64, u64)> {
        let mut upsert = self.db.prepare_cached(
            "INSERT INTO process (boot, pid, start, name, last_s) VALUES (?, ?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET name = excluded.name, last_s = excluded.last_s
             RETURNING id, holders_s",
        )?;
        let Owner { pid, start_ticks, name } = owner;
        let values = params![self.boot, pid, stored(*start_ticks), name, at_s];
        Ok(upsert.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    fn add_holders(&self, process: i64, at_s: u64, holders: &[Holder]) -> Result<()> {
        for Holder { label, live_bytes } in holders {
            let values = params![at_s, process, self.label(label, at_s)?, stored(*live_bytes)];
            let insert = "INSERT OR REPLACE INTO holder VALUES (?, ?, ?, ?)";
            self.db.prepare_cached(insert)?.execute(values)?;
        }
        let told = "UPDATE process SET holders_s = ? WHERE id = ?";
        self.db.prepare_cached(told)?.execute(params![at_s, process])?;
        Ok(())
    }

    // Its number here.
    fn label(&self, text: &str, at_s: u64) -> Result<i64> {
        let mut upsert = self.db.prepare_cached(
            "INSERT INTO label (text, last_s) VALUES (?, ?)
             ON CONFLICT DO UPDATE SET last_s = excluded.last_s RETURNING id",
        )?;
        Ok(upsert.query_row(params![text, at_s], |row| row.get(0))?)
    }

    fn add_event(&self, process: i64, event: &Event) -> Result<()> {
        let mut insert = self.db.prepare_cached("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)")?;
        let Event { at_s, kind, label, count, bytes } = event;
        let values = params![at_s, process, kind, label, stored(*count), bytes.map(stored)];
        insert.execute(values)?;
        Ok(())
    }

    // Of the rows that have become old, one a minute stays, and of holders those of one minute in
    // ten.
    fn thin(&mut self, now_s: u64) -> Result<()> {
        let until_s = now_s.saturating_sub(FINE_S);
        if until_s < self.thinned_until_s + COARSE_STEP_S {
            return Ok(());
        }
        self.db.execute(
            "DELETE FROM moment WHERE at_s >= ? AND at_s < ? AND at_s % ? <> 0",
            params![self.thinned_until_s, until_s, COARSE_STEP_S],
        )?;
        let steps = [COARSE_HOLDERS_STEP_S, HOLDERS_STEP_S];
        self.db.execute(
            "DELETE FROM holder WHERE at_s >= ? AND at_s < ? AND at_s % ? >= ?",
            params![self.thinned_until_s, until_s, steps[0], steps[1]],
        )?;
        self.thinned_until_s = until_s;
        Ok(())
    }

    fn trim(&self, now_s: u64) -> Result<()> {
        self.drop_until(now_s.saturating_sub(self.bounds.seconds))?;
        // An eighth is for the log, and for what one look adds.
        while self.used_bytes()? > self.bounds.bytes / 8 * 7 {
            let oldest_s = "SELECT min(a) FROM (SELECT min(at_s) AS a FROM moment UNION
                            SELECT min(at_s) FROM holder UNION SELECT min(at_s) FROM event)";
            let oldest_s: Option<u64> = self.db.query_row(oldest_s, [], |row| row.get(0))?;
            let Some(oldest_s) = oldest_s else { break };
            self.drop_until(oldest_s + now_s.saturating_sub(oldest_s) / 16 + 1)?;
        }
        Ok(())
    }

    fn drop_until(&self, until_s: u64) -> Result<()> {
        for delete in [
            "DELETE FROM moment WHERE at_s < ?",
            "DELETE FROM holder WHERE at_s < ?",
            "DELETE FROM event WHERE at_s < ?",
            "DELETE FROM process WHERE last_s < ?",
            "DELETE FROM label WHERE last_s < ?",
        ] {
            self.db.prepare_cached(delete)?.execute([until_s])?;
        }
        Ok(())
    }

    // Without the pages that the next rows will use.
    fn used_bytes(&self) -> Result<u64> {
        let pages = "SELECT (page_count - freelist_count) * page_size
                     FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
        Ok(self.db.query_row(pages, [], |row| row.get(0))?)
    }

    /// What is known of the process after a moment. `start_ticks`: None for the last one that had
    /// the number.
    pub fn past(&self, pid: u32, start_ticks: Option<u64>, after_s: u64) -> Result<Past> {
        let newest = "SELECT id, last_s FROM process
                      WHERE pid = ?1 AND (?2 IS NULL OR (start = ?2 AND boot = ?3))
                      ORDER BY last_s DESC";
        let values = params![pid, start_ticks.map(stored), self.boot];
        let id = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
        let found: Option<(i64, u64)> = self.db.query_row(newest, values, id).optional()?;
        let Some((process, last_s)) = found else { return Ok(Past::default()) };
        Ok(Past {
            moments: self.moments(process, after_s, last_s.saturating_sub(ANSWERED_FINE_S))?,
            labels: self.labels(process, after_s)?,
            events: self.events(process, after_s)?,
        })
    }

    fn moments(&self, process: i64, after_s: u64, fine_s: u64) -> Result<Vec<Moment>> {
        let mut query = self.db.prepare_cached(
            "SELECT at_s, rss, live FROM moment
             WHERE at_s > ? AND process = ? AND (at_s >= ? OR at_s % ? = 0) ORDER BY at_s",
        )?;
        let values = params![after_s, process, fine_s, COARSE_STEP_S];
        let rows = query.query_map(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn labels(&self, process: i64, after_s: u64) -> Result<Vec<LabelPast>> {
        let mut query = self.db.prepare_cached(
            "SELECT text, at_s, live FROM holder JOIN label ON label.id = holder.label
             WHERE at_s > ? AND process = ? ORDER BY at_s",
        )?;
        let mut rows = query.query(params![after_s, process])?;
        let mut labels = BTreeMap::<String, Vec<(u64, u64)>>::new();
        while let Some(row) = rows.next()? {
            labels.entry(row.get(0)?).or_default().push((row.get(1)?, row.get(2)?));
        }
        let label = |(label, moments)| LabelPast { label, moments };
        let mut labels: Vec<_> = labels.into_iter().map(label).collect();
        labels.sort_by_key(|label| Reverse(label.moments.iter().map(|moment| moment.1).max()));
        Ok(labels)
    }

    fn events(&self, process: i64, after_s: u64) -> Result<Vec<Event>> {
        let mut query = self.db.prepare_cached(
            "SELECT at_s, kind, label, count, bytes FROM
                 (SELECT *, rowid AS number, row_number() OVER
                     (PARTITION BY kind ORDER BY at_s DESC, rowid DESC) AS turn
                  FROM event WHERE at_s > ? AND process = ?)
             WHERE turn <= ? ORDER BY at_s, number",
        )?;
        let rows = query.query_map(params![after_s, process, MOST_EVENTS], event)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What happened to all processes after a moment: the newest of each kind, the oldest of them
    /// first.
    pub fn host_events(&self, after_s: u64) -> Result<Vec<HostEvent>> {
        let mut query = self.db.prepare_cached(
            "SELECT at_s, kind, label, count, bytes, pid, name, start FROM
                 (SELECT event.*, pid, name, iif(boot = ?, start, NULL) AS start,
                     event.rowid AS number, row_number() OVER
                     (PARTITION BY kind ORDER BY at_s DESC, event.rowid DESC) AS turn
                  FROM event JOIN process ON process.id = event.process WHERE at_s > ?)
             WHERE turn <= ? ORDER BY at_s, number",
        )?;
        let host_event = |row: &rusqlite::Row| {
            let (pid, name, start_ticks) = (row.get(5)?, row.get(6)?, row.get(7)?);
            Ok(HostEvent { pid, start_ticks, name, event: event(row)? })
        };
        let rows = query.query_map(params![self.boot, after_s, MOST_EVENTS], host_event)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn event(row: &rusqlite::Row) -> rusqlite::Result<Event> {
    Ok(Event {
        at_s: row.get(0)?,
        kind: row.get(1)?,
        label: row.get(2)?,
        count: row.get(3)?,
        bytes: row.get(4)?,
    })
}

// SQLite has no larger numbers.
fn stored(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Whether the disk has no room: it may have some later.
pub fn is_disk_full(error: &anyhow::Error) -> bool {
    schema::code(error) == Some(ErrorCode::DiskFull)
}

#[cfg(test)]
mod tests {
    use std::env::temp_dir;
    use std::path::PathBuf;
    use std::process;

    use super::*;

    const NOW_S: u64 = 1_800_000_000;
    const ROOMY: Bounds = Bounds { bytes: 64 << 20, seconds: 30 * DAY_S };

    // A folder that goes with its test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            Self(temp_dir().join(format!("tslab-store-{}-{test}", process::id())))
        }

        fn file(&self) -> PathBuf {
            self.0.join("deep/history.db")
        }

        fn open(&self, bounds: Bounds) -> Result<Store> {
            Store::open(&self.file(), bounds, "boot")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn row(pid: u32, rss: u64) -> Row {
        let owner = Owner { pid, start_ticks: 7, name: Some("server".into()) };
        let (holders, events) = (Vec::new(), Vec::new());
        Row { owner, rss_bytes: Some(rss), live_bytes: None, holders, events }
    }

    fn holder(label: &str, live_bytes: u64) -> Holder {
        Holder { label: label.to_owned(), live_bytes }
    }

    fn count(store: &Store, table: &str) -> u32 {
        let count = format!("SELECT count(*) FROM {table}");
        store.db.query_row(&count, [], |row| row.get(0)).unwrap()
    }

    fn event(at_s: u64) -> Event {
        Event { at_s, kind: "limit".into(), label: None, count: 3, bytes: None }
    }

    #[test]
    fn a_restart_loses_nothing() {
        let folder = Folder::new("restart");
        let mut store = folder.open(ROOMY).unwrap();
        store.add(NOW_S, &[Row { events: vec![event(NOW_S)], ..row(1, 5) }, row(2, 9)]).unwrap();
        drop(store);
        let mut store = folder.open(ROOMY).unwrap();
        store.add(NOW_S + 11, &[row(1, 6)]).unwrap();
        let past = store.past(1, Some(7), 0).unwrap();
        let moments = vec![(NOW_S, Some(5), None), (NOW_S + 10, Some(6), None)];
        assert_eq!(past, Past { moments, labels: Vec::new(), events: vec![event(NOW_S)] });
        assert_eq!(store.past(1, Some(7), NOW_S).unwrap().moments.len(), 1);
        assert_eq!(store.past(1, Some(8), 0).unwrap(), Past::default());
        assert_eq!(store.past(2, None, 0).unwrap().moments, [(NOW_S, Some(9), None)]);
    }

    #[test]
    fn many_events_of_a_kind_leave_those_of_others() {
        let folder = Folder::new("kinds");
        let mut store = folder.open(ROOMY).unwrap();
        let purge = |at_s| Event { kind: "purge".into(), ..event(at_s) };
        let mut events = vec![event(NOW_S)];
        events.extend((1..=2 * u64::from(MOST_EVENTS)).map(|second| purge(NOW_S + second)));
        store.add(NOW_S, &[Row { events, ..row(1, 5) }]).unwrap();
        let told = store.past(1, None, 0).unwrap().events;
        assert_eq!(told.len(), MOST_EVENTS as usize + 1);
        assert_eq!(told[0], event(NOW_S));
        assert_eq!(told.last(), Some(&purge(NOW_S + 2 * u64::from(MOST_EVENTS))));
    }

    #[test]
    fn a_process_of_another_boot_is_another() {
        let folder = Folder::new("boot");
        folder.open(ROOMY).unwrap().add(NOW_S, &[row(1, 5)]).unwrap();
        let store = Store::open(&folder.file(), ROOMY, "next boot").unwrap();
        assert_eq!(store.past(1, Some(7), 0).unwrap(), Past::default());
    }

    #[test]
    fn what_is_old_is_thinned_and_then_goes() {
        let folder = Folder::new("old");
        let mut store = folder.open(ROOMY).unwrap();
        (0..24).for_each(|step| store.add(NOW_S + step * STEP_S, &[row(1, step)]).unwrap());
        assert_eq!(count(&store, "moment"), 24);
        store.add(NOW_S + DAY_S + 240, &[row(1, 0)]).unwrap();
        assert_eq!(count(&store, "moment"), 4 + 1);
        store.add(NOW_S + 32 * DAY_S, &[row(2, 0)]).unwrap();
        assert_eq!(count(&store, "moment"), 1);
        assert_eq!(store.past(1, None, 0).unwrap(), Past::default());
    }

    // A look, and what labels held in it.
    fn look(store: &mut Store, at_s: u64, holders: &[(&str, u64)]) {
        let holders = holders.iter().map(|(label, bytes)| holder(label, *bytes)).collect();
        store.add(at_s, &[Row { holders, ..row(1, 5) }]).unwrap();
    }

    fn labels(store: &Store) -> Vec<(String, Vec<(u64, u64)>)> {
        let past = store.past(1, None, 0).unwrap();
        past.labels.into_iter().map(|LabelPast { label, moments }| (label, moments)).collect()
    }

    #[test]
    fn labels_are_kept_once_a_minute_across_restarts() {
        let folder = Folder::new("labels");
        let mut store = folder.open(ROOMY).unwrap();
        look(&mut store, NOW_S + 50, &[("a", 7), ("b", 9)]);
        drop(store);
        let mut store = folder.open(ROOMY).unwrap();
        look(&mut store, NOW_S + 59, &[("a", 8), ("b", 9)]);
        look(&mut store, NOW_S + 60, &[("a", 20), ("c", 1)]);
        look(&mut store, NOW_S + 70, &[("a", 21)]);
        let (first, second) = (NOW_S + 50, NOW_S + 60);
        let expected = [
            ("a".into(), vec![(first, 7), (second, 20)]),
            ("b".into(), vec![(first, 9)]),
            ("c".into(), vec![(second, 1)]),
        ];
        assert_eq!(labels(&store), expected, "what held most goes first");
        let later = store.past(1, None, first).unwrap().labels;
        assert_eq!(later.iter().map(|past| &*past.label).collect::<Vec<_>>(), ["a", "c"]);
    }

    #[test]
    fn labels_are_thinned_to_ten_minutes_and_then_go() {
        let folder = Folder::new("thin-labels");
        let mut store = folder.open(ROOMY).unwrap();
        // The looks drift through the minute.
        (0..30).for_each(|minute| look(&mut store, NOW_S + minute * 61, &[("a", minute)]));
        assert_eq!(count(&store, "holder"), 30);
        look(&mut store, NOW_S + DAY_S + 1_800, &[("b", 5)]);
        let kept = labels(&store).into_iter().find(|(label, _)| label == "a").unwrap().1;
        let from = |moment: &(u64, u64)| (moment.0 - NOW_S) / COARSE_HOLDERS_STEP_S;
        assert_eq!(kept.iter().map(from).collect::<Vec<_>>(), [0, 1, 2]);
        look(&mut store, NOW_S + 32 * DAY_S, &[]);
        assert_eq!((count(&store, "holder"), count(&store, "label")), (0, 0));
    }

    #[test]
    fn labels_and_all_else_share_the_bytes_of_the_file() {
        let folder = Folder::new("label-bytes");
        let bytes = 1 << 20;
        let mut store = folder.open(Bounds { bytes, ..ROOMY }).unwrap();
        for minute in 0..3_000 {
            let label = |number| holder(&format!("tenant {minute} {number}"), 1 << 30);
            let holders = (0..8).map(label).collect();
            store.add(NOW_S + minute * 60, &[Row { holders, ..row(1, 5) }]).unwrap();
        }
        let kept = (count(&store, "holder"), count(&store, "label"));
        assert!(kept.0 > 1_000 && kept.1 < 2 * kept.0, "{kept:?}");
        let newest = labels(&store).iter().map(|(_, moments)| moments.last().unwrap().0).max();
        assert_eq!(newest, Some(NOW_S + 2_999 * 60));
        drop(store);
        let length = fs::metadata(folder.file()).unwrap().len();
        assert!(length <= bytes, "{length}");
    }

    // As servers of the first version made it.
    const FIRST_VERSION: &str = "
        CREATE TABLE process (
            id INTEGER PRIMARY KEY, boot TEXT NOT NULL, pid INTEGER NOT NULL,
            start INTEGER NOT NULL, name TEXT, last_s INTEGER NOT NULL, UNIQUE (pid, start, boot)
        ) STRICT;
        CREATE TABLE moment (
            at_s INTEGER NOT NULL, process INTEGER NOT NULL, rss INTEGER, live INTEGER,
            PRIMARY KEY (at_s, process)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE event (
            at_s INTEGER NOT NULL, process INTEGER NOT NULL, kind TEXT NOT NULL, label TEXT,
            count INTEGER NOT NULL, bytes INTEGER
        ) STRICT;
        CREATE INDEX event_at ON event (at_s, process);
        INSERT INTO process VALUES (4, 'boot', 1, 7, 'server', 1800000000);
        INSERT INTO moment VALUES (1800000000, 4, 50, 30);
        INSERT INTO event VALUES (1800000000, 4, 'limit', NULL, 3, NULL);
        PRAGMA application_id = 0x74736c61; PRAGMA user_version = 1;
    ";

    #[test]
    fn a_file_of_the_first_version_goes_on() {
        let folder = Folder::new("version");
        fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
        let first = Connection::open(folder.file()).unwrap();
        first.execute_batch(FIRST_VERSION).unwrap();
        drop(first);
        let mut store = folder.open(ROOMY).unwrap();
        look(&mut store, NOW_S + 10, &[("a", 7)]);
        drop(store);
        let past = folder.open(ROOMY).unwrap().past(1, Some(7), 0).unwrap();
        let moments = [(NOW_S, Some(50), Some(30)), (NOW_S + 10, Some(5), None)];
        assert_eq!((&*past.moments, &*past.events), (&moments[..], &[event(NOW_S)][..]));
        assert_eq!(past.labels[0].moments, [(NOW_S + 10, 7)]);
    }

    #[test]
    fn the_file_stays_within_its_bytes() {
        let folder = Folder::new("bytes");
        let bytes = 1 << 20;
        let mut store = folder.open(Bounds { bytes, ..ROOMY }).unwrap();
        let rows: Vec<_> = (0..500).map(|pid| row(pid, 1 << 40)).collect();
        (0..400).for_each(|step| store.add(NOW_S + step * STEP_S, &rows).unwrap());
        drop(store);
        let length = fs::metadata(folder.file()).unwrap().len();
        assert!(length <= bytes, "{length}");
        let store = folder.open(ROOMY).unwrap();
        let newest = store.past(499, None, 0).unwrap().moments;
        assert_eq!(newest.last().unwrap().0, NOW_S + 399 * STEP_S);
        assert!(newest.len() > 20 && newest.len() < 399, "{}", newest.len());
    }

    #[test]
    fn events_of_all_processes_are_told_together() {
        let folder = Folder::new("host");
        let mut store = folder.open(ROOMY).unwrap();
        let purge = |at_s| Event { kind: "purge".into(), ..event(at_s) };
        store.add(NOW_S, &[Row { events: vec![event(NOW_S)], ..row(1, 5) }]).unwrap();
        store.add(NOW_S + 10, &[Row { events: vec![purge(NOW_S + 10)], ..row(2, 5) }]).unwrap();
        let told = store.host_events(0).unwrap();
        assert_eq!(told.iter().map(|told| told.pid).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((told[0].name.as_deref(), &told[1].event), (Some("server"), &purge(NOW_S + 10)));
        assert_eq!(store.host_events(NOW_S).unwrap().len(), 1);
    }

    #[test]
    fn an_event_tells_which_of_the_processes_of_a_number_it_was() {
        let folder = Folder::new("same-number");
        let with_event = |start_ticks| {
            let owner = Owner { start_ticks, ..row(1, 5).owner };
            Row { owner, events: vec![event(NOW_S)], ..row(1, 5) }
        };
        let starts = |store: &Store| -> Vec<_> {
            let told = store.host_events(0).unwrap();
            told.iter().map(|told| (told.pid, told.start_ticks)).collect()
        };
        let mut store = folder.open(ROOMY).unwrap();
        store.add(NOW_S, &[with_event(7), with_event(9)]).unwrap();
        assert_eq!(starts(&store), [(1, Some(7)), (1, Some(9))]);
        drop(store);
        let mut store = Store::open(&folder.file(), ROOMY, "next boot").unwrap();
        store.add(NOW_S + 10, &[with_event(7)]).unwrap();
        assert_eq!(starts(&store), [(1, None), (1, None), (1, Some(7))]);
    }

    // A disk that has no page more than there are now.
    fn fill_disk(store: &Store, is_full: bool) {
        let pages: u32 = store.db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        let most = if is_full { pages } else { u32::MAX - 1 };
        store.db.query_row(&format!("PRAGMA max_page_count = {most}"), [], |_| Ok(())).unwrap();
    }

    #[test]
    fn a_disk_that_is_full_costs_the_rows_of_that_time_alone() {
        let folder = Folder::new("full");
        let mut store = folder.open(ROOMY).unwrap();
        store.add(NOW_S, &[row(1, 5)]).unwrap();
        fill_disk(&store, true);
        let many: Vec<_> = (0..5_000).map(|pid| row(pid, 6)).collect();
        let error = store.add(NOW_S + 10, &many).unwrap_err();
        assert!(is_disk_full(&error), "{error:#}");
        assert!(!is_disk_full(&anyhow::anyhow!("another")));
        assert_eq!(store.past(1, None, 0).unwrap().moments.len(), 1, "nothing of it is left");
        fill_disk(&store, false);
        store.add(NOW_S + 20, &many).unwrap();
        assert_eq!(store.past(1, None, 0).unwrap().moments.len(), 2);
    }

    #[test]
    fn the_largest_file_has_room_for_what_is_new() {
        let folder = Folder::new("largest");
        let bounds = Bounds::default();
        let mut store = folder.open(bounds).unwrap();
        let long = |at_s| Event { label: Some("x".repeat(1000)), ..event(at_s) };
        let events = |at_s| Row { events: vec![long(at_s); 5_000], ..row(1, 5) };
        for step in 0..20 {
            let at_s = NOW_S + step * STEP_S;
            store.add(at_s, &[events(at_s)]).unwrap();
        }
        let kept = count(&store, "event");
        assert!((5_000..60_000).contains(&kept), "{kept}");
        let told = store.past(1, None, 0).unwrap().events;
        assert_eq!(told.last().unwrap().at_s, NOW_S + 19 * STEP_S);
        drop(store);
        let length = fs::metadata(folder.file()).unwrap().len();
        assert!(length <= bounds.bytes && length > bounds.bytes / 2, "{length}");
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_reason() {
        let folder = Folder::new("refused");
        let store = folder.open(ROOMY).unwrap();
        let refused = |folder: &Folder| format!("{:#}", folder.open(ROOMY).unwrap_err());
        assert!(refused(&folder).contains("another server has it"), "{}", refused(&folder));
        store.db.execute_batch("PRAGMA user_version = 9").unwrap();
        drop(store);
        assert!(refused(&folder).contains("another version, 9"), "{}", refused(&folder));
        let other = Connection::open(folder.file()).unwrap();
        other.execute_batch("PRAGMA application_id = 5").unwrap();
        drop(other);
        assert!(refused(&folder).contains("another program"), "{}", refused(&folder));
        fs::write(folder.file(), vec![b'x'; 8192]).unwrap();
        assert!(refused(&folder).contains("it is damaged"), "{}", refused(&folder));
        fs::remove_file(folder.file()).unwrap();
        fs::create_dir(folder.file()).unwrap();
        assert!(refused(&folder).contains("directory"), "{}", refused(&folder));
    }

    #[test]
    fn a_file_damaged_in_its_middle_is_noticed() {
        let folder = Folder::new("middle");
        let rows: Vec<_> = (0..2000).map(|pid| row(pid, 1)).collect();
        folder.open(ROOMY).unwrap().add(NOW_S, &rows).unwrap();
        let mut bytes = fs::read(folder.file()).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 8192].fill(0xff);
        fs::write(folder.file(), bytes).unwrap();
        let refused = format!("{:#}", folder.open(ROOMY).unwrap_err());
        assert!(refused.contains("damaged"), "{refused}");
    }
}
