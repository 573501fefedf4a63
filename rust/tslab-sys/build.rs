//! Makes the library ready: `library` is one of two.

use std::env;

#[cfg(feature = "system")]
#[path = "library/installed.rs"]
mod library;
#[cfg(not(feature = "system"))]
#[path = "library/sources.rs"]
mod library;

fn main() {
    assert!(
        env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux"),
        "tslab is an allocator for Linux: leave it out on other systems, by \
         [target.'cfg(target_os = \"linux\")'.dependencies]"
    );
    let include = library::prepare();
    println!("cargo::metadata=include={}", include.display());
    println!("cargo::rustc-env=TSLAB_INCLUDE={}", include.display());
}

fn has(feature: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{}", feature.to_ascii_uppercase())).is_some()
}
