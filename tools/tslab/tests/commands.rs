//! `doctor`, `watch`, `top`, `diff` and `run` as their users run them.

mod common;
mod place;
#[path = "../src/rows.rs"]
mod rows;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::sample;
use place::{Directory, map, own_start};
use serde_json::Value;

const PID: u32 = 4_200_000_000;

#[test]
fn doctor_names_causes_and_ends_with_status_1() {
    let files = Directory::new();
    files.add(&sample(PID, 7));
    let output = files.run(&["doctor", &PID.to_string()]);
    assert_eq!(output.code, Some(1), "{}", output.errors);
    let expected = "leak: 1 epoch \"GET /upload\" closed up to 61 s ago, with 357 objects of \
                    46.8 KiB in 48.0 KiB; stands: none came for 61 s\n  -> `tslab leaks \
                    4200000000` lists";
    assert!(output.text.starts_with(expected), "{}", output.text);
    let json = files.json(&["doctor", &PID.to_string()]);
    assert_eq!(json["findings"][0]["cause"], "leak");
    assert_eq!(json["findings"][0]["evidence"]["objects"], 357);
    assert_eq!(json["findings"][0]["bytes"], 49_152);
    let not_checked = json["not_checked"].as_array().unwrap();
    assert!(not_checked.iter().any(|check| check["cause"] == "outside"), "{not_checked:?}");
    let ignored = files.run(&["doctor", &PID.to_string(), "--ignore", "label:GET *"]);
    assert_eq!(ignored.code, Some(0), "{}", ignored.text);
}

#[test]
fn doctor_judges_what_happens_between_two_looks() {
    let files = Directory::new();
    let pid = std::process::id();
    let own = |purges| {
        let mut image = sample(pid, own_start());
        image.set_all("process", 0, &[("purges", purges), ("purged_bytes", purges << 20)]);
        image
    };
    map(&files.add(&own(1_000_000)));
    let target = pid.to_string();
    let with =
        |more: &[&str]| files.run(&[["doctor", &target, "--after", "0"].as_slice(), more].concat());
    // A million purges long ago are nothing, whether something is known of now or not.
    for over in ["0.05", "0"] {
        let said = with(&["--over", over]).text;
        assert!(said.contains("leak: ") && !said.contains("purge-churn: "), "{said}");
        assert_eq!(said.contains("for lack of a second look"), over == "0", "{said}");
    }
    let before = files.path("before");
    fs::write(&before, own(0).bytes()).unwrap();
    let since = with(&["--before", before.to_str().unwrap()]);
    // The earlier file does not tell what was resident.
    assert!(since.text.contains("not checked: purge-churn, for lack of"), "{}", since.text);
    assert!(!since.text.contains("dirty"), "{}", since.text);
}

#[test]
fn doctor_says_that_nothing_was_found() {
    let files = Directory::new();
    files.add(&sample(PID, 7));
    let output = files.run(&["doctor", &PID.to_string(), "--after", "61"]);
    assert_eq!(output.code, Some(0));
    assert!(output.text.starts_with("nothing found: 11 checks passed\n"), "{}", output.text);
    let old = files.run(&["doctor", &PID.to_string(), "--after", "61", "--open-after", "9"]);
    assert!(old.text.starts_with("open-too-long: 1 epoch \"batch\" open for up to 10 s"));
    assert_eq!(old.code, Some(1));
    let help = files.run(&["doctor", "--help"]);
    assert!(help.text.contains("\n  near-limit       an epoch holds 90 %"), "{}", help.text);
}

#[test]
fn watch_shows_a_line_for_each_interval() {
    let files = Directory::new();
    map(&files.add(&sample(std::process::id(), own_start())));
    let pid = std::process::id().to_string();
    let arguments = ["watch", &pid, "--interval", "0.05", "-n", "2"];
    let output = files.run(&arguments);
    assert_eq!((output.code, output.errors.as_str()), (Some(0), ""));
    let lines: Vec<_> = output.text.lines().collect();
    assert_eq!(lines.len(), 3, "{}", output.text);
    assert!(lines[0].trim_start().starts_with("SECOND ") && lines[2].contains(" 409.7 KiB "));
    let json = files.run(&[arguments.as_slice(), &["--json"]].concat());
    for line in json.text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["live_bytes"], &line["allocations_a_s"]), (&419_520.into(), &0.0.into()));
        assert!(line["rss_bytes"].as_u64().unwrap() > 4096);
    }
    assert_eq!(json.text.lines().count(), 2);
}

