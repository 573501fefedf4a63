//! `tslab serve` as its users run it, asked over HTTP.
#![allow(clippy::float_cmp, reason = "the figures are whole numbers")]

mod common;
mod openmetrics;
mod place;
#[path = "../src/rows.rs"]
mod rows;
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Instant;

use common::{Image, add_epoch, add_sampled, add_samples, sample};
use openmetrics::{Family, parse};
use place::{Crowd, Directory, map, own_start};
use rustix::process::Signal;
use serde_json::{Value, json};
use server::{Server, command, value};

// Above the largest number that Linux gives to a process.
const NOBODY: u32 = 4_200_000_000;
const CONTRACT: &str = include_str!("../../../dashboards/metrics.json");

/// Not a test, but what the processes of a `Crowd` run.
#[test]
fn one_of_a_crowd() {
    place::join_crowd();
}

fn own_image() -> Image {
    sample(process::id(), own_start())
}

// The same, as if all memory without a name were the allocator's: `why` knows its parts.
fn resident_image() -> Image {
    let mut image = own_image();
    let (at, bytes) = (4096, 1 << 47);
    image.set_all("process", 0, &[("region_at", at), ("region_bytes", bytes)]);
    image.set_all("process", 0, &[("blocks_at", at), ("blocks_bytes", bytes)]);
    image
}

// The own process with a file that it uses.
fn alive(image: &Image) -> Directory {
    let files = Directory::new();
    map(&files.add(image));
    files
}

fn labels(families: &[Family], name: &str, label: &str) -> BTreeSet<String> {
    let samples = families.iter().flat_map(|family| &family.samples);
    let named = samples.filter(|sample| sample.name == name);
    named.filter_map(|sample| sample.label(label)).map(str::to_owned).collect()
}

#[test]
fn a_scrape_keeps_the_contract() {
    let mut image = resident_image();
    image.set_all("labels", 7, &[("limits_refused", 1), ("ended", 1)]);
    add_samples(&mut image);
    let files = alive(&image);
    let server = Server::start(&files, &[]);
    let response = server.scrape();
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(response.status == 200 && response.head.contains(kind), "{}", response.head);
    let families = parse(&response.body).unwrap();
    let contract: Value = serde_json::from_str(CONTRACT).unwrap();
    let contract = contract.as_array().unwrap();
    for promised in contract {
        let name = promised["name"].as_str().unwrap();
        let bare = name.strip_suffix("_total").unwrap_or(name);
        let family = families.iter().find(|family| family.name == bare);
        let family = family.unwrap_or_else(|| panic!("no {name} in\n{}", response.body));
        assert_eq!(family.kind.as_deref(), promised["type"].as_str(), "{name}");
        assert_eq!(family.unit.as_deref().unwrap_or(""), promised["unit"], "{name}");
        assert_eq!(family.help.as_deref(), promised["help"].as_str(), "{name}");
        assert!(!family.samples.is_empty(), "{name}");
        for sample in &family.samples {
            assert_eq!(Value::from(sample.label_names()), promised["labels"], "{name}");
        }
    }
    assert_eq!(families.len(), contract.len());
}

// What `promtool check metrics` objects to. Nothing: None, when the tool is not installed.
fn objections(text: &str) -> Option<String> {
    let mut tool = Command::new("promtool");
    tool.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut tool = tool.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some(format!("{}{}", output.status, String::from_utf8(said).unwrap()))
}

#[test]
fn a_scrape_is_plain_text_unless_openmetrics_is_asked_for() {
    let files = alive(&resident_image());
    let server = Server::start(&files, &[]);
    let plain = server.get("/metrics");
    let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
    assert!(plain.status == 200 && plain.head.contains(kind), "{}", plain.head);
    assert!(plain.head.contains("vary: accept"), "{}", plain.head);
    let line = |start: &str| plain.body.lines().any(|line| line.starts_with(start));
    assert!(line("# TYPE tslab_purges_total counter") && line("# HELP tslab_purges_total "));
    assert!(!line("# EOF") && !line("# UNIT"), "{}", plain.body);
    if let Some(said) = objections(&plain.body) {
        assert_eq!(said, "exit status: 0");
    }
    // One reading apart, the values of both forms differ; their names and labels do not.
    let series = |text: &str| -> BTreeSet<String> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    assert_eq!(series(&plain.body), series(&server.scrape().body));
}

