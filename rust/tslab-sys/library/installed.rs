//! The library that is installed here: feature `system`.

use std::path::PathBuf;

use super::has;

/// Asks pkg-config; returns the folder of the headers. Rust's allocator and C's are the same then:
/// the library tells what scopes capture by C's `malloc`.
pub(crate) fn prepare() -> PathBuf {
    let version = env!("CARGO_PKG_VERSION");
    let next = format!("0.{}.0", env!("CARGO_PKG_VERSION_MINOR").parse::<u32>().unwrap() + 1);
    let found = pkg_config::Config::new()
        .range_version(version..&next)
        .probe("tslab-preload")
        .unwrap_or_else(|error| {
            panic!(
                "tslab: the feature `system` takes an installed tslab {version}: install \
                 libtslab-dev, set PKG_CONFIG_PATH to its pkgconfig folder, or leave the feature \
                 out\n{error}"
            )
        });
    let flavour = pkg_config::get_variable("tslab-preload", "secure");
    assert!(
        !has("secure") || flavour.is_ok_and(|secure| secure == "ON"),
        "tslab: the feature `secure` is on, but the installed tslab is not the hardened one: \
         install that (cmake --preset secure), or leave `secure` or `system` out"
    );
    let include = found.include_paths.iter().find(|path| path.join("tslab.h").is_file());
    include.expect("tslab-preload.pc names the folder of tslab.h").clone()
}
