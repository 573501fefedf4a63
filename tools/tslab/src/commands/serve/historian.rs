//! The historian: a thread that alone has the file of the history.
//!
//!  H1  nobody waits for the disk but this thread, and for a while those who ask for the past
//!  H2  once the thread or the looks have ended, whyever, nothing is said to be kept

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use serde::Serialize;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard, oneshot};
use tokio::time::timeout;

use super::store::{Bounds, HostEvent, Past, Row, Store, is_disk_full};
use super::target::Target;
use crate::host;
use crate::say::say;
use crate::text;

/// Two boots may give the same number to processes that start at the same time after them.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// So many looks may wait for the disk: a minute.
const MOST_WAITING: usize = 6;

/// How long those wait who ask.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is wanted of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// None: the events of all processes.
    pub target: Option<Target>,
    /// After this moment, in seconds since 1970.
    pub after_s: u64,
}

enum Order {
    Keep(u64, Vec<Row>),
    // The turn ends with the order, so that one at a time waits.
    Tell(Wanted, oneshot::Sender<Result<String>>, OwnedMutexGuard<()>),
    End(oneshot::Sender<()>),
}

/// Gives orders to the thread. The last one that goes ends it.
pub struct Historian(Asker);

// What those who ask need.
#[derive(Clone)]
struct Asker {
    path: PathBuf,
    orders: SyncSender<Order>,
    turn: Arc<Turn<()>>,
    patience: Duration,
}

/// What became of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// They are written soon.
    Soon,
    /// The disk is too slow for them.
    No,
    /// The thread has ended.
    Never,
}

/// An answer.
#[derive(Serialize)]
struct Told<T> {
    /// There is a file that is written.
    kept: bool,
    /// The server's clock, in seconds since 1970.
    now_s: u64,
    #[serde(flatten)]
    what: T,
}

#[derive(Default, Serialize)]
struct Events {
    events: Vec<HostEvent>,
}

impl Historian {
    /// Begins a history in this file.
    pub fn begin(path: &Path) -> Arc<Self> {
        // One place more, for a question.
        let (orders, received) = sync_channel(MOST_WAITING + 1);
        let path = path.to_owned();
        let own = path.clone();
        thread::spawn(move || {
            if let Some(store) = or_without(&own, open(&own)) {
                Scribe { path: own, store, is_full: false }.obey(&received);
            }
        });
        Arc::new(Self(Asker { path, orders, turn: Arc::default(), patience: PATIENCE }))
    }

    /// Has the rows of a moment written.
    pub fn keep(&self, at_s: u64, rows: Vec<Row>) -> Kept {
        match self.0.orders.try_send(Order::Keep(at_s, rows)) {
            Ok(()) => Kept::Soon,
            Err(TrySendError::Full(_)) => Kept::No,
            Err(TrySendError::Disconnected(_)) => Kept::Never,
        }
    }

    /// Has what is still to be written written, and the file closed.
    pub async fn end(&self) {
        let (reply, ended) = oneshot::channel();
        if self.0.orders.try_send(Order::End(reply)).is_ok() {
            let _ = timeout(PATIENCE, ended).await;
        }
    }
}

impl Asker {
    // None: the thread has ended.
    async fn ask(self, wanted: Wanted) -> Option<Result<String>> {
        let Self { path, orders, turn, patience } = self;
        let slow = || {
            let path = text::printable(&path.to_string_lossy());
            Some(Err(anyhow!("the disk of {path} is slow: ask again later")))
        };
        let Ok(turn) = timeout(patience, turn.lock_owned()).await else { return slow() };
        let (reply, told) = oneshot::channel();
        match orders.try_send(Order::Tell(wanted, reply, turn)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return slow(),
            Err(TrySendError::Disconnected(_)) => return None,
        }
        // The looks alone keep the thread.
        drop(orders);
        match timeout(patience, told).await {
            Ok(told) => told.ok(),
            Err(_) => slow(),
        }
    }
}

/// The past as JSON, whether there is a history or not.
pub async fn told(historian: &Weak<Historian>, wanted: Wanted) -> Result<String> {
    let asker = historian.upgrade().map(|historian| historian.0.clone());
    if let Some(asker) = asker
        && let Some(told) = asker.ask(wanted).await
    {
        return told;
    }
    match wanted.target {
        Some(_) => json(false, Past::default()),
        None => json(false, Events::default()),
    }
}

fn json(kept: bool, what: impl Serialize) -> Result<String> {
    Ok(text::json_line(&Told { kept, now_s: now_s(), what })?)
}

fn open(path: &Path) -> Result<Store> {
    let boot = fs::read_to_string(BOOT).unwrap_or_default();
    Store::open(path, Bounds::default(), boot.trim())
}