// Resident memory of one kind, in bytes.
fn memory(pid: u32, kind: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
    let kibibytes: u64 = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    kibibytes * 1024
}

// What it has for itself.
fn own_memory(pid: u32) -> u64 {
    memory(pid, "RssAnon:")
}

#[test]
fn what_a_profile_takes_is_given_back() {
    let mut image = own_image();
    add_sampled(&mut image, &[own_memory as fn(u32) -> u64 as usize as u64 + 1]);
    let files = alive(&image);
    let server = Server::start(&files, &[]);
    let profile = format!("/api/v1/processes/{}/profile", process::id());
    let before = own_memory(server.pid());
    let response = server.get(&profile);
    assert!(response.body.contains("own_memory"), "{}", response.body);
    let more = own_memory(server.pid()).saturating_sub(before);
    // 0.4 MiB; without giving back the tables of symbols, 2.2 MiB.
    assert!(more < 1 << 20, "{more}");
    // Its program and all else included, after everything that it answers.
    for path in ["", "/epochs?all=1", "/leaks?after=0", "/profile", "/why", "/doctor", "/history"] {
        server.get(&format!("/api/v1/processes/{}{path}", process::id()));
    }
    assert!(!server.metrics().is_empty());
    let resident = memory(server.pid(), "VmRSS:");
    assert!(resident < 32 << 20, "{resident}");
}

// Where the calls stand that hold what was sampled, once one is named.
fn named_sites(server: &Server) -> BTreeSet<String> {
    let start = Instant::now();
    loop {
        let sites = labels(&server.new_metrics(), "tslab_site_live_bytes", "site");
        if sites.len() > 1 {
            return sites;
        }
        assert!(start.elapsed().as_secs() < 30, "{sites:?}");
        thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn call_sites_are_named_and_the_server_stays_small() {
    let mut image = own_image();
    add_sampled(&mut image, &[own_memory as fn(u32) -> u64 as usize as u64 + 1]);
    image.set("process", 0, "sampling_since_ms", 5);
    let files = alive(&image);
    let server = Server::start(&files, &[]);
    let sites: Vec<_> = named_sites(&server).into_iter().collect();
    assert_eq!((sites.len(), sites[0].as_str()), (2, "other"));
    assert!(sites[1].starts_with("serve::own_memory (serve.rs:"), "{sites:?}");
    let metrics = server.metrics();
    let site = |site| [("site", site), ("sampled", "ended")];
    let bytes = |name| value(&metrics, "tslab_site_live_bytes", &site(name));
    assert_eq!((bytes(&sites[1]), bytes("other")), (Some(4160.0), Some(0.0)));
    assert!(memory(server.pid(), "VmHWM:") < 16 << 20, "it did not read the program itself");
    let without = Server::start(&files, &["--sites", "0"]);
    assert!(labels(&without.metrics(), "tslab_site_live_bytes", "site").is_empty());
    let refused = files.run(&["serve", "--sites", "1001"]);
    assert!(refused.code == Some(2) && refused.errors.contains("1001"), "{}", refused.errors);
}

// Without what passes between two readings.
fn settled(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("last_word_ms");
            fields.values_mut().for_each(|field| *field = settled(field.take()));
        }
        Value::Array(rows) => rows.iter_mut().for_each(|row| *row = settled(row.take())),
        _ => (),
    }
    value
}

