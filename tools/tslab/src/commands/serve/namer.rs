//! The namer: finds out which functions hold most of what processes sampled.
//!
//!  N1  reading programs takes long, and much memory for a moment: a process of its own does it,
//!      and a thread of its own waits for that, no scrape and no look of the watch
//!  N2  it works for a hundredth of the time, and `ADVANCE` before that
//!  N3  no process is waited for longer than `PATIENCE`, nor asked about for good if that fails

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::earlier::{Key, key};
use super::sites::Sites;
use crate::commands::Subject;
use crate::commands::callers::Callers;
use crate::say::say;

/// So many processes may wait; others are asked for at a later look.
const MOST_WAITING: usize = 64;

/// Enough for twenty programs as large as node.
const ADVANCE: Duration = Duration::from_secs(5);
const PART: u32 = 100;

/// It ends by itself after half of it, unless it waits for something.
const PATIENCE: Duration = Duration::from_secs(60);

/// Also when the file has been replaced since.
const ITSELF: &str = "/proc/self/exe";

/// Gives orders to the thread, which ends with it.
#[derive(Debug)]
pub struct Namer {
    sites: Arc<Sites>,
    orders: SyncSender<Key>,
}

impl Namer {
    /// Of processes that have files in this directory.
    pub fn begin(directory: PathBuf, sites: &Arc<Sites>) -> Self {
        let (orders, received) = sync_channel(MOST_WAITING);
        let known = Arc::clone(sites);
        thread::spawn(move || obey(&received, &known, |key| ask(&directory, key)));
        Self { sites: Arc::clone(sites), orders }
    }

    /// Has a process's call stacks named, if names are wanted.
    pub fn name(&self, subject: &Subject) {
        if self.sites.take_wish(subject) && self.orders.try_send(key(subject)).is_err() {
            self.sites.withdraw(key(subject));
        }
    }
}

fn obey(orders: &Receiver<Key>, sites: &Sites, ask: impl Fn(Key) -> Option<Callers>) {
    let mut debt = Debt::new(Instant::now());
    for key in orders {
        thread::sleep(debt.pause(Instant::now()));
        let start = Instant::now();
        match ask(key) {
            Some(callers) => sites.keep(key, callers),
            None if sites.fail(key) => say(&format!(
                "the call sites of process {} have no names: reading its programs failed too often",
                key.0
            )),
            None => (),
        }
        debt.add(start.elapsed(), Instant::now());
    }
}

fn ask(directory: &Path, (pid, _): Key) -> Option<Callers> {
    let mut command = Command::new(ITSELF);
    command.arg0("tslab").args([OsStr::new("--directory"), directory.as_os_str()]);
    command.args(["callers", &pid.to_string()]);
    answer(command, PATIENCE)
}

// None: it failed, or took too long.
fn answer(mut command: Command, patience: Duration) -> Option<Callers> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let said = child.stdout.take().and_then(|output| read_within(output, patience));
    if said.is_none() {
        // It may have ended meanwhile.
        let _ = child.kill();
    }
    let status = child.wait().ok()?;
    serde_json::from_slice(&said.filter(|_| status.success())?).ok()
}

fn read_within(mut output: ChildStdout, patience: Duration) -> Option<Vec<u8>> {
    let (done, said) = sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.read_to_end(&mut bytes);
        // Nobody waits for it any more after `patience`.
        let _ = done.send(read.is_ok().then_some(bytes));
    });
    said.recv_timeout(patience).ok().flatten()
}

/// Work that was done and not waited for yet.
#[derive(Debug)]
struct Debt {
    work: Duration,
    at: Instant,
}

impl Debt {
    fn new(at: Instant) -> Self {
        Self { work: Duration::ZERO, at }
    }

    fn add(&mut self, work: Duration, now: Instant) {
        self.work = self.left(now) + work;
        self.at = now;
    }

    /// How long to wait until the next work.
    fn pause(&self, now: Instant) -> Duration {
        self.left(now).saturating_sub(ADVANCE) * PART
    }

    fn left(&self, now: Instant) -> Duration {
        self.work.saturating_sub(now.duration_since(self.at) / PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::callers::Caller;
    use crate::commands::serve::samples::Samples;
    use crate::fixture::sampled;

    fn series(sites: &Sites, subject: &Subject) -> usize {
        let mut samples = Samples::default();
        sites.add(&mut samples, subject);
        samples.of("tslab_site_live_bytes").len()
    }

    #[test]
    fn what_is_ordered_is_kept() {
        let sites = Arc::new(Sites::new(10));
        let (image, (orders, received)) = (sampled(), sync_channel(1));
        let subject = Subject::of_bytes(image.bytes());
        let namer = Namer { sites: Arc::clone(&sites), orders };
        namer.name(&subject);
        drop(namer);
        let made_ms = image.made_ms;
        obey(&received, &sites, |key| {
            let caller = Caller { name: Some("load".to_owned()), rows: vec![4] };
            (key == (42, 7)).then(|| Callers { made_ms, callers: vec![caller] })
        });
        assert_eq!(series(&sites, &subject), 2);
    }

    // Nobody takes orders here.
    #[test]
    fn a_look_waits_for_no_name() {
        let (sites, (orders, _received)) = (Arc::new(Sites::new(10)), sync_channel(1));
        let namer = Namer { sites: Arc::clone(&sites), orders };
        for pid in 0..10 {
            let subject = Subject { pid, ..Subject::of_bytes(sampled().bytes()) };
            namer.name(&subject);
            assert_eq!((series(&sites, &subject), sites.take_wish(&subject)), (1, pid > 0));
        }
    }

    #[test]
    fn who_fails_or_takes_long_gives_no_answer() {
        let of = |script: &str, patience| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            answer(command, patience).map(|callers| callers.made_ms)
        };
        let good = r#"echo '{"made_ms": 5, "callers": []}'"#;
        assert_eq!(of(good, PATIENCE), Some(5));
        for bad in ["", "echo {", &format!("{good}; exit 1"), &format!("{good}; kill -9 $$")] {
            assert_eq!(of(bad, PATIENCE), None, "{bad}");
        }
        let start = Instant::now();
        let hangs = format!("{good}; exec sleep 600");
        assert_eq!(of(&hangs, Duration::from_millis(50)), None);
        assert!(start.elapsed() < PATIENCE);
    }

    #[test]
    fn three_failures_are_enough() {
        let sites = Arc::new(Sites::new(10));
        let subject = Subject::of_bytes(sampled().bytes());
        let mut asked = 0;
        while sites.take_wish(&subject) {
            let (orders, received) = sync_channel(1);
            orders.send(key(&subject)).unwrap();
            drop(orders);
            obey(&received, &sites, |_| None);
            asked += 1;
        }
        assert_eq!(asked, 3);
    }

    #[test]
    fn work_takes_a_hundredth_of_the_time() {
        let start = Instant::now();
        let mut debt = Debt::new(start);
        assert_eq!(debt.pause(start), Duration::ZERO);
        debt.add(ADVANCE, start);
        assert_eq!(debt.pause(start), Duration::ZERO);
        let (mut now, second) = (start, Duration::from_secs(1));
        for _ in 0..1000 {
            now += debt.pause(now);
            debt.add(second, now);
        }
        let all = now.duration_since(start) + debt.pause(now);
        assert_eq!(all.as_secs(), 1000 * u64::from(PART));
        assert_eq!(debt.pause(now + second * PART), Duration::ZERO);
        assert!(debt.pause(now + second * PART / 2) > Duration::ZERO);
    }
}
