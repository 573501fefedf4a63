//! Why a process has no statistics file: what the system tells of it, and what follows.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::host;
use crate::text;

mod limits;
mod program;
mod settings;

use limits::Limits;
use program::Switch;
use settings::{is_off, option};

const LIBRARY: &str = "libtslab";
const REGION: &str = "[anon:tslab]";
/// Option `stats_delay_ms`, if nobody sets it.
const DELAY_MS: u64 = 100;

/// What is known of a process without a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// It has ended, and its parent has not asked for it yet.
    has_ended: bool,
    /// Of another user than this command.
    owner: Option<u32>,
    /// Its mappings. None: they may not be read.
    maps: Option<String>,
    /// What it was started with, as far as it may be read.
    variables: Vec<String>,
    /// It sees other files than this command.
    is_apart: bool,
    /// The directory of the files, as the process sees it, cannot take one.
    refusal: Option<&'static str>,
    limits: Limits,
    /// How its program switches the file off.
    program: Option<Switch>,
    /// Where its file lies, when the command was told to look elsewhere.
    elsewhere: bool,
    age_ms: Option<u64>,
}

impl Facts {
    /// Of a process that exists. `directory`: where its file was looked for.
    pub fn of(pid: u32, directory: &Path) -> Self {
        let place = Path::new("/proc").join(pid.to_string());
        let owner = fs::metadata(&place).ok().map(|found| found.uid());
        let own = geteuid().as_raw();
        let place_of_files = place.join("root").join(host::DIRECTORY.trim_start_matches('/'));
        let maps = host::maps_text(pid);
        let links = maps.as_ref().is_some_and(|maps| maps.contains(LIBRARY));
        Self {
            has_ended: host::has_ended(pid),
            owner: owner.filter(|&owner| own != 0 && owner != own),
            maps,
            variables: variables(&fs::read(place.join("environ")).unwrap_or_default()),
            is_apart: is_apart(&place),
            refusal: refusal(&place_of_files),
            limits: Limits::of(&place),
            program: Switch::of(&place, links),
            elsewhere: directory != Path::new(host::DIRECTORY) && has_file(pid),
            age_ms: host::age_ms(pid),
        }
    }

    /// The cause, and what to do.
    pub fn cause(&self) -> String {
        if self.has_ended {
            return "it has ended, and waits for its parent".to_owned();
        }
        if self.elsewhere {
            return format!("it lies in {}: leave --directory out", host::DIRECTORY);
        }
        let Some(maps) = &self.maps else { return self.closed() };
        if !maps.contains(LIBRARY) && !maps.contains(REGION) {
            return self.without_library();
        }
        if let Some(name) = self.switch() {
            return format!("its variable {name} switches option `stats` off");
        }
        self.with_library(maps)
    }

    // Nothing can be seen of what it maps.
    fn closed(&self) -> String {
        match self.owner {
            Some(owner) => format!(
                "it is of another user ({owner}), whose processes this command may not look at: \
                 run it as that user or root"
            ),
            None => "the system does not show what it maps: run this command as root".to_owned(),
        }
    }

    fn without_library(&self) -> String {
        if self.variable("LD_PRELOAD").is_some_and(|value| value.contains(LIBRARY)) {
            return "it does not run on tslab, though its LD_PRELOAD names the library: the \
                    program is static, has privileges of its own or another architecture, or the \
                    loader did not find the library"
                .to_owned();
        }
        "it does not run on tslab: start it with `tslab run -- PROGRAM`".to_owned()
    }

    fn with_library(&self, maps: &str) -> String {
        let is_file = |line: &&str| line.contains("/tslab.") && line.ends_with(" (deleted)");
        if maps.lines().any(|line| is_file(&line)) {
            return "its file was deleted, and it makes no other".to_owned();
        }
        if let Some(refusal) = self.refusal {
            return format!("{} as the process sees it {refusal}", host::DIRECTORY);
        }
        if self.is_apart {
            return format!(
                "it is in a mount namespace of its own, where {} has no file of it either",
                host::DIRECTORY
            );
        }
        if let Some(cause) = self.limits.cause() {
            return cause;
        }
        match self.program {
            Some(switch) => switch.text().to_owned(),
            None => self.too_little(),
        }
    }

    fn too_little(&self) -> String {
        let delay_ms = self.delay_ms();
        match self.age_ms {
            Some(age_ms) if age_ms <= delay_ms && delay_ms > DELAY_MS => format!(
                "it holds little, and its option `stats_delay_ms` lets it wait for {}",
                text::age(Some(delay_ms))
            ),
            Some(age_ms) if age_ms <= delay_ms => {
                format!("it began {age_ms} ms ago, and holds little yet: try again")
            }
            _ => "it holds little, opened no epoch, and allocates nothing: the file comes when it \
                  allocates more"
                .to_owned(),
        }
    }

    fn delay_ms(&self) -> u64 {
        let of_conf = || option(self.variable("TSLAB_CONF")?, "stats_delay_ms");
        let value = self.variable("TSLAB_STATS_DELAY_MS").or_else(of_conf);
        value.and_then(|value| value.parse().ok()).unwrap_or(DELAY_MS)
    }