#[test]
fn the_api_says_what_the_commands_say() {
    let files = Directory::new();
    let mut sampled = sample(NOBODY, 7);
    add_samples(&mut sampled);
    files.add(&sampled);
    files.add(&sample(NOBODY + 1, 7));
    let server = Server::start(&files, &["--after", "61"]);
    let pid = NOBODY.to_string();
    let pid = pid.as_str();
    let list = "/api/v1/processes";
    for (path, command) in [
        (list.to_owned(), vec!["ps"]),
        (format!("{list}/{pid}"), vec!["stats", pid]),
        (format!("{list}/{pid}/epochs"), vec!["epochs", pid]),
        (format!("{list}/{pid}/epochs?all=true"), vec!["epochs", pid, "--all"]),
        (format!("{list}/{pid}/leaks"), vec!["leaks", pid, "--after", "61"]),
        (format!("{list}/{pid}/leaks?after=60"), vec!["leaks", pid, "--after", "60"]),
        (
            format!("{list}/{pid}/leaks?after=61&open_after=9"),
            vec!["leaks", pid, "--after", "61", "--open-after", "9"],
        ),
        (format!("{list}/{pid}/profile"), vec!["profile", pid]),
        (format!("{list}/{pid}/doctor"), vec!["doctor", pid, "--after", "61"]),
    ] {
        assert_eq!(settled(server.json(&path)), settled(files.json(&command)), "{path}");
    }
    let leaks = |query: &str| server.json(&format!("{list}/{pid}/leaks?{query}"))["leaks"].clone();
    assert_eq!(leaks("after=60")[0]["label"], "GET /upload");
    assert_eq!(leaks(""), Value::Array(vec![]));
    assert!(server.get(list).head.contains("content-type: application/json"));
}

#[test]
fn what_changes_is_judged_by_an_earlier_look() {
    let mut image = resident_image();
    let files = Directory::new();
    let path = files.add(&image);
    map(&path);
    let server = Server::start(&files, &[]);
    server.metrics();
    let ask = |what: &str| server.json(&format!("/api/v1/processes/{}/{what}", process::id()));
    let why = ask("why");
    let parts = why["parts"].as_array().unwrap().iter().map(|part| part["bytes"].as_u64().unwrap());
    let whole =
        why["resident_bytes"].as_u64().unwrap() + why["not_resident_bytes"].as_u64().unwrap();
    assert_eq!(parts.sum::<u64>(), whole);
    // Refusals since then, in the file that the first look has read.
    image.set("process", 0, "memory_refused", 3);
    fs::write(&path, image.bytes()).unwrap();
    let doctor = ask("doctor");
    assert!(doctor["over_ms"].is_u64(), "{doctor}");
    let causes = doctor["findings"].as_array().unwrap().iter().map(|finding| &finding["cause"]);
    assert!(causes.into_iter().any(|cause| cause == "memory-refused"), "{doctor}");
    assert_eq!(doctor["not_checked"].as_array().unwrap().len(), 0, "{doctor}");
    let leaks = ask("leaks?after=0");
    assert!(leaks["leaks"][0]["growth"]["flow"]["over_ms"].is_u64(), "{leaks}");
}

#[test]
fn what_is_resident_is_told_only_where_it_is_looked_at() {
    let files = alive(&resident_image());
    let told = |looks: &[&str]| {
        let server = Server::start(&files, looks);
        let families = server.metrics();
        let why = server.get(&format!("/api/v1/processes/{}/why", process::id()));
        assert_eq!(why.status, 200, "who asks is told: {}", why.body);
        let has = |name, labels| value(&families, name, labels).is_some();
        (has("tslab_why_not_resident_bytes", &[]), has("tslab_findings", &[("cause", "leak")]))
    };
    assert_eq!(told(&["--looks", "60"]), (true, true));
    assert_eq!(told(&["--looks", "never"]), (false, true));
}

