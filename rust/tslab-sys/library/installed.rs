//! The library that is installed here: feature `system`.

use std::path::PathBuf;

use super::has;

/// Asks pkg-config; returns the folder of the headers. Rust's allocator and C's are the same then:
/// the library tells what scopes capture by C's `malloc`.
pub(crate) fn prepare() -> PathBuf {
    let version = env!("CARGO_PKG_VERSION");
    let next = next_incompatible(version);
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

/// The first version whose interface may be another one, by Semantic Versioning.
fn next_incompatible(version: &str) -> String {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().expect("a number"));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if major > 0 { format!("{}.0.0", major + 1) } else { format!("0.{}.0", minor + 1) }
}
