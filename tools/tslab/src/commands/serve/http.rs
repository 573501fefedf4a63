//! The server: addresses, signals, and who may ask for what.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::access::Token;
use super::desk::Desk;
use super::form::Form;
use super::pace::Pace;
use super::question::Question;
use super::refusal::Refusal;
use super::{api, page};
use crate::say::say;

/// How long the end waits for clients that are slow to take their answers.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves until SIGINT or SIGTERM. Fails when the address cannot be had.
pub fn serve(
    listen: SocketAddr,
    token: Option<Token>,
    desk: &Arc<Desk>,
    history: Option<&Path>,
    pace: Pace,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(run(listen, token, desk, history, pace));
    runtime.block_on(desk.end());
    runtime.shutdown_background();
    result
}

async fn run(
    listen: SocketAddr,
    token: Option<Token>,
    desk: &Arc<Desk>,
    history: Option<&Path>,
    pace: Pace,
) -> Result<()> {
    let end = End::new()?;
    let cannot = || format!("cannot listen on {listen}: choose another address with --listen");
    let listener = TcpListener::bind(listen).await.with_context(cannot)?;
    say(&format!("serving http://{}/", listener.local_addr()?));
    desk.watch(history, pace);
    let (tell, told) = oneshot::channel();
    let ended = async move {
        end.wait().await;
        let _ = tell.send(());
    };
    let too_late = async {
        let _ = told.await;
        tokio::time::sleep(PATIENCE).await;
    };
    let serving = axum::serve(listener, router(token, Arc::clone(desk)))
        .with_graceful_shutdown(ended)
        .into_future();
    tokio::select! {
        served = serving => Ok(served?),
        () = too_late => Ok(()),
    }
}

// The signals that ask for the end.
struct End {
    interrupt: Signal,
    terminate: Signal,
}

impl End {
    fn new() -> Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn wait(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }
}

// Whatever tells of processes asks for the token.
fn router(token: Option<Token>, desk: Arc<Desk>) -> Router {
    let guard = middleware::from_fn_with_state(Arc::new(token), admit);
    Router::new()
        .route("/metrics", get(metrics))
        .merge(api::routes())
        .route_layer(guard)
        .merge(page::routes())
        .route("/healthz", get(|| async { "ok\n" }))
        .fallback(|uri: Uri| async move { nothing_at(uri.path()) })
        .with_state(desk)
}

async fn admit(State(token): State<Arc<Option<Token>>>, request: Request, next: Next) -> Response {
    match token.as_ref() {
        Some(token) if !token.is_in(request.headers()) => Refusal::Unauthorized.into_response(),
        _ => next.run(request).await,
    }
}

async fn metrics(
    State(desk): State<Arc<Desk>>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Refusal> {
    let form = Form::wanted(&headers);
    let text = desk.answer(Question::Metrics(form)).await?;
    Ok(([(CONTENT_TYPE, form.content_type()), (VARY, "accept")], text))
}

fn nothing_at(path: &str) -> Refusal {
    Refusal::NotFound(format!(
        "there is nothing at {path}: there are /, /metrics, /api/v1/processes and /debug/pprof/heap"
    ))
}