#[test]
fn errors_of_the_api_say_what_to_do() {
    let files = Directory::new();
    files.add(&sample(NOBODY, 7));
    fs::write(files.path("tslab.4200000001.7"), "something else").unwrap();
    let server = Server::start(&files, &[]);
    for (path, status, advice) in [
        ("/api/v1/processes/4199999999", 404, "there is no process 4199999999"),
        ("/api/v1/processes/1/leaks", 404, "has no statistics file"),
        ("/api/v1/processes/self", 404, "/api/v1/processes lists those"),
        ("/api/v1/processes/%2Fetc%2Fpasswd", 404, "/api/v1/processes lists those"),
        ("/api/v1/processes/%ff/epochs", 404, "/api/v1/processes lists those"),
        ("/api/v1/processes/4200000000/leaks?after=soon", 400, "such as after=60"),
        ("/debug/pprof/heap", 404, "no such process has sampled any allocation"),
        ("/debug/pprof/heap?process=nobody", 404, "/api/v1/processes lists"),
        ("/debug/pprof/heap?pid=4199999999", 404, "there is no process 4199999999"),
        ("/debug/pprof/heap?pid=redis", 400, "such as pid=4242"),
        ("/api/v1/processes/4200000000/epochs?all=perhaps", 400, "write all=true"),
        ("/api/v1/processes/4200000001", 500, "it is not a statistics file of tslab"),
        ("/api/v1/processes/4200000000/profile", 404, "`tslab profile 4200000000 --keep`"),
        ("/api/v2", 404, "there are /, /metrics, /api/v1/processes and"),
    ] {
        let response = server.get(path);
        let body: Value = serde_json::from_str(&response.body).unwrap();
        let error = body["error"].as_str().unwrap();
        assert!(response.status == status && error.contains(advice), "{path}: {error}");
        assert!(response.head.contains("content-type: application/json"), "{}", response.head);
    }
}

#[test]
fn a_profile_is_of_one_process() {
    let files = Directory::new();
    let _silent = Crowd::named(&files, "silent", |_| ());
    let sampled = |told: &'static [(&str, u64)]| {
        move |image: &mut Image| {
            add_samples(image);
            image.set_all("process", 0, told);
        }
    };
    let one = Crowd::named(&files, "one", sampled(&[]));
    let begun = &[("sample_bytes", 4096), ("sampling_since_ms", 5)];
    let other = Crowd::named(&files, "other", sampled(begun));
    let _ended = Crowd::named(&files, "ended", sampled(&[("sampling_since_ms", 5)]));
    let server = Server::start(&files, &[]);
    let path = "/debug/pprof/heap";
    let response = server.get(path);
    assert_eq!(response.status, 404, "{}", response.body);
    let (one, other) = (one.first(), other.first());
    for part in [
        "2 such processes have sampled: add one of them",
        &format!("pid={one} (one)"),
        &format!("pid={other} (other)"),
    ] {
        assert!(response.body.contains(part), "{}", response.body);
    }
    for query in ["process=one", &format!("pid={other}")] {
        assert_eq!(server.get(&format!("{path}?{query}")).status, 200, "{query}");
    }
    let refused = server.get(&format!("{path}?process=silent"));
    assert!(
        refused.body.contains("no such process has sampled any allocation"),
        "{}",
        refused.body
    );
}

