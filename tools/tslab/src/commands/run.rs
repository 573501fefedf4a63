//! run: starts an unchanged program on the allocator.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use rustix::process::{getegid, geteuid};

use super::Answer;
use crate::elf;
use crate::python;
use crate::say::say;
use crate::text;

// The name without a number comes with the headers only.
const LIBRARY: &str = "libtslab-preload.so";
const NUMBERED: &str = concat!("libtslab-preload.so.", env!("CARGO_PKG_VERSION_MAJOR"));
const PRELOAD: &str = "LD_PRELOAD";

/// The environment variable that says where the library is.
const LIBRARY_VARIABLE: &str = "TSLAB_LIBRARY";

/// Every option of the library of the same sources, as it declares them.
const OPTIONS: &str = include_str!("../../../../src/base/options.def");

// A script may be started by a script, and so on; the kernel goes no deeper.
const MOST_SCRIPTS: usize = 5;

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const EXECUTABLE: u32 = 0o111;

/// What `run` is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The library to load first; otherwise `$TSLAB_LIBRARY`, or where it lies beside this command
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,

    /// An option of the allocator, such as `purge_delay_ms=500`; may be given several times
    #[arg(long = "option", short = 'o', value_name = "NAME=VALUE", value_parser = option)]
    options: Vec<(String, String)>,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// The names that the library knows.
fn known_options() -> impl Iterator<Item = &'static str> {
    let declared = OPTIONS.lines().filter_map(|line| line.strip_prefix("OPTION("));
    declared.filter_map(|rest| Some(rest.split_once(',')?.0.trim()))
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is wanted")?;
    if !known_options().any(|known| known == name) {
        let known: Vec<_> = known_options().collect();
        return Err(format!("the allocator has no such option, but {}", known.join(", ")));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Becomes the program. Returns only what stands in the way.
pub fn run(arguments: &Arguments) -> Result<Answer> {
    let mut command = command(arguments.library.as_deref(), &arguments.program)?;
    // A variable of its own wins over what TSLAB_CONF says.
    for (name, value) in &arguments.options {
        command.env(format!("TSLAB_{}", name.to_ascii_uppercase()), value);
    }
    let program = Path::new(command.get_program());
    if let Some(note) = python::note(program, env::var_os(python::VARIABLE).as_deref()) {
        say(&note);
    }
    let error = command.exec();
    Err(error).with_context(|| cannot_start(&command))
}

/// What is to be started: a program and its arguments on the allocator.
pub fn command(library: Option<&Path>, program: &[OsString]) -> Result<Command> {
    let Some((name, rest)) = program.split_first() else {
        bail!("which program? name it behind `--`");
    };
    let library = find_library(library)?;
    let program = find_program(name)?;
    check(&program, &library)?;
    let mut command = Command::new(&program);
    command.arg0(name).args(rest).env(PRELOAD, preload(&library, env::var_os(PRELOAD)));
    Ok(command)
}

/// The beginning of an error.
pub fn cannot_start(command: &Command) -> String {
    format!("cannot start {}", shown(Path::new(command.get_program())))
}

fn shown(path: &Path) -> String {
    text::printable(&path.to_string_lossy())
}

// The library comes last: what the user loads before may want to be first.
fn preload(library: &Path, before: Option<OsString>) -> OsString {
    let mut list = before.filter(|before| !before.is_empty()).unwrap_or_default();
    if !list.is_empty() {
        list.push(":");
    }
    list.push(library);
    list
}

// Where the library may be: as the user says, or where it is installed or built beside the command.
fn places(
    named: Option<&Path>,
    variable: Option<OsString>,
    command: Option<&Path>,
) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named.to_owned()];
    }
    if let Some(variable) = variable.filter(|variable| !variable.is_empty()) {
        return vec![variable.into()];
    }
    let Some(folder) = command.and_then(Path::parent) else { return Vec::new() };
    // Installed: bin and lib. Built: build/cargo/release and build/lib.
    let of_debian = format!("../lib/{}-linux-gnu", env::consts::ARCH);
    let folders = ["../lib", "../lib64", "../../lib", ".", &of_debian];
    let libraries = |lib: &&str| [LIBRARY, NUMBERED].map(|name| folder.join(lib).join(name));
    folders.iter().flat_map(libraries).collect()
}

fn find_library(named: Option<&Path>) -> Result<PathBuf> {
    let command = env::current_exe().ok();
    let places = places(named, env::var_os(LIBRARY_VARIABLE), command.as_deref());
    // The loader of the program looks from its own working directory: only a whole path will do.
    let found = places.iter().find_map(|place| {
        place.is_file().then(|| place.canonicalize().unwrap_or_else(|_| place.clone()))
    });
    let looked = || places.iter().map(|place| shown(place)).collect::<Vec<_>>().join(", ");
    let library = found.ok_or_else(|| {
        anyhow!(
            "{LIBRARY} is not there: looked for {}; name it with --library, or in \
             ${LIBRARY_VARIABLE}",
            looked()
        )
    })?;
    // The loader takes blanks and colons for the ends of names.
    if library.to_string_lossy().contains([' ', ':']) {
        bail!(
            "LD_PRELOAD cannot hold {}: move the library to a path without blanks and colons",
            shown(&library)
        );
    }
    Ok(library)
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.mode() & EXECUTABLE != 0)
}