#[test]
fn watch_says_why_it_cannot() {
    let files = Directory::new();
    files.add(&sample(PID, 7));
    let output = files.run(&["watch", &PID.to_string()]);
    assert_eq!(output.code, Some(2));
    assert!(output.errors.contains("`tslab stats` shows"), "{}", output.errors);
    assert_eq!(files.run(&["watch", "1", "--interval", "0"]).code, Some(2));
}

#[test]
fn top_prints_frames_of_processes_that_run() {
    let files = Directory::new();
    map(&files.add(&sample(std::process::id(), own_start())));
    files.add(&sample(PID, 7));
    let output = files.run(&["top", "--batch", "-n", "2", "--interval", "0.05"]);
    assert_eq!((output.code, output.errors.as_str()), (Some(0), ""));
    let title = "tslab top  1 process, by RSS, every 0.05 s\n";
    assert!(output.text.starts_with(title) && output.text.matches(title).count() == 2);
    assert!(output.text.contains("\"GET /upload\"") && !output.text.contains("4200000000"));
    let nobody = Directory::new().run(&["top", "--batch", "-n", "1"]);
    assert!(nobody.text.contains("no process runs on tslab"), "{}", nobody.text);
}

#[test]
fn top_wants_a_terminal_or_batch() {
    let files = Directory::new();
    let output = files.run(&["top"]);
    assert_eq!(output.code, Some(2));
    assert!(output.errors.contains("`tslab top --batch`"), "{}", output.errors);
    assert!(files.run(&["top", "--json", "--batch"]).errors.contains("tslab watch --json"));
    assert_eq!(files.run(&["top", "-n", "1"]).code, Some(2));
}

/// Two looks at a process in the three forms that there are.
struct Looks<'a> {
    files: &'a Directory,
    name: &'static str,
}

impl Looks<'_> {
    fn path(&self, form: &str) -> String {
        self.files.path(&format!("{}.{form}", self.name)).to_string_lossy().into_owned()
    }

    fn write(&self, image: &common::Image) {
        let file = self.files.add(image);
        for form in ["stats", "epochs"] {
            let json = self.files.run(&[form, &image.pid.to_string(), "--json"]).text;
            fs::write(self.path(form), json).unwrap();
        }
        fs::rename(file, self.path("file")).unwrap();
    }
}

#[test]
fn diff_compares_files_and_json_and_fails_on_growth() {
    let files = Directory::new();
    let (before, after) =
        (Looks { files: &files, name: "before" }, Looks { files: &files, name: "after" });
    before.write(&sample(PID, 7));
    let mut image = sample(PID, 7);
    image.set_class("epochs", 7, "survivors", 1, 440);
    after.write(&image);
    let diff = |form: &str, more: &[&str]| {
        let (before, after) = (before.path(form), after.path(form));
        files.run(&[["diff", &before, &after].as_slice(), more].concat())
    };
    for (form, grown) in
        [("file", "\"GET /upload\""), ("epochs", "\"GET /upload\""), ("stats", "process")]
    {
        let output = diff(form, &[]);
        assert_eq!(output.code, Some(0), "{}", output.errors);
        assert!(output.text.contains(&format!("!  {grown}")), "{form}: {}", output.text);
        assert_eq!(diff(form, &["--fail-on", "regression"]).code, Some(1));
        let tolerant = diff(form, &["--fail-on", "regression", "--tolerance", "30"]);
        assert_eq!(tolerant.code, Some(0));
        let untold = tolerant.errors.contains("has no samples: processes, statistics files, ");
        let is_silent = tolerant.errors.is_empty();
        assert_eq!((untold, is_silent), (form != "file", form == "file"), "{}", tolerant.errors);
    }
    let backwards =
        files.run(&["diff", &after.path("file"), &before.path("file"), "--fail-on=regression"]);
    assert_eq!(backwards.code, Some(0), "{}", backwards.text);
    let json = files.json(&["diff", &before.path("file"), &after.path("epochs")]);
    assert_eq!(json["differences"][0]["topic"]["label"], "GET /upload");
    assert_eq!(json["differences"][0]["quantity"], "live_bytes");
    assert_eq!(json["call_stacks"], "not_told");
    assert_eq!((&json["regressions"], &json["tolerance_percent"]), (&2.into(), &5.0.into()));
}

