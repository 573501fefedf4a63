//! The library from its sources, as src/CMakeLists.txt of the repository builds it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::has;

// What `override/none.c` and its kind stand for in a Rust program is `src/face.c`.
const LAYERS: [&str; 11] = [
    "base", "os", "memory", "slab", "state", "tell", "heap", "upkeep", "epoch", "observe", "alloc",
];
const OVERRIDE: [&str; 9] =
    ["cold", "control", "cxx", "first", "libc", "libraries", "nothrow", "sanitizer", "strings"];

// The built-ins must go: a compiler that knows calloc turns malloc + memset into a call to itself.
const FLAGS: [&str; 10] = [
    "-fvisibility=hidden",
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
    "-ftls-model=initial-exec",
    "-fno-semantic-interposition",
    "-fno-plt",
    "-fno-omit-frame-pointer",
    "-momit-leaf-frame-pointer",
];

/// Compiles; returns the folder of the headers.
pub(crate) fn prepare() -> PathBuf {
    let c = c_sources();
    for watched in [c.join("src"), c.join("include"), "src/face.c".into()] {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    compile(&c, has("override"));
    c.join("include")
}

/// The folder with `include` and `src`: a package brings it, a checkout is it.
fn c_sources() -> PathBuf {
    let place = if Path::new("c").is_dir() { "c" } else { "../.." };
    fs::canonicalize(place).expect("a folder that can be read")
}

fn compile(c: &Path, replaces_malloc: bool) {
    let mut build = cc::Build::new();
    // A slow allocator is of no use in a debug build either.
    build.std("gnu11").opt_level(2).extra_warnings(false);
    build.include(c.join("include")).include(c.join("src"));
    build.define("_GNU_SOURCE", None).define("TSL_DEBUG", "0");
    build.define("TSL_SECURE", if has("secure") { "1" } else { "0" });
    build.define("TSL_SAMPLE_PROVIDER", "otel_memory");
    build.define("TSL_HAS_UNWINDER", if has_unwinder() { "1" } else { "0" });
    for flag in FLAGS {
        build.flag(flag);
    }
    for layer in LAYERS {
        build.files(sources(&c.join("src").join(layer)));
    }
    if replaces_malloc {
        let files = OVERRIDE.map(|name| c.join(format!("src/override/{name}.c")));
        // Nobody names malloc before the C library's is linked.
        build.files(files).link_lib_modifier("+whole-archive");
    } else {
        build.file("src/face.c");
    }
    build.compile("tslab_rust");
}

// The unwinder of musl's compilers may need another C library.
fn has_unwinder() -> bool {
    env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| {
        panic!("{} is a part of this crate, but cannot be read: {error}", folder.display())
    });
    let paths = entries.map(|entry| entry.expect("a folder that can be read").path());
    let mut found: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "c")).collect();
    found.sort();
    found
}
