//! The page at `/`. It is for everyone, with a token or without: what it shows comes from the API.

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::routing::get;

/// Nothing but what the binary brings, and the API.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'";

const HTML: &str = "text/html; charset=utf-8";

struct File {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

#[cfg(page)]
macro_rules! built {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/page/dist/", $name))
    };
}

// What `page/build` makes.
#[cfg(page)]
const FILES: &[File] = &[
    File { path: "/", kind: HTML, bytes: built!("index.html") },
    File { path: "/page.js", kind: "text/javascript", bytes: built!("page.js") },
    File { path: "/page.css", kind: "text/css", bytes: built!("page.css") },
    File { path: "/icon.png", kind: "image/png", bytes: built!("icon.png") },
];

// Where it was not built.
#[cfg(not(page))]
const FILES: &[File] = &[File { path: "/", kind: HTML, bytes: include_bytes!("plain.html") }];

/// The page and all that belongs to it.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, file| {
        let head = [
            (CONTENT_TYPE, file.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, "no-cache"),
        ];
        router.route(file.path, get(move || async move { (head, file.bytes) }))
    })
}