#[test]
fn diff_says_what_is_wrong_with_its_files() {
    let files = Directory::new();
    let look = Looks { files: &files, name: "look" };
    look.write(&sample(PID, 7));
    let (stats, epochs) = (look.path("stats"), look.path("epochs"));
    let mixed = files.run(&["diff", &stats, &epochs]);
    assert_eq!(mixed.code, Some(2));
    assert!(mixed.errors.contains("is JSON of `stats`, and "), "{}", mixed.errors);
    let bad = files.path("bad").to_string_lossy().into_owned();
    for (bytes, advice) in [("", "it is empty"), ("{\"epochs\": ", "`tslab stats --json PID`")] {
        fs::write(&bad, bytes).unwrap();
        let output = files.run(&["diff", &stats, &bad]);
        assert!(output.code == Some(2) && output.errors.contains(advice), "{}", output.errors);
    }
    let nothing = files.run(&["diff", &stats, "./nothing"]);
    assert!(nothing.code == Some(2) && nothing.errors.contains("cannot read ./nothing"));
    assert_eq!(files.run(&["diff", &stats, &stats, "--tolerance", "-1"]).code, Some(2));
}

// Something that the loader can look at, without loading it.
const LIBRARY: &str = env!("CARGO_BIN_EXE_tslab");

fn run(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tslab"));
    command.args(["run", "--library", LIBRARY]).args(arguments).env_remove("LD_PRELOAD");
    command.stderr(Stdio::null());
    command
}

#[test]
fn run_becomes_the_program() {
    let child = run(&["--", "sh", "-c", "echo $$ $0 -n; exit 7", "me"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{pid} me -n\n"));
    let killed = run(&["sh", "-c", "kill -9 $$"]).status().unwrap();
    assert_eq!(killed.signal(), Some(9));
}

#[test]
fn run_hands_the_library_and_options_on() {
    let environment = |command: &mut Command| {
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let library = fs::canonicalize(LIBRARY).unwrap().to_string_lossy().into_owned();
    let options = ["-o", "purge_delay_ms=500", "--option", "helper=true", "--", "env", "--null"];
    let said = environment(&mut run(&options));
    let has = |said: &str, variable: &str| said.split('\0').any(|known| known == variable);
    assert!(has(&said, &format!("LD_PRELOAD={library}")), "{said}");
    assert!(has(&said, "TSLAB_PURGE_DELAY_MS=500") && has(&said, "TSLAB_HELPER=true"), "{said}");
    let said = environment(run(&["env", "--null"]).env("LD_PRELOAD", "/first.so"));
    assert!(has(&said, &format!("LD_PRELOAD=/first.so:{library}")), "{said}");
    let mut variable = Command::new(LIBRARY);
    variable.args(["run", "env", "--null"]).env("TSLAB_LIBRARY", LIBRARY);
    assert!(has(&environment(&mut variable), &format!("LD_PRELOAD={library}")));
}

#[test]
fn run_says_what_stands_in_the_way() {
    let files = Directory::new();
    let script = files.path("script");
    let fixed = files.path("fixed");
    let foreign = files.path("foreign");
    let own = fs::read(LIBRARY).unwrap();
    let mut image = own[..4096].to_vec();
    image[18] ^= 0x55;
    fs::write(&foreign, &image).unwrap();
    // Of the types of program headers, only that of the loader is 3.
    let mut image = own;
    let at = usize::from(u16::from_ne_bytes([image[32], image[33]]));
    let count = usize::from(u16::from_ne_bytes([image[56], image[57]]));
    let types =
        (0..count).map(|entry| at + 56 * entry).filter(|&at| image[at..at + 4] == [3, 0, 0, 0]);
    types.collect::<Vec<_>>().into_iter().for_each(|at| image[at] = 0);
    fs::write(&fixed, &image).unwrap();
    fs::write(&script, format!("#!{}\n", fixed.display())).unwrap();
    for path in [&script, &fixed, &foreign] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let said = |path: &Path| {
        let output = run(&["--", path.to_str().unwrap()]).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&fixed).contains("is linked statically"), "{}", said(&fixed));
    assert!(said(&script).contains("is linked statically"), "{}", said(&script));
    assert!(said(&foreign).contains("of another architecture"), "{}", said(&foreign));
    assert!(said(Path::new("/no/such/program")).contains("there is no program"));
    let looked = files.run(&["run", "--library", "/nowhere/lib.so", "--", "true"]);
    assert!(looked.errors.contains("looked for /nowhere/lib.so; name it with --library"));
    let option = files.run(&["run", "-o", "purge=5", "--", "true"]);
    assert!(option.code == Some(2) && option.errors.contains("purge_delay_ms"));
    assert_eq!(files.run(&["run"]).code, Some(2));
}