#[test]
fn a_profile_of_a_part_is_served_and_says_so() {
    let files = Directory::new();
    let told = |values: &'static [(&str, u64)]| {
        move |image: &mut Image| {
            add_samples(image);
            image.set_all("process", 0, values);
        }
    };
    let ended = Crowd::named(&files, "ended", told(&[("sampling_since_ms", 5)]));
    let watched = Crowd::named(&files, "watched", told(&[("watch_bytes", 4096)]));
    let idle = |image: &mut Image| {
        image.set_all("process", 0, &[("weight_bytes", 4096), ("sampling_since_ms", 5)]);
    };
    let idle = Crowd::named(&files, "idle", idle);
    let server = Server::start(&files, &[]);
    let profile = |pid: u32| server.get(&format!("/api/v1/processes/{pid}/profile"));
    let heap = |query: &str| server.get(&format!("/debug/pprof/heap?{query}"));
    for (sampled, pid) in [("ended", ended.first()), ("watched", watched.first())] {
        let answer = profile(pid);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let answer: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((&answer["sampled"], &answer["partial"]), (&sampled.into(), &true.into()));
        let live = |sample: &Value| sample["samples"].as_u64().unwrap();
        assert_eq!(answer["samples"].as_array().unwrap().iter().map(live).sum::<u64>(), 6);
        for query in [format!("pid={pid}"), format!("process={sampled}")] {
            assert_eq!(heap(&query).status, 200, "{query}");
        }
    }
    let either = heap("");
    assert!(either.body.contains("2 such processes have sampled"), "{}", either.body);
    let idle = idle.first();
    for refused in [profile(idle), heap(&format!("pid={idle}"))] {
        assert_eq!(refused.status, 404);
        assert!(refused.body.contains("has sampled nothing for"), "{}", refused.body);
        assert!(refused.body.contains(&format!("`tslab profile {idle} --keep`")));
    }
}

#[test]
#[cfg(page)]
fn the_page_comes_with_the_command() {
    let files = Directory::new();
    let server = Server::start(&files, &[]);
    assert_eq!(server.get("/healthz").body, "ok\n");
    let index = server.get("/");
    assert!(index.status == 200 && index.head.contains("content-type: text/html"));
    assert!(index.head.contains("content-security-policy: default-src 'none'"));
    let parts =
        [("page.js", "text/javascript"), ("page.css", "text/css"), ("icon.png", "image/png")];
    for (name, kind) in parts {
        assert!(index.body.contains(&format!("./{name}")), "{}", index.body);
        let file = server.get(&format!("/{name}"));
        assert!(file.status == 200 && file.body.len() > 100, "{name}");
        assert!(file.head.contains(&format!("content-type: {kind}")), "{}", file.head);
    }
}

#[test]
fn without_the_token_nobody_reads() {
    let files = Directory::new();
    let file = files.path("token");
    fs::write(&file, "s3cret\n").unwrap();
    let of_file = Server::start(&files, &["--token-file", file.to_str().unwrap()]);
    let of_environment = Server::of(command(&files, &[]).env("TSLAB_SERVE_TOKEN", "s3cret"));
    for server in [of_file, of_environment] {
        for path in ["/metrics", "/api/v1/processes", "/api/v1/processes/1"] {
            let refused = server.get(path);
            assert!(refused.status == 401 && refused.body.contains("Bearer TOKEN"), "{path}");
            assert!(refused.head.contains("www-authenticate: bearer"), "{}", refused.head);
            assert_eq!(server.ask(path, &["Authorization: Bearer s3cre"]).status, 401);
            assert_ne!(server.ask(path, &["Authorization: Bearer s3cret"]).status, 401);
        }
        assert_eq!(server.get("/healthz").status, 200);
        assert_eq!(server.get("/").status, 200);
    }
}

#[test]
fn what_cannot_be_served_is_said_at_once() {
    let files = Directory::new();
    let server = Server::start(&files, &[]);
    let address = server.address.to_string();
    let empty = files.path("empty");
    fs::write(&empty, "\n").unwrap();
    let empty = empty.to_str().unwrap();
    for (arguments, advice) in [
        (vec!["--listen", "0.0.0.0:0"], "give --token-file FILE, or --insecure-no-token"),
        (
            vec!["--listen", address.as_str()],
            "choose another address with --listen: Address already in use",
        ),
        (vec!["--token-file", empty], "holds no token: write one line"),
        (vec!["--token-file", "/nowhere"], "cannot read the token in /nowhere"),
        (vec!["--token", "s3cret"], "unexpected argument"),
        (vec!["--directory", "/nowhere"], "name the files' place with --directory"),
    ] {
        let output = files.run(&[vec!["serve"], arguments].concat());
        assert_eq!(output.code, Some(2), "{}", output.errors);
        assert!(output.errors.contains(advice), "{}", output.errors);
    }
    let everywhere = ["--history", "none", "--insecure-no-token", "--listen", "0.0.0.0:0"];
    let mut open = process::Command::new(env!("CARGO_BIN_EXE_tslab"));
    Server::of(open.arg("--directory").arg(&files.0).arg("serve").args(everywhere));
}