    // A variable of its own wins over what TSLAB_CONF says.
    fn switch(&self) -> Option<&'static str> {
        if let Some(value) = self.variable("TSLAB_STATS") {
            return is_off(value).then_some("TSLAB_STATS");
        }
        let value = option(self.variable("TSLAB_CONF")?, "stats")?;
        is_off(value).then_some("TSLAB_CONF")
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let pairs = self.variables.iter().filter_map(|line| line.split_once('='));
        pairs.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
    }
}

fn variables(text: &[u8]) -> Vec<String> {
    text.split(|&byte| byte == 0).map(|one| String::from_utf8_lossy(one).into_owned()).collect()
}

fn has_file(pid: u32) -> bool {
    let entries = host::entries(Path::new(host::DIRECTORY)).unwrap_or_default();
    entries.iter().any(|entry| entry.pid == pid && host::runs(pid, entry.start_ticks))
}

// Whether the process sees other file systems than this one. False when the system does not tell.
fn is_apart(place: &Path) -> bool {
    let space = |place: &Path| fs::read_link(place.join("ns/mnt")).ok();
    space(place).is_some_and(|theirs| space(Path::new("/proc/self")) != Some(theirs))
}

fn refusal(directory: &Path) -> Option<&'static str> {
    match statvfs(directory) {
        Err(Errno::NOENT | Errno::NOTDIR) => Some("does not exist: mount a tmpfs there"),
        Ok(system) if system.f_flag.contains(StatVfsMountFlags::RDONLY) => {
            Some("is read-only: mount a tmpfs there")
        }
        Ok(system) if system.f_bavail == 0 => Some("is full: make room, and start it again"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "7f00-7f01 r-xp 00000000 00:18 42   /opt/lib/libtslab-preload.so.0.1.0\n";

    // A process on tslab that holds little, and of which everything is known.
    fn facts() -> Facts {
        Facts { maps: Some(MAPS.to_owned()), age_ms: Some(5000), ..Facts::default() }
    }

    fn started_with(variable: &str) -> Facts {
        Facts { variables: variables(variable.as_bytes()), ..facts() }
    }

    #[test]
    fn every_cause_has_words_of_its_own() {
        let deleted = "7f00-7f01 rw-s 00000000 00:18 42   /dev/shm/tslab.1.2 (deleted)\n";
        let other = || Some("7f00-7f01 r-xp 0 00:18 42 /bin/cat\n".to_owned());
        let anonymous = "7f00-7f01 rw-p 0 00:00 0 [anon:tslab]\n".to_owned();
        let causes = [
            (facts(), "holds little, opened no epoch"),
            (Facts { maps: Some(anonymous), ..facts() }, "holds little, opened no epoch"),
            (Facts { age_ms: Some(20), ..facts() }, "began 20 ms ago"),
            (Facts { has_ended: true, ..facts() }, "waits for its parent"),
            (Facts { elsewhere: true, ..facts() }, "leave --directory out"),
            (Facts { maps: None, owner: Some(7), ..facts() }, "another user (7)"),
            (Facts { maps: None, ..facts() }, "does not show what it maps"),
            (Facts { maps: other(), ..facts() }, "start it with `tslab run"),
            (Facts { maps: other(), ..started_with("LD_PRELOAD=/libtslab.so") }, "is static"),
            (Facts { maps: Some(MAPS.to_owned() + deleted), ..facts() }, "was deleted"),
            (
                Facts { refusal: Some("is full"), ..facts() },
                "/dev/shm as the process sees it is full",
            ),
            (Facts { is_apart: true, ..facts() }, "mount namespace of its own"),
            (
                Facts { limits: Limits { file_bytes: Some(0), ..Limits::default() }, ..facts() },
                "(ulimit -f) is 0 B",
            ),
            (Facts { program: Some(Switch::Conf), ..facts() }, "`tslab_conf` switches"),
            (Facts { program: Some(Switch::Call), ..facts() }, "by `tslab_option_set`"),
            (started_with("TSLAB_STATS_DELAY_MS=3600000"), "lets it wait for 60 min"),
            (started_with("TSLAB_CONF=stats_delay_ms:3600000"), "`stats_delay_ms` lets it wait"),
        ];
        for (facts, words) in causes {
            assert!(facts.cause().contains(words), "{facts:?}: {}", facts.cause());
            assert!(!facts.cause().contains("unless"), "{facts:?}: {}", facts.cause());
        }
    }

    #[test]
    fn the_variable_that_switches_the_file_off_is_named() {
        let off = |variable| started_with(variable).cause().contains("switches option `stats` off");
        assert!(off("A=1\0TSLAB_STATS=0\0"));
        assert!(off("TSLAB_STATS=false"));
        assert!(off("TSLAB_CONF=thp:never,stats:0"));
        assert!(off("TSLAB_CONF=stats:1,stats:0"));
        assert!(!off("TSLAB_CONF=stats:0,stats:1"));
        assert!(!off("TSLAB_CONF=stats:0\0TSLAB_STATS=1"));
        assert!(!off("XTSLAB_STATS=0"));
    }

    #[test]
    fn a_directory_that_cannot_take_a_file_is_known() {
        assert_eq!(refusal(&std::env::temp_dir()), None);
        assert!(refusal(Path::new("/nowhere")).is_some_and(|why| why.contains("does not exist")));
    }
}
