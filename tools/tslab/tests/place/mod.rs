//! A directory with statistics files, the processes that they are of, and the command that reads
//! them.
#![allow(dead_code, reason = "each test program uses a part")]

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use serde_json::Value;

use crate::common::{Image, sample};

/// A place for statistics files that ends with its test.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("files-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file under the name that its process would give it.
    pub fn add(&self, image: &Image) -> PathBuf {
        let path = self.path(&format!("tslab.{}.{}", image.pid, image.start_ticks));
        fs::write(&path, image.bytes()).unwrap();
        path
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tslab"));
        let output = command.arg("--directory").arg(&self.0).args(arguments).output().unwrap();
        Output {
            code: output.status.code(),
            text: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&output.text).unwrap_or_else(|_| panic!("{}", output.errors))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub struct Output {
    pub code: Option<i32>,
    pub text: String,
    pub errors: String,
}

/// Field 22 of /proc/PID/stat.
pub fn start_of(pid: &str) -> u64 {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap();
    let stat = String::from_utf8_lossy(&stat);
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_ascii_whitespace().nth(19).unwrap().parse().unwrap()
}

pub fn own_start() -> u64 {
    start_of("self")
}

/// A file in use by this process, as by a library in it.
#[expect(unsafe_code, reason = "there is no other way to map a file")]
pub fn map(path: &Path) {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let file = fs::File::open(path).unwrap();
    let flags = MapFlags::SHARED;
    // SAFETY: nothing lies where the system chooses to map, and nobody uses what is mapped.
    unsafe { mmap(std::ptr::null_mut(), 4096, ProtFlags::READ, flags, &file, 0) }.unwrap();
}

// The directory of a crowd's files.
const PLACE: &str = "TSLAB_TEST_FILES";

/// Processes that use files as the library does, until their test ends.
pub struct Crowd(Vec<Child>);

impl Crowd {
    pub fn of(files: &Directory, count: usize) -> Self {
        let program = env::current_exe().unwrap();
        let mut crowd = Self((0..count).map(|_| spawn(&program, files)).collect());
        crowd.0.iter_mut().for_each(|child| settle(child, files, |_| ()));
        crowd
    }

    /// A process of this name.
    pub fn named(files: &Directory, name: &str, change: impl FnOnce(&mut Image)) -> Self {
        let program = files.path(name);
        symlink(env::current_exe().unwrap(), &program).unwrap();
        let mut crowd = Self(vec![spawn(&program, files)]);
        settle(&mut crowd.0[0], files, change);
        crowd
    }

    pub fn first(&self) -> u32 {
        self.0[0].id()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

// The test program itself, which finds `join_crowd` in a test of this name.
fn spawn(program: &Path, files: &Directory) -> Child {
    Command::new(program)
        .args(["--exact", "one_of_a_crowd", "--nocapture"])
        .env(PLACE, &files.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

// Gives a process its file, and waits until it uses it.
fn settle(child: &mut Child, files: &Directory, change: impl FnOnce(&mut Image)) {
    let mut image = sample(child.id(), start_of(&child.id().to_string()));
    change(&mut image);
    files.add(&image);
    child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
}

/// What a process of a crowd does; nothing in any other.
pub fn join_crowd() {
    let Some(directory) = env::var_os(PLACE) else { return };
    let mut input = io::stdin().lock();
    input.read_line(&mut String::new()).unwrap();
    let name = format!("tslab.{}.{}", process::id(), own_start());
    map(&Path::new(&directory).join(name));
    io::stderr().write_all(b"ready\n").unwrap();
    let _ = input.read(&mut [0]);
}