#[test]
fn a_signal_ends_it_whatever_its_clients_do() {
    for signal in [Signal::INT, Signal::TERM] {
        let files = alive(&own_image());
        let server = Server::start(&files, &[]);
        let _silent = server.connect();
        let mut idle = server.connect();
        idle.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        idle.read_exact(&mut [0; 100]).unwrap();
        assert_eq!(server.end(signal), Some(0));
    }
}

#[test]
fn files_that_cannot_be_read_are_counted_and_passed_over() {
    let image = own_image();
    let files = alive(&image);
    files.add(&sample(NOBODY, 7));
    symlink("/nowhere", files.path("tslab.4200000001.7")).unwrap();
    fs::write(files.path("tslab.txt"), "").unwrap();
    let server = Server::start(&files, &[]);
    let counts = |metrics: &[Family]| {
        ["processes", "unreadable_files", "abandoned_files", "read_errors_total"]
            .map(|name| value(metrics, &format!("tslab_{name}"), &[]).unwrap())
    };
    assert_eq!(counts(&server.metrics()), [1.0, 0.0, 2.0, 0.0]);
    let path = files.path(&format!("tslab.{}.{}", image.pid, image.start_ticks));
    let mut newer = own_image();
    newer.abi = 2;
    let whole = image.bytes();
    let mut errors = 0.0;
    for (bytes, complaint) in [
        (whole[..whole.len() / 2].to_vec(), "it is cut short"),
        (b"something else".to_vec(), "it is not a statistics file of tslab"),
        (newer.bytes(), "its format is number 2"),
        (sample(1, 1).bytes(), "it says that it is of process 1"),
    ] {
        fs::write(&path, bytes).unwrap();
        let [processes, unreadable, abandoned, total] = counts(&server.new_metrics());
        assert_eq!([processes, unreadable, abandoned], [0.0, 1.0, 2.0], "{complaint}");
        assert!(total > errors, "{total} {errors}");
        errors = total;
        server.says(complaint);
    }
    fs::write(&path, whole).unwrap();
    assert_eq!(counts(&server.new_metrics())[..2], [1.0, 0.0]);
}

#[test]
fn a_process_is_told_of_once() {
    let image = own_image();
    let files = alive(&image);
    let path = files.path(&format!("tslab.{}.{}", image.pid, image.start_ticks));
    let twin = files.path(&format!("tslab.0{}.{}", image.pid, image.start_ticks));
    fs::hard_link(path, &twin).unwrap();
    map(&twin);
    let metrics = Server::start(&files, &[]).metrics();
    assert_eq!(value(&metrics, "tslab_processes", &[]), Some(1.0));
    assert_eq!(value(&metrics, "tslab_abandoned_files", &[]), Some(1.0));
}

#[test]
fn labels_and_names_come_back_as_they_were() {
    const LABEL: &str = "a\"b\\c\nd=\"e\"} 1 ü\u{202e}\t";
    const NAME: &str = "q\"\\\n{ü}=1";
    let files = Directory::new();
    let crowd = Crowd::named(&files, NAME, |image| add_epoch(image, 2, LABEL, &[]));
    let server = Server::start(&files, &[]);
    let families = server.metrics();
    let pid = crowd.first().to_string();
    let of_epoch = [("pid", pid.as_str()), ("process", NAME), ("epoch", LABEL)];
    assert_eq!(value(&families, "tslab_label_epochs", &of_epoch), Some(1.0));
    let epochs = server.json(&format!("/api/v1/processes/{pid}/epochs"));
    assert_eq!(epochs["name"], NAME);
    let mut epochs = epochs["epochs"].as_array().unwrap().iter();
    assert!(epochs.any(|epoch| epoch["label"] == LABEL));
}