/// Where a program is, as the shell finds it.
pub fn find_program(name: &OsStr) -> Result<PathBuf> {
    let named = Path::new(name);
    if named.components().count() > 1 || named.is_absolute() || name.is_empty() {
        return match fs::metadata(named) {
            Ok(_) if is_executable(named) => Ok(named.to_owned()),
            Ok(_) => Err(anyhow!("{} may not be executed: is it a program?", shown(named))),
            Err(error) => Err(anyhow!("there is no program {} ({error})", shown(named))),
        };
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut candidates = env::split_paths(&path).map(|folder| folder.join(named));
    candidates.find(|path| is_executable(path)).ok_or_else(|| {
        anyhow!("there is no program {} in $PATH: name it by its path", shown(named))
    })
}

// Whether the loader will load the library into it.
fn check(program: &Path, library: &Path) -> Result<()> {
    let interpreter = elf::interpreter_of(program, MOST_SCRIPTS);
    let file = interpreter.as_deref().unwrap_or(program);
    let Some(kind) = elf::read(file) else { return Ok(()) };
    if elf::read(library).is_some_and(|library| library.machine != kind.machine) {
        bail!(
            "{} is of another architecture than {}: name a library of its own with --library",
            shown(file),
            shown(library)
        );
    }
    if !kind.is_dynamic && !is_loader(file) {
        bail!(
            "{} is linked statically, and no library can be loaded into it: link it with \
             libtslab.a instead",
            shown(file)
        );
    }
    if gains_rights(file) {
        bail!(
            "{} runs with the rights of another user, and the system loads no library into it \
             then: run it as that user",
            shown(file)
        );
    }
    Ok(())
}

// Who names the loader itself has another program loaded by it.
fn is_loader(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ld-") || name.starts_with("ld.so")
}

// Of scripts nothing is gained: the kernel looks at their interpreters.
fn gains_rights(program: &Path) -> bool {
    let Ok(file) = fs::metadata(program) else { return false };
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let as_user = file.mode() & SET_USER_ID != 0 && file.uid() != user;
    as_user || (file.mode() & SET_GROUP_ID != 0 && file.gid() != group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_joins_those_that_are_loaded_already() {
        let library = Path::new("/x/lib.so");
        assert_eq!(preload(library, None), "/x/lib.so");
        assert_eq!(preload(library, Some("".into())), "/x/lib.so");
        assert_eq!(preload(library, Some("/a.so /b.so".into())), "/a.so /b.so:/x/lib.so");
    }

    #[test]
    fn the_library_is_looked_for_where_the_user_says_or_beside_the_command() {
        let command = Path::new("/opt/bin/tslab");
        let named = Path::new("/n.so");
        assert_eq!(places(Some(named), Some("/v.so".into()), Some(command)), [named]);
        assert_eq!(places(None, Some("/v.so".into()), Some(command)), [Path::new("/v.so")]);
        let beside = places(None, Some("".into()), Some(command));
        assert_eq!(beside[0], Path::new("/opt/bin/../lib/libtslab-preload.so"));
        assert_eq!(beside[1], Path::new("/opt/bin/../lib/libtslab-preload.so.0"));
        assert_eq!(beside[4], Path::new("/opt/bin/../../lib/libtslab-preload.so"));
        let of_debian = format!("../lib/{}-linux-gnu/libtslab-preload.so.0", env::consts::ARCH);
        assert_eq!(beside[9], Path::new("/opt/bin").join(of_debian));
        assert!(places(None, None, None).is_empty());
    }

    #[test]
    fn options_are_those_that_the_library_declares() {
        assert!(known_options().count() >= 10);
        assert_eq!(option("purge_delay_ms=5"), Ok(("purge_delay_ms".into(), "5".into())));
        assert_eq!(option("helper=a=b"), Ok(("helper".into(), "a=b".into())));
        let error = option("purge_delay=5").unwrap_err();
        assert!(error.contains("on_error, purge_delay_ms, "), "{error}");
        assert!(option("verbose").unwrap_err().contains("NAME=VALUE"));
    }

    #[test]
    fn programs_are_found_as_the_shell_finds_them() {
        assert!(find_program("sh".as_ref()).unwrap().is_absolute());
        assert_eq!(find_program("/bin/sh".as_ref()).unwrap(), Path::new("/bin/sh"));
        let error = |name: &str| find_program(name.as_ref()).unwrap_err().to_string();
        assert!(error("no-such-program").contains("in $PATH"));
        assert!(error("/no/such").contains("there is no program /no/such"));
        assert!(error("/etc/passwd").contains("may not be executed"));
        assert!(error("/").contains("may not be executed"));
        assert!(error("").contains("there is no program"));
    }
}
