//! Shells complete the command's words.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn tslab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tslab")).args(arguments).output().unwrap()
}

fn script(shell: &str) -> String {
    let output = tslab(&["completions", shell]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn written(shell: &str) -> PathBuf {
    let name = format!("completions-{}.{shell}", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, script(shell)).unwrap();
    path
}

// What bash offers for the last of some words.
fn offered(words: &str) -> Vec<String> {
    let path = written("bash");
    let ask = format!(
        "source \"$1\" || exit\n\
         COMP_WORDS=({words})\n\
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
         $(complete -p tslab | sed 's/.*-F \\([^ ]*\\).*/\\1/') tslab \"${{COMP_WORDS[-1]}}\" x\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    );
    let output = Command::new("bash").args(["-euc", &ask, "bash"]).arg(&path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    fs::remove_file(path).unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_subcommands_and_their_options() {
    assert_eq!(offered("tslab lea"), ["leaks"]);
    assert_eq!(offered("tslab leaks --aft"), ["--after"]);
    assert_eq!(offered("tslab rec"), ["record"]);
    assert_eq!(offered("tslab completions f"), ["fish"]);
    let all = offered("tslab ''");
    assert!(all.contains(&"doctor".to_owned()) && !all.contains(&"manual".to_owned()), "{all:?}");
}

#[test]
fn each_shell_has_a_script_that_knows_the_subcommands() {
    assert!(script("zsh").starts_with("#compdef tslab\n"));
    for shell in ["bash", "fish", "zsh"] {
        assert!(script(shell).contains("doctor") && script(shell).contains("open-after"));
    }
    let unknown = tslab(&["completions", "tcsh"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&unknown.stderr).contains("[possible values: bash, fish, zsh]")
    );
}
