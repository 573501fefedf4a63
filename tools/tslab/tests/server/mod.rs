//! `tslab serve` as a process, and a client that knows just enough of HTTP.
#![allow(dead_code, reason = "each test program uses a part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::openmetrics::{Family, parse};
use crate::place::Directory;

const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with its test.
pub struct Server {
    child: Child,
    said: Mutex<Receiver<String>>,
    pub address: SocketAddr,
}

/// What came back.
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// The command that serves `files` at any address that is free.
pub fn command(files: &Directory, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tslab"));
    command.arg("--directory").arg(&files.0).args(["serve", "--listen", "127.0.0.1:0"]);
    if !arguments.contains(&"--history") {
        command.args(["--history", "none"]);
    }
    command.args(arguments).env_remove("TSLAB_SERVE_TOKEN");
    command
}

impl Server {
    pub fn start(files: &Directory, arguments: &[&str]) -> Self {
        Self::of(&mut command(files, arguments))
    }

    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        errors.read_line(&mut first).unwrap();
        let address = first.trim().strip_prefix("tslab: serving http://");
        let address = address.and_then(|address| address.strip_suffix('/')?.parse().ok());
        let (tell, said) = channel();
        thread::spawn(move || {
            errors.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
        });
        let said = Mutex::new(said);
        Self { child, said, address: address.unwrap_or_else(|| panic!("{first}")) }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn get(&self, path: &str) -> Response {
        self.ask(path, &[])
    }

    /// Asks with further lines in the head.
    pub fn ask(&self, path: &str, lines: &[&str]) -> Response {
        let mut stream = self.connect();
        let lines = lines.iter().flat_map(|line| [*line, "\r\n"]).collect::<String>();
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}");
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Response {
            status: status.expect("a status"),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn json(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{}", response.body);
        serde_json::from_str(&response.body).unwrap()
    }

    /// The figures as OpenMetrics.
    pub fn scrape(&self) -> Response {
        self.ask("/metrics", &["Accept: application/openmetrics-text"])
    }

    /// The figures of now, or of a moment ago.
    pub fn metrics(&self) -> Vec<Family> {
        let response = self.scrape();
        assert_eq!(response.status, 200, "{}", response.body);
        parse(&response.body).unwrap_or_else(|error| panic!("{error} in\n{}", response.body))
    }

    /// Figures that are made after this call.
    pub fn new_metrics(&self) -> Vec<Family> {
        let old = self.scrape().body;
        let start = Instant::now();
        // How long reading took is never twice the same.
        while self.scrape().body == old {
            assert!(start.elapsed() < PATIENCE, "old figures");
            thread::sleep(Duration::from_millis(20));
        }
        self.metrics()
    }

    /// Waits for a line on standard error.
    pub fn says(&self, part: &str) {
        let said = self.said.lock().unwrap();
        while !said.recv_timeout(PATIENCE).expect("a line").contains(part) {}
    }

    /// Sends a signal; the exit status.
    pub fn end(mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server does not end");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of the sample that has these labels, whatever others it has.
pub fn value(families: &[Family], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let has = |sample: &&crate::openmetrics::Sample| {
        sample.name == name
            && labels.iter().all(|(label, value)| sample.label(label) == Some(value))
    };
    Some(families.iter().flat_map(|family| &family.samples).find(has)?.value)
}
