//! Says what is missing when the page is.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=page/dist");
    assert!(
        Path::new("page/dist/index.html").exists(),
        "the page that `tslab serve` shows is not built: run tools/tslab/page/build first"
    );
}
