//! An axum server in which each request has an epoch of its own.
//!
//! `axum-example [ADDRESS]` listens at a free port of the loopback address, unless told otherwise,
//! and says where. `/memory` tells what lives in which epoch. `/debug/pprof/heap` tells who
//! allocated it, where `TSLAB_SAMPLE_BYTES=512K` is set: `go tool pprof
//! http://ADDRESS/debug/pprof/heap`.

use std::borrow::Cow;
use std::env;
use std::io;
use std::sync::Arc;

use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::Mutex;
use tslab::{EpochLayer, TemporalSlab, outside, task};

#[global_allocator]
static ALLOCATOR: TemporalSlab = TemporalSlab;

/// Notes that outlive the requests that bring them.
type Notes = Arc<Mutex<Vec<String>>>;

/// Few different labels: the route, not the path.
fn label(request: &Request) -> Cow<'static, str> {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    format!("{} {route}", request.method()).into()
}

async fn words(Path(text): Path<String>) -> Json<Value> {
    // The task goes on in the epoch of the request.
    let counted = task::spawn(async move { text.split('-').map(str::len).collect::<Vec<_>>() });
    let lengths = counted.await.unwrap_or_default();
    Json(json!({ "words": lengths.len(), "lengths": lengths }))
}

async fn keep(State(notes): State<Notes>, body: String) -> Json<Value> {
    let mut notes = notes.lock().await;
    // What is meant to stay lies outside: it would keep pages of the request's epoch.
    outside(|| notes.push(body.clone()));
    Json(json!({ "notes": notes.len() }))
}

/// Not behind the layer: the epochs of other requests are what one wants to see.
async fn memory() -> Json<Value> {
    let epochs = tslab::epochs().into_iter().map(|each| {
        json!({ "label": each.label, "objects": each.live_objects, "bytes": each.live_bytes })
    });
    Json(json!({ "epochs": epochs.collect::<Vec<_>>() }))
}

/// Who allocated what lives, for pprof. Nor this.
async fn heap() -> Result<Vec<u8>, (StatusCode, String)> {
    tslab::pprof().map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

fn router() -> Router {
    let notes: Notes = Arc::default();
    Router::new()
        .route("/words/{text}", get(words))
        .route("/notes", post(keep))
        .route_layer(EpochLayer::new(label))
        .route("/memory", get(memory))
        .route("/debug/pprof/heap", get(heap))
        .with_state(notes)
}

async fn serve(address: &str) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router()).await
}

fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    runtime::Builder::new_multi_thread().enable_io().build()?.block_on(serve(&address))
}