#[test]
fn labels_beyond_the_cap_are_summed_up() {
    let mut image = own_image();
    for row in [1, 2, 4] {
        add_epoch(&mut image, row, &format!("label {row}"), &[]);
    }
    let files = alive(&image);
    for (cap, expected) in [("0", 1), ("2", 3), ("16", 7)] {
        let families = Server::start(&files, &["--labels", cap]).metrics();
        let name = "tslab_label_epochs";
        let told = labels(&families, name, "epoch");
        assert_eq!((told.len(), told.contains("other")), (expected, cap != "16"), "{told:?}");
        let samples = families.iter().flat_map(|family| &family.samples);
        let epochs = samples.filter(|sample| sample.name == name).map(|sample| sample.value);
        // The default epoch is none of the program's.
        assert_eq!(epochs.sum::<f64>(), 6.0);
        assert!(labels(&families, "tslab_objects_leaked_total", "handler").len() <= expected);
    }
}

#[test]
fn counters_do_not_fall_nor_overflow() {
    let mut image = own_image();
    let files = alive(&image);
    let server = Server::start(&files, &[]);
    let counters = |families: &[Family]| {
        let class = [("class", "128")];
        [
            value(families, "tslab_purges_total", &[]).unwrap(),
            value(families, "tslab_allocations_total", &[]).unwrap(),
            value(families, "tslab_class_slabs_opened_total", &class).unwrap(),
        ]
    };
    assert_eq!(counters(&server.metrics()), [5.0, 2000.0, 4.0]);
    // The program has called exec.
    image.made_ms += 1;
    image.set("process", 0, "purges", 1);
    image.set("heaps", 3, "cut_objects", 100);
    image.set_class("bins", 1, "allocations", 1, 0);
    image.set_class("bins", 1, "opened", 1, 1);
    files.add(&image);
    assert_eq!(counters(&server.new_metrics()), [6.0, 2100.0, 5.0]);
    image.set("process", 0, "purges", u64::MAX);
    image.set("heaps", 3, "cut_objects", u64::MAX);
    image.set_class("bins", 1, "opened", 1, u32::MAX.into());
    image.set_class("bins", 1, "allocations", 1, u64::MAX);
    files.add(&image);
    let most = counters(&server.new_metrics());
    assert!(most[0] >= 1.8e19 && most[1] >= 1.8e19 && most[2] > 4e9, "{most:?}");
    image.set("process", 0, "purges", 0);
    files.add(&image);
    assert_eq!(counters(&server.new_metrics()), most);
}

// Scrapes of all threads; how many of them were made anew.
fn readings(server: &Server, threads: usize, scrapes: usize) -> usize {
    let scrape = || -> Vec<String> { (0..scrapes).map(|_| server.scrape().body).collect() };
    let bodies: BTreeSet<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(scrape)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    for body in &bodies {
        parse(body).unwrap();
    }
    bodies.len()
}

#[test]
fn a_thousand_scrapes_share_a_few_readings() {
    let files = alive(&own_image());
    let server = Server::start(&files, &[]);
    let start = Instant::now();
    let readings = readings(&server, 4, 250);
    let most = start.elapsed().as_millis() / 200 + 2;
    assert!(readings as u128 <= most, "{readings} of {most}");
}

// The page asks for this each second. It takes 50 ms; the machine may be busy.
fn list_in_time(server: &Server) -> Vec<Value> {
    let start = Instant::now();
    let answer = server.json("/api/v1/processes");
    assert!(start.elapsed().as_secs() < 3, "{:?}", start.elapsed());
    answer["processes"].as_array().unwrap().clone()
}

