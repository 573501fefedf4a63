//! Takes the page of `tslab serve` in if it is built: that takes node, the command does not.

use std::path::Path;

fn main() {
    let is_built = Path::new("page/dist/index.html").exists();
    println!("cargo::rustc-check-cfg=cfg(page)");
    // A path that is not there would have everything built anew each time.
    println!("cargo::rerun-if-changed={}", if is_built { "page/dist" } else { "page" });
    if is_built {
        println!("cargo::rustc-cfg=page");
    } else {
        println!(
            "cargo::warning=built without the page of `tslab serve`: tools/tslab/build has it"
        );
    }
}