fn or_without<T>(path: &Path, result: Result<T>) -> Option<T> {
    let complain = |error| {
        let path = path.to_string_lossy();
        say(&text::printable(&format!(
            "no history is kept: cannot use {path}: {error:#}: name another file with \
             --history FILE, or none with --history none"
        )));
    };
    result.map_err(complain).ok()
}

// The thread.
struct Scribe {
    path: PathBuf,
    store: Store,
    is_full: bool,
}

impl Scribe {
    fn obey(mut self, orders: &Receiver<Order>) {
        for order in orders {
            match order {
                Order::Keep(at_s, rows) if self.keep(at_s, &rows) => {}
                Order::Keep(..) => return,
                Order::Tell(wanted, reply, _turn) => drop(reply.send(self.tell(wanted))),
                Order::End(reply) => {
                    drop(self);
                    let _ = reply.send(());
                    return;
                }
            }
        }
    }

    // False: it cannot be done, and never will. A disk that is full may have room later.
    fn keep(&mut self, at_s: u64, rows: &[Row]) -> bool {
        match self.store.add(at_s, rows) {
            Err(error) if is_disk_full(&error) => {
                if !std::mem::replace(&mut self.is_full, true) {
                    let path = text::printable(&self.path.to_string_lossy());
                    say(&format!(
                        "the disk of {path} is full: the history has a gap until there is room"
                    ));
                }
                true
            }
            added => {
                self.is_full = false;
                or_without(&self.path, added).is_some()
            }
        }
    }

    fn tell(&self, Wanted { target, after_s }: Wanted) -> Result<String> {
        match target {
            Some(Target { pid, start_ticks }) => {
                let start_ticks = start_ticks.or_else(|| host::start_ticks(pid));
                json(true, self.store.past(pid, start_ticks, after_s)?)
            }
            None => json(true, Events { events: self.store.host_events(after_s)? }),
        }
    }
}

/// One whose disk hangs, and what keeps its thread from having ended.
#[cfg(test)]
pub fn stuck() -> (Arc<Historian>, Box<dyn std::any::Any>) {
    let (orders, received) = sync_channel(MOST_WAITING + 1);
    let patience = Duration::from_millis(50);
    let asker = Asker { path: "/disk".into(), orders, turn: Arc::default(), patience };
    (Arc::new(Historian(asker)), Box::new(received))
}

/// The server's clock, in seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::serve::store::Owner;

    // Above the largest number that Linux gives to a process.
    const NOBODY: u32 = 4_200_000_000;

    fn rows() -> Vec<Row> {
        let owner = Owner { pid: NOBODY, start_ticks: 7, name: None };
        let (holders, events) = (Vec::new(), Vec::new());
        vec![Row { owner, rss_bytes: Some(5), live_bytes: None, holders, events }]
    }

    fn ask(historian: &Weak<Historian>) -> Result<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(told(historian, Wanted { target: Some(NOBODY.into()), after_s: 0 }))
    }

    #[test]
    fn a_disk_that_hangs_holds_up_nobody_for_long() {
        let (historian, received) = stuck();
        let slow = ask(&Arc::downgrade(&historian)).unwrap_err().to_string();
        assert_eq!(slow, "the disk of /disk is slow: ask again later");
        let slow = ask(&Arc::downgrade(&historian)).unwrap_err().to_string();
        assert!(slow.contains("is slow"), "the first question still waits: {slow}");
        let kept: Vec<_> = (0..=MOST_WAITING).map(|_| historian.keep(1, rows())).collect();
        assert_eq!(kept[..MOST_WAITING], [Kept::Soon; MOST_WAITING]);
        assert_eq!(kept[MOST_WAITING], Kept::No);
        drop(received);
        assert_eq!(historian.keep(1, rows()), Kept::Never);
    }

    #[test]
    fn nothing_is_kept_once_the_thread_or_the_looks_have_ended() {
        let (historian, received) = stuck();
        let weak = Arc::downgrade(&historian);
        drop(received);
        assert!(ask(&weak).unwrap().contains("\"kept\":false"));
        let (historian, _received) = stuck();
        let weak = Arc::downgrade(&historian);
        drop(historian);
        assert!(ask(&weak).unwrap().contains("\"kept\":false"));
    }

    #[test]
    fn the_past_is_told_until_the_end() {
        let file = std::env::temp_dir().join(format!("tslab-historian-{}", std::process::id()));
        let historian = Historian::begin(&file);
        assert_eq!(historian.keep(20, rows()), Kept::Soon);
        let told = ask(&Arc::downgrade(&historian));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(historian.end());
        let wal = file.with_extension("wal");
        assert!(file.exists() && !wal.exists());
        fs::remove_file(&file).unwrap();
        let told = told.unwrap();
        assert!(told.contains("\"kept\":true") && told.contains("[20,5,null]"), "{told}");
    }
}
