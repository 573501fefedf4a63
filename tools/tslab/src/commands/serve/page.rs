//! The page at `/`. It is for everyone, with a token or without: what it shows comes from the API.

use axum::Router;
use axum::response::Html;
use axum::routing::get;

const INDEX: &str = include_str!("index.html");

/// The page and all that belongs to it.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/", get(|| async { Html(INDEX) }))
}
