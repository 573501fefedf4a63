//! The page at `/`. It is for everyone, with a token or without: what it shows comes from the API.

use axum::Router;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::routing::get;

/// Nothing but what the binary brings, and the API.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'";

struct File {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! built {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/page/dist/", $name))
    };
}

// What `page/build` makes.
const FILES: [File; 4] = [
    File { path: "/", kind: "text/html; charset=utf-8", bytes: built!("index.html") },
    File { path: "/page.js", kind: "text/javascript", bytes: built!("page.js") },
    File { path: "/page.css", kind: "text/css", bytes: built!("page.css") },
    File { path: "/icon.svg", kind: "image/svg+xml", bytes: built!("icon.svg") },
];

/// The page and all that belongs to it.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, file| {
        let head = [
            (CONTENT_TYPE, file.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        router.route(file.path, get(move || async move { (head, file.bytes) }))
    })
}
