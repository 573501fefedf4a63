//! The command as its users run it, on files as processes leave them.

mod common;
mod place;
#[path = "../src/rows.rs"]
mod rows;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Closing, Image, add_epoch, add_samples, sample, server};
use place::{Directory, map, own_start, start_of};
use serde_json::Value;

// Above the largest number that Linux gives to a process.
const NOBODY: u32 = 4_200_000_000;

#[test]
fn ps_lists_every_process_and_says_what_it_cannot_read() {
    let files = Directory::new();
    for number in 0..100 {
        files.add(&sample(NOBODY + number, 7));
    }
    fs::write(files.path("tslab.5.1"), "something else").unwrap();
    fs::write(files.path("sem.other"), "not ours").unwrap();
    let output = files.run(&["ps", "--all"]);
    assert_eq!(output.code, Some(0));
    assert_eq!(output.text.lines().count(), 102);
    let folded = files.run(&["ps"]).text;
    assert!(folded.contains("it is not a statistics file of tslab"), "{folded}");
    assert!(output.text.contains("it is not a statistics file of tslab"), "{}", output.text);
    let json = files.json(&["ps"]);
    let processes = json["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 101);
    assert_eq!(processes[1]["life"], "dead");
    assert_eq!(processes[1]["live_bytes"], 419_520);
    assert_eq!(processes[1]["epochs_open"], 1);
    assert_eq!(processes[1]["epochs_closed_with_survivors"], 1);
    assert_eq!(processes[1]["rss_bytes"], Value::Null);
    assert_eq!(processes[1]["of_other_user"], false);
}

#[test]
fn processes_that_have_ended_share_a_line() {
    let files = Directory::new();
    (0..300).for_each(|number| drop(files.add(&sample(NOBODY + number, 7))));
    let mut last = sample(NOBODY + 300, 7);
    last.text("process", 0, b"make\tall");
    last.told_ms += 1000;
    let path = files.add(&last);
    let ended = "ended: 301 processes, the last of them 4200000300 (make\\tall); 301 with \
                 survivors in closed epochs; `tslab ps --all` lists them\n";
    assert_eq!(files.run(&["ps"]).text, ended);
    map(&files.add(&sample(std::process::id(), own_start())));
    let output = files.run(&["ps"]);
    assert_eq!(output.text.lines().count(), 3, "{}", output.text);
    assert!(output.text.ends_with(ended), "{}", output.text);
    assert_eq!(files.json(&["ps"])["processes"].as_array().unwrap().len(), 302);
    let path = path.to_string_lossy().into_owned();
    assert_eq!(files.json(&["stats", &path])["name"], "make\tall");
}

#[test]
fn files_of_other_users_share_a_line() {
    let files = Directory::new();
    let closed = [7, 8, 9].map(|start| files.add(&sample(NOBODY, start)));
    for path in &closed {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let Some(output) = as_nobody(&files, &["ps"]) else { return };
    let expected = "of other users: 3 files, which only they and root may read\n";
    assert_eq!(output, expected);
    let told: Value = serde_json::from_str(&as_nobody(&files, &["ps", "--json"]).unwrap()).unwrap();
    let processes = told["processes"].as_array().unwrap();
    assert!(processes.iter().all(|process| process["of_other_user"] == true), "{told}");
    let all = as_nobody(&files, &["ps", "--all"]).unwrap();
    assert_eq!(all.matches("run this command as the user of that process").count(), 3, "{all}");
}

// What the command says to a user without rights. None: this user is no root, and may not become
// another.
fn as_nobody(files: &Directory, arguments: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    // Where everyone may come.
    let place = std::env::temp_dir().join(files.0.file_name().unwrap());
    let program = place.join("tslab");
    fs::create_dir_all(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_tslab"), &program).unwrap();
    for entry in fs::read_dir(&files.0).unwrap().flatten() {
        let path = place.join(entry.file_name());
        fs::copy(entry.path(), &path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let mut command = Command::new(program);
    command.arg("--directory").arg(&place).args(arguments).uid(65_534).gid(65_534);
    let output = command.output().unwrap();
    fs::remove_dir_all(&place).unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_process_that_uses_its_file_is_alive() {
    let files = Directory::new();
    let path = files.add(&sample(std::process::id(), own_start()));
    let process = || files.json(&["ps"])["processes"][0].clone();
    assert_eq!(process()["life"], "stale");
    map(&path);
    assert_eq!(process()["life"], "alive");
    assert!(process()["rss_bytes"].as_u64().unwrap() > 4096);
    assert!(process()["name"].is_string());
    let output = files.run(&["stats", &std::process::id().to_string()]);
    assert_eq!((output.code, output.errors.as_str()), (Some(0), ""));
}

#[test]
fn a_number_that_another_process_has_now_is_no_life() {
    let files = Directory::new();
    files.add(&sample(std::process::id(), own_start() - 1));
    files.add(&sample(1, u64::MAX));
    let processes = files.json(&["ps"])["processes"].clone();
    assert_eq!((&processes[0]["life"], &processes[1]["life"]), (&"dead".into(), &"dead".into()));
}

#[test]
fn of_two_files_of_a_number_the_newer_one_is_read() {
    let files = Directory::new();
    let mut older = sample(NOBODY, 7);
    older.version = "0.0.9";
    files.add(&older);
    files.add(&sample(NOBODY, 70));
    assert_eq!(files.json(&["stats", &NOBODY.to_string()])["version"], "0.1.0");
}

#[test]
fn the_file_of_a_dead_process_is_not_taken_for_that_of_a_living_one() {
    let files = Directory::new();
    let pid = std::process::id();
    let earlier = files.add(&sample(pid, own_start() - 1)).to_string_lossy().into_owned();
    let output = files.run(&["stats", &pid.to_string()]);
    assert_eq!((output.code, output.text.as_str()), (Some(2), ""));
    let why = format!("{earlier} is of an earlier process {pid}, which has ended: name that path");
    assert!(output.errors.contains(&why), "{}", output.errors);
    assert!(output.errors.contains("does not run on tslab"), "{}", output.errors);
    assert_eq!(files.run(&["stats", &earlier]).code, Some(0));
}

#[test]
fn stats_shows_totals_classes_and_what_the_process_says() {
    let files = Directory::new();
    let path = files.add(&sample(NOBODY, 7));
    let output = files.run(&["stats".as_ref(), path.as_os_str()]);
    assert_eq!(output.code, Some(0));
    assert!(output.text.contains("live      409.7 KiB in 809 objects\n"), "{}", output.text);
    let class = output.text.lines().find(|line| line.trim_start().starts_with("128 B")).unwrap();
    let words: Vec<_> = class.split_whitespace().collect();
    assert_eq!(words[2..10], ["471", "15", "2", "4", "2", "0", "B", "1000"], "{class}");
    assert!(output.text.contains("open_bytes                1.0 MiB\n"), "{}", output.text);
    assert!(output.text.contains("other_thread    8  blocks of the"), "{}", output.text);
    assert!(output.errors.contains("has ended: ages count to the last moment that it told of"));
    let json = files.json(&["stats", &NOBODY.to_string()]);
    assert_eq!(json["totals"]["live_objects"], 809);
    assert_eq!(
        (&json["classes"][1]["live"], &json["totals"]["held_bytes"]),
        (&471.into(), &642_368.into())
    );
    assert_eq!(json["process"]["purges"], 5);
    assert_eq!(
        (&json["allocations"], &json["slow_paths"]["slab_opened"]),
        (&2000.into(), &4.into())
    );
    assert_eq!((&json["pid"], &json["full_tables"]), (&NOBODY.into(), &Value::Array(vec![])));
}

#[test]
fn rows_that_are_missing_are_spoken_of() {
    let files = Directory::new();
    let mut image = sample(NOBODY, 7);
    image.table("bins").is_full = 1;
    files.add(&image);
    let output = files.run(&["stats", &NOBODY.to_string()]);
    assert!(output.errors.contains("all rows of table \"bins\""), "{}", output.errors);
    assert_eq!(files.json(&["stats", &NOBODY.to_string()])["full_tables"][0], "bins");
}

#[test]
fn epochs_are_a_tree() {
    let files = Directory::new();
    let pid = NOBODY.to_string();
    files.add(&sample(NOBODY, 7));
    let output = files.run(&["epochs", &pid, "--all"]);
    let labels: Vec<_> = output.text.lines().map(|line| line.split('"').nth(1)).collect();
    let expected =
        [None, Some("default"), Some("batch"), Some("step"), Some("GET /upload"), Some("gone")];
    assert_eq!(labels, expected, "{}", output.text);
    assert!(output.text.contains("  \"step\""));
    let shown = files.json(&["epochs", &pid])["epochs"].clone();
    let rows: Vec<_> = shown.as_array().unwrap().iter().map(|row| &row["epoch"]).collect();
    assert_eq!(rows, [0, 3, 7]);
    assert_eq!(shown[0]["held_bytes"], 331_072);
    assert_eq!(
        (&shown[2]["closed_for_ms"], &shown[2]["live"]["bytes"]),
        (&61_000.into(), &47_872.into())
    );
}

#[test]
fn leaks_end_with_status_1_and_their_absence_with_0() {
    let files = Directory::new();
    let pid = NOBODY.to_string();
    files.add(&sample(NOBODY, 7));
    let output = files.run(&["leaks", &pid]);
    assert_eq!(output.code, Some(1));
    assert!(output.text.starts_with("epoch 7  \"GET /upload\"  closed 61 s ago  357 objects"));
    let json = files.json(&["leaks", &pid]);
    assert_eq!(json["leaks"][0]["classes"][0]["objects"], 340);
    assert_eq!(files.run(&["leaks", &pid, "--after", "61"]).code, Some(0));
    assert_eq!(files.run(&["leaks", &pid, "--after", "61", "--open-after", "9"]).code, Some(1));
    let forever = u64::MAX.to_string();
    assert_eq!(files.run(&["leaks", &pid, "--after", &forever]).code, Some(0));
    assert_eq!(files.run(&["leaks", "4199999999"]).code, Some(2));
}

#[test]
fn labels_do_not_reach_the_terminal_as_they_are() {
    let files = Directory::new();
    let mut image = sample(NOBODY, 7);
    add_epoch(&mut image, 2, "a\"\n\x1b[2J\u{202e}b", &[]);
    image.text("labels", 4, b"\xff\xfe");
    image.set("epochs", 3, "label", 4);
    image.set("epochs", 7, "label", 4_000_000_000);
    files.add(&image);
    let output = files.run(&["epochs", &NOBODY.to_string()]);
    assert!(output.text.contains("\"a\\\"\\n\\u{1b}[2J\\u{202e}b\"\n"), "{}", output.text);
    let rows = files.json(&["epochs", &NOBODY.to_string()])["epochs"].clone();
    let label = |epoch: u64| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["epoch"] == epoch).unwrap()["label"].clone()
    };
    assert_eq!(label(2), "a\"\n\x1b[2J\u{202e}b");
    assert_eq!(label(3), "\u{fffd}\u{fffd}");
    assert_eq!(label(7), Value::Null);
}

#[test]
fn libraries_that_are_newer_or_older_are_understood() {
    let files = Directory::new();
    let mut newer = sample(NOBODY, 7);
    newer.more_bytes = 16;
    newer.version = "9.9.9";
    newer.tables.insert(
        0,
        common::Table::new(
            "purges",
            3,
            vec![common::Field::long("at_ns", rows::Kind::Gauge, rows::Unit::Ns)],
        ),
    );
    newer.table("process").fields[1].name = "sealed_bytes";
    files.add(&newer);
    let json = files.json(&["stats", &NOBODY.to_string()]);
    assert_eq!(json["process"]["sealed_bytes"], 0);
    assert_eq!(json["totals"]["live_objects"], 809);
    let mut older = sample(NOBODY, 8);
    older.tables.retain(|table| table.name != "bins");
    files.add(&older);
    let json = files.json(&["stats", &NOBODY.to_string()]);
    assert_eq!(json["totals"]["live_objects"], Value::Null);
    assert!(files.run(&["stats", &NOBODY.to_string()]).text.contains("live      ? in ? objects"));
    let leaks = files.run(&["leaks", &NOBODY.to_string()]);
    assert_eq!(leaks.code, Some(2));
    assert!(leaks.errors.contains("lacks bins.out, bins.hot, bins.taken"), "{}", leaks.errors);
}

#[test]
fn errors_say_what_to_do() {
    let files = Directory::new();
    let path = files.path("file").to_string_lossy().into_owned();
    let mut other_format = sample(1, 1);
    other_format.abi = 2;
    let whole = sample(1, 1).bytes();
    let cases = [
        (Vec::new(), "try again in a moment"),
        (whole[..whole.len() / 2].to_vec(), "copy the whole file again"),
        (b"#!/bin/sh\n".to_vec(), "name a process, or a file such as"),
        (other_format.bytes(), "use the command that came with the library"),
    ];
    for (bytes, advice) in cases {
        fs::write(&path, bytes).unwrap();
        let output = files.run(&["stats", &path]);
        assert_eq!(output.code, Some(2));
        assert!(output.errors.contains(advice), "{}", output.errors);
    }
    assert!(files.run(&["stats", "4199999999"]).errors.contains("there is no process"));
    assert!(files.run(&["stats", "99999999999999999999"]).errors.contains("there is no process"));
    let this_test = std::process::id().to_string();
    assert!(files.run(&["stats", &this_test]).errors.contains("does not run on tslab"));
    assert!(files.run(&["stats", "./nothing"]).errors.contains("`tslab ps` lists"));
    assert!(files.run(&["stats", "/"]).errors.contains("not a regular file"));
    let nowhere = files.run(&["ps", "--directory", "/nowhere"]);
    assert!(nowhere.code == Some(2) && nowhere.errors.contains("--directory"));
}

#[test]
fn a_file_under_the_name_of_another_process_is_refused() {
    let files = Directory::new();
    fs::write(files.path("tslab.4200000000.7"), sample(1, 7).bytes()).unwrap();
    let output = files.run(&["stats", "4200000000"]);
    assert!(output.errors.contains("it says that it is of process 1"), "{}", output.errors);
    assert!(files.json(&["ps"])["processes"][0]["error"].is_string());
}

#[test]
fn what_is_no_file_is_not_opened() {
    let files = Directory::new();
    let target = files.path("target");
    fs::write(&target, sample(NOBODY, 7).bytes()).unwrap();
    symlink(&target, files.path("tslab.4200000000.7")).unwrap();
    fs::create_dir(files.path("tslab.4200000001.7")).unwrap();
    let pipe = files.path("tslab.4200000002.7");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let processes = files.json(&["ps"])["processes"].clone();
    for process in processes.as_array().unwrap() {
        assert!(process["error"].is_string(), "{process}");
    }
    assert_eq!(processes.as_array().unwrap().len(), 3);
}

#[test]
fn gc_removes_the_files_that_nobody_uses() {
    let files = Directory::new();
    let dead = files.add(&sample(NOBODY, 7));
    let alive = files.add(&sample(std::process::id(), own_start()));
    map(&alive);
    // They run until their input ends, and use no file; one is about to, and one's is cut short.
    let others = [(); 3].map(|()| Command::new("cat").stdin(Stdio::piped()).spawn().unwrap());
    let images =
        others.each_ref().map(|other| sample(other.id(), start_of(&other.id().to_string())));
    let [stale, early, damaged] = images.each_ref().map(|image| files.add(image));
    fs::write(&early, [0; 4096]).unwrap();
    fs::write(&damaged, &images[2].bytes()[..4096]).unwrap();
    // A process of another container: its number means nobody here, and it uses its file.
    let elsewhere = files.add(&sample(NOBODY + 1, 7));
    map(&elsewhere);
    let unreadable = files.path("tslab.4200000002.7");
    fs::write(&unreadable, "").unwrap();
    let other = files.path("tslab.txt");
    fs::write(&other, "").unwrap();

    let output = files.run(&["gc", "--dry-run"]);
    assert!(output.text.contains("would remove ") && dead.exists(), "{}", output.text);
    let output = files.run(&["gc"]);
    assert_eq!(output.code, Some(0), "{}", output.text);
    assert_eq!(output.text.lines().filter(|line| line.starts_with("removed ")).count(), 3);
    assert!(output.text.contains("another process uses it"), "{}", output.text);
    assert!(!dead.exists() && !unreadable.exists() && !stale.exists());
    assert!(alive.exists() && early.exists() && elsewhere.exists() && other.exists());
    assert!(output.text.contains("remove it yourself") && damaged.exists(), "{}", output.text);
    let json = files.json(&["gc"]);
    assert_eq!(
        (&json["removed"], json["kept"].as_array().unwrap().len()),
        (&Value::Array(vec![]), 2)
    );
}

#[test]
fn gc_says_what_it_cannot_remove() {
    let files = Directory::new();
    fs::create_dir(files.path("tslab.4200000000.7")).unwrap();
    let output = files.run(&["gc"]);
    assert_eq!(output.code, Some(2));
    assert!(output.text.starts_with("kept "), "{}", output.text);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let files = Directory::new();
    (0..2000).for_each(|number| drop(files.add(&Image::new(NOBODY + number, 7))));
    let mut child = Command::new(env!("CARGO_BIN_EXE_tslab"))
        .args(["ps".as_ref(), "--directory".as_ref(), files.0.as_os_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        output.stderr,
        b"tslab: files that processes left behind: 2000; `tslab gc` removes them\n"
    );
}

#[test]
fn help_documents_the_exit_status() {
    let files = Directory::new();
    for arguments in [vec!["--help"], vec!["leaks", "--help"]] {
        let output = files.run(&arguments);
        assert_eq!(output.code, Some(0));
        assert!(output.text.contains("1  `leaks` found some"), "{}", output.text);
    }
    assert_eq!(files.run(&["nonsense"]).code, Some(2));
}

fn sampled() -> Image {
    let mut image = sample(NOBODY, 7);
    add_samples(&mut image);
    image
}

#[test]
fn a_profile_of_a_dead_process_has_addresses() {
    let files = Directory::new();
    files.add(&sampled());
    let pid = NOBODY.to_string();
    let path = files.path("heap.pb.gz").to_string_lossy().into_owned();
    let output = files.run(&["profile", &pid, "-o", &path]);
    assert_eq!(output.code, Some(0), "{}", output.errors);
    let expected = format!(
        "wrote {path}: 40 samples, a byte in 4.0 KiB on average, of 4 call stacks\n\
         live       about 118.0 KiB in 148 objects\n\
         allocated  about 297.1 KiB in 751 objects\n\
         show it: go tool pprof -http=: {path}\n"
    );
    assert_eq!(output.text, expected);
    assert!(output.errors.contains("functions are not named"), "{}", output.errors);
    assert!(output.errors.contains("1 further samples were lost"), "{}", output.errors);
    assert!(fs::read(&path).unwrap().starts_with(&[0x1f, 0x8b]));
    let json = files.json(&["profile", &pid]);
    assert_eq!((&json["pid"], &json["weight_bytes"]), (&NOBODY.into(), &4096.into()));
    assert_eq!(json["samples"][0]["stack"], serde_json::json!(["0x5000"]));
}

#[test]
fn profiles_are_written_where_they_are_wanted() {
    let files = Directory::new();
    files.add(&sampled());
    let pid = NOBODY.to_string();
    let run = |arguments: &[&str]| files.run(&[&["profile", &pid], arguments].concat());
    let folded = run(&["--format", "folded", "-o", "-", "--live"]);
    assert!(folded.text.starts_with("0x2000;0x1000 12481\n"), "{}", folded.text);
    let allocated = run(&["--format", "folded", "-o", "-", "--cumulative"]);
    assert!(allocated.text.starts_with("0x2000;0x1000 83207\n"), "{}", allocated.text);
    let legacy = run(&["--format", "heap_v2", "-o", "-"]);
    assert!(legacy.text.starts_with("heap profile:      6:   100768 ["), "{}", legacy.text);
    assert!(legacy.text.contains("] @ 0x1001 0x2001\n"), "{}", legacy.text);
    let nowhere = run(&["-o", "/nowhere/file"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.errors.contains("cannot write /nowhere/file"), "{}", nowhere.errors);
    // Without a place the first free name here is taken.
    let here = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tslab"));
        command.current_dir(&files.0).args(["--directory", ".", "profile", &pid]);
        assert!(command.output().unwrap().status.success());
        assert!(files.path(name).exists(), "{name}");
    };
    here("tslab.4200000000.1.pb.gz");
    here("tslab.4200000000.2.pb.gz");
}

#[test]
fn what_cannot_be_profiled_is_said() {
    let files = Directory::new();
    let pid = NOBODY.to_string();
    files.add(&sample(NOBODY, 7));
    let errors = |arguments: &[&str]| {
        let output = files.run(&[&["profile", &pid], arguments].concat());
        assert_eq!(output.code, Some(2), "{}", output.text);
        output.errors
    };
    assert!(errors(&[]).contains("has not sampled any allocation: start it with"));
    assert!(errors(&["--json", "--format", "folded"]).contains("do not agree"));
    assert!(errors(&["--keep", "--stop"]).contains("cannot be used with"));
    assert!(errors(&["--bytes", "5"]).contains("from 4K to 2G"));
    let mut older = sample(NOBODY, 7);
    older.tables.retain(|table| table.name != "samples");
    files.add(&older);
    assert!(errors(&[]).contains("which does not sample"));
}

#[test]
fn a_process_that_does_not_follow_is_spoken_of_and_asked_no_more() {
    let files = Directory::new();
    let path = files.add(&sample(std::process::id(), own_start()));
    map(&path);
    let whole = fs::read(&path).unwrap();
    let pid = std::process::id().to_string();
    let output = files.run(&["profile", &pid, "--seconds", "1"]);
    assert_eq!(output.code, Some(2));
    assert!(output.errors.contains("for 1 s, a byte in 512.0 KiB on average"), "{}", output.errors);
    assert!(output.errors.contains("did not begin to sample within 1.0 s"), "{}", output.errors);
    assert_eq!(fs::read(&path).unwrap(), whole);
    let stopped = files.run(&["profile", &pid, "--stop"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.errors);
    assert!(stopped.errors.contains("is asked to end sampling"), "{}", stopped.errors);
    let asked = fs::read(&path).unwrap();
    assert_eq!(asked.iter().zip(&whole).filter(|(after, before)| after != before).count(), 4);
}

#[test]
fn a_process_is_asked_for_idle_memory_once_a_command() {
    let files = Directory::new();
    let mut image = sample(std::process::id(), own_start());
    image.set("control", 0, "purge_request", 4);
    image.set("process", 0, "purge_request", 5);
    let path = files.add(&image);
    map(&path);
    let whole = fs::read(&path).unwrap();
    let pid = std::process::id().to_string();
    // As if the process had followed the fifth request already.
    let told = files.json(&["purge", &pid]);
    assert_eq!((&told["followed"], &told["given_back_bytes"]), (&true.into(), &0.into()));
    let output = files.run(&["purge", &pid, "--wait", "0"]);
    assert_eq!((output.code, output.errors.as_str()), (Some(0), ""));
    let expected = format!(" {pid} gives back when it next allocates; idle: ");
    assert!(output.text.starts_with("asked; "), "{}", output.text);
    assert!(output.text.contains(&expected), "{}", output.text);
    let asked = fs::read(&path).unwrap();
    assert_eq!(asked.iter().zip(&whole).filter(|(after, before)| after != before).count(), 1);
    let dead = files.add(&sample(NOBODY, 7)).to_string_lossy().into_owned();
    let output = files.run(&["purge", &dead]);
    assert!(output.code == Some(2) && output.errors.contains("nobody is there"));
}

// Of a file that has a name nobody knows whose it is.
#[test]
fn leaks_of_no_known_call_stack_are_asked_for_once_a_command() {
    let files = Directory::new();
    let mut image = sample(std::process::id(), own_start());
    image.set_all("process", 0, &[("watch_bytes", 4096), ("sampling_since_ms", 5)]);
    let path = files.add(&image);
    map(&path);
    let whole = fs::read(&path).unwrap();
    let pid = std::process::id().to_string();
    let look = |target: &str| files.run(&["leaks", target, "--after", "0", "--over", "0"]);
    let differ = || {
        let written = fs::read(&path).unwrap();
        written.iter().zip(&whole).filter(|(after, before)| after != before).count()
    };
    let by_name = look(&path.to_string_lossy());
    assert!(by_name.code == Some(1) && !by_name.errors.contains("minute"), "{}", by_name.errors);
    assert_eq!(differ(), 0);
    let output = look(&pid);
    assert_eq!(output.code, Some(1));
    assert!(output.errors.contains("for a minute from now, so look again"), "{}", output.errors);
    assert_eq!(differ(), 1);
    image.set_all("process", 0, &[("watch_bytes", 0), ("sampling_since_ms", 0)]);
    fs::write(&path, image.bytes()).unwrap();
    assert!(!look(&pid).errors.contains("minute"));
    assert_eq!(fs::read(&path).unwrap(), image.bytes());
}

#[test]
fn leaks_show_call_stacks_of_sampled_survivors() {
    let files = Directory::new();
    files.add(&sampled());
    let pid = NOBODY.to_string();
    let output = files.run(&["leaks", &pid]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.text.contains("   128 B   340    75 %  0x1000  <-  0x2000\n"),
        "{}",
        output.text
    );
    assert!(!output.text.contains("at 0x7000") && !output.errors.contains("not known"));
    let output = files.run(&["leaks", &pid, "--addresses"]);
    assert!(output.text.contains("at 0x7000\n"), "{}", output.text);
    let stack = files.json(&["leaks", &pid])["leaks"][0]["stacks"][0].clone();
    assert_eq!((&stack["samples"], &stack["addresses"]), (&3.into(), &Value::Null));
    assert_eq!(stack["calls"][1]["function"], "0x2000");
    files.add(&sample(NOBODY, 70));
    let output = files.run(&["leaks", &pid]);
    assert!(output.errors.contains("TSLAB_SAMPLE_BYTES=512K"), "{}", output.errors);
}

#[test]
fn the_manual_pages_say_what_the_help_says() {
    let written = Directory::new();
    let output = written.run(&["manual".as_ref(), written.0.as_os_str()]);
    assert_eq!((output.code, output.errors.as_str()), (Some(0), ""));
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
    let pages: Vec<_> = output.text.lines().collect();
    assert!(pages.contains(&"tslab.1") && pages.contains(&"tslab-run.1"), "{pages:?}");
    for page in pages {
        let text = |folder: &Path| fs::read_to_string(folder.join(page)).unwrap_or_default();
        let advice = "run: build/cargo/release/tslab manual docs/man";
        assert!(text(&written.0) == text(&kept), "docs/man/{page} is out of date; {advice}");
    }
}

#[test]
fn leaks_tells_a_leak_from_a_cache_by_an_earlier_file() {
    let files = Directory::new();
    let leak = Closing::leak((2, "leak"), 40);
    let sessions = Closing { kept_ms: 100_000, ..Closing::leak((3, "session"), 40) };
    let at = |lived_ms, which: &[Closing]| {
        let mut image = server(lived_ms, which);
        (image.pid, image.start_ticks) = (NOBODY, 7);
        image
    };
    let both = [leak, sessions];
    let before = files.path("before");
    fs::write(&before, at(299_000, &both).bytes()).unwrap();
    files.add(&at(300_000, &both));
    let before = before.to_string_lossy().into_owned();
    let told = files.json(&["leaks", &NOBODY.to_string(), "--before", &before]);
    let verdict = |leak: &Value| (leak["label"].clone(), leak["growth"]["verdict"].clone());
    let verdicts: Vec<_> = told["leaks"].as_array().unwrap().iter().map(verdict).collect();
    let expected = [("leak", "grows"), ("session", "turns_over")];
    assert_eq!(verdicts, expected.map(|(label, verdict)| (label.into(), verdict.into())));
    assert_eq!(told["leaks"][0]["growth"]["flow"]["came"], 40);
    let list = files.path("known");
    fs::write(&list, "# what we know\n\n  label:le*k\n").unwrap();
    let ignore = ["--ignore-file", list.to_str().unwrap()];
    let target = NOBODY.to_string();
    let with = |more: &[&str]| {
        files.run(&[["leaks", &target, "--before", &before].as_slice(), more].concat())
    };
    assert_eq!(with(&[]).code, Some(1));
    let ignored = with(&ignore);
    assert_eq!(ignored.code, Some(0), "{}", ignored.text);
    assert!(ignored.text.ends_with("ignored: 1 label\n"), "{}", ignored.text);
    assert_eq!(with(&["--ignore", "label:le*k", "--ignore", "label:s*"]).text.lines().count(), 3);
}

#[test]
fn leaks_says_what_is_wrong_with_patterns_and_earlier_files() {
    let files = Directory::new();
    files.add(&sample(NOBODY, 7));
    let target = NOBODY.to_string();
    let other = files.add(&sample(NOBODY + 1, 7)).to_string_lossy().into_owned();
    let list = files.path("list");
    fs::write(&list, "label:x\nsession\n").unwrap();
    let list = list.to_str().unwrap();
    let bad = [
        (["--ignore", "session"], "write label:TEXT or function:TEXT"),
        (["--ignore-file", list], "line 2: \"session\" is no pattern"),
        (["--ignore-file", "./nowhere"], "cannot read patterns from ./nowhere"),
        (["--before", &other], "is no earlier file of process 4200000000"),
        (["--before", "./nowhere"], "cannot read ./nowhere"),
        (["--over", "-1"], "invalid value '-1' for '--over <SECONDS>'"),
    ];
    for (arguments, error) in bad {
        let option = format!("{}={}", arguments[0], arguments[1]);
        let output = files.run(&["leaks", &target, &option]);
        assert!(output.code == Some(2) && output.errors.contains(error), "{}", output.errors);
    }
}

#[test]
fn leaks_looks_twice_at_a_process_that_runs() {
    let files = Directory::new();
    let pid = std::process::id();
    map(&files.add(&sample(pid, own_start())));
    let growth = |over: &str| {
        let told = files.json(&["leaks", &pid.to_string(), "--after", "0", "--over", over]);
        let leaks = told["leaks"].as_array().unwrap();
        leaks.iter().find(|leak| leak["label"] == "GET /upload").unwrap()["growth"].clone()
    };
    let twice = growth("0.05");
    assert!(twice["flow"]["over_ms"].as_u64().unwrap() >= 50, "{twice}");
    assert_eq!(growth("0")["flow"], Value::Null);
}