#[test]
fn a_hundred_processes_are_read() {
    let files = Directory::new();
    let crowd = Crowd::of(&files, 100);
    (0..300).for_each(|number| drop(files.add(&sample(NOBODY + number, 7))));
    let server = Server::start(&files, &[]);
    let processes = list_in_time(&server);
    assert_eq!(processes.len(), 400);
    assert_eq!(processes.iter().filter(|process| process["life"] == "dead").count(), 300);
    let families = server.metrics();
    assert_eq!(value(&families, "tslab_processes", &[]), Some(100.0));
    assert_eq!(labels(&families, "tslab_live_bytes", "pid").len(), 100);
    let start = Instant::now();
    let readings = readings(&server, 2, 5);
    let most = start.elapsed().as_millis() / 200 + 2;
    assert!(readings as u128 <= most, "{readings} of {most}");
    drop(crowd);
    assert_eq!(value(&server.new_metrics(), "tslab_processes", &[]), Some(0.0));
    assert_eq!(value(&server.metrics(), "tslab_abandoned_files", &[]), Some(400.0));
}

// The history of the own process, once it has as many moments.
fn history(server: &Server, moments: usize) -> Value {
    let start = Instant::now();
    loop {
        let told = server.json(&format!("/api/v1/processes/{}/history", process::id()));
        if told["moments"].as_array().unwrap().len() >= moments {
            return told;
        }
        assert!(start.elapsed().as_secs() < 30, "{told}");
        thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn the_history_outlives_the_server() {
    let (files, folder) = (alive(&own_image()), Directory::new());
    let file = folder.0.join("history.db");
    let arguments = ["--history", file.to_str().unwrap()];
    let server = Server::start(&files, &arguments);
    let first = history(&server, 1);
    assert_eq!((&first["kept"], &first["moments"][0][2]), (&true.into(), &419_520.into()));
    let at_s = &first["moments"][0][0];
    let label = |label, bytes: u64| json!({ "label": label, "moments": [[at_s, bytes]] });
    let labels = [label("default", 216_768), label("batch", 154_880)];
    assert_eq!(first["labels"].as_array().unwrap()[..], labels);
    assert_eq!(server.json("/api/v1/events")["kept"], true);
    assert_eq!(server.end(Signal::TERM), Some(0));
    let server = Server::start(&files, &arguments);
    // The second server may have looked in the same ten seconds: then resident bytes are its own.
    for field in [0, 2] {
        assert_eq!(history(&server, 1)["moments"][0][field], first["moments"][0][field]);
    }
    // What SQLite takes for it stays small.
    assert!(own_memory(server.pid()) < 16 << 20, "{}", own_memory(server.pid()));
}

#[test]
fn a_server_whose_history_cannot_be_used_goes_on_without() {
    let (files, folder) = (alive(&own_image()), Directory::new());
    let file = folder.0.join("history.db");
    fs::write(&file, vec![b'x'; 8192]).unwrap();
    let server = Server::start(&files, &["--history", file.to_str().unwrap()]);
    server.says("no history is kept: cannot use");
    let told = history(&server, 0);
    assert_eq!((&told["kept"], &told["events"]), (&false.into(), &Value::Array(Vec::new())));
    assert!(!server.metrics().is_empty());
    assert_eq!(fs::read(&file).unwrap(), vec![b'x'; 8192], "it is somebody's");
}

#[test]
fn one_server_alone_writes_a_history() {
    let (files, folder) = (alive(&own_image()), Directory::new());
    let file = folder.0.join("history.db");
    let arguments = ["--history", file.to_str().unwrap()];
    let first = Server::start(&files, &arguments);
    history(&first, 1);
    let second = Server::start(&files, &arguments);
    second.says("another server has it");
    assert_eq!(history(&second, 0)["kept"], false);
}
