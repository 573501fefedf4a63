//! The commands' JSON over HTTP.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use super::desk::Desk;
use super::historian::{self, Wanted};
use super::question::{Question, Whose};
use super::refusal::{JSON, Refusal};
use super::target::Target;
use crate::commands::leaks;

// What servers of Go programs call a profile.
const OCTETS: &str = "application/octet-stream";

/// Of the history, unless it is asked for more.
const DAY_S: u64 = 86_400;

type Reply = Result<([(HeaderName, &'static str); 1], Bytes), Refusal>;
type Process = Result<Path<String>, PathRejection>;

/// Everything below `/api`, and the profile where collectors look for it.
pub fn routes() -> Router<Arc<Desk>> {
    Router::new()
        .route("/api/v1/processes", get(processes))
        .route("/api/v1/processes/{pid}", get(stats))
        .route("/api/v1/processes/{pid}/epochs", get(epochs))
        .route("/api/v1/processes/{pid}/leaks", get(leaks))
        .route("/api/v1/processes/{pid}/profile", get(profile))
        .route("/api/v1/processes/{pid}/why", get(why))
        .route("/api/v1/processes/{pid}/doctor", get(doctor))
        .route("/api/v1/processes/{pid}/history", get(history))
        .route("/api/v1/events", get(events))
        .route("/debug/pprof/heap", get(heap))
}

async fn processes(State(desk): State<Arc<Desk>>) -> Reply {
    reply(&desk, Question::Processes).await
}

async fn stats(State(desk): State<Arc<Desk>>, process: Process) -> Reply {
    reply(&desk, Question::Stats(target(process)?)).await
}

async fn profile(State(desk): State<Arc<Desk>>, process: Process) -> Reply {
    reply(&desk, Question::Profile(target(process)?)).await
}

async fn why(State(desk): State<Arc<Desk>>, process: Process) -> Reply {
    reply(&desk, Question::Why(target(process)?)).await
}

async fn doctor(State(desk): State<Arc<Desk>>, process: Process) -> Reply {
    reply(&desk, Question::Doctor(target(process)?)).await
}

async fn heap(State(desk): State<Arc<Desk>>, RawQuery(query): RawQuery) -> Reply {
    let question = Question::Heap(whose(query.as_deref())?);
    Ok(([(CONTENT_TYPE, OCTETS)], desk.answer(question).await?))
}

async fn epochs(
    State(desk): State<Arc<Desk>>,
    process: Process,
    RawQuery(query): RawQuery,
) -> Reply {
    let all = switch(query.as_deref(), "all")?;
    reply(&desk, Question::Epochs { target: target(process)?, all }).await
}

async fn leaks(
    State(desk): State<Arc<Desk>>,
    process: Process,
    RawQuery(query): RawQuery,
) -> Reply {
    let ms = |name| seconds_as_ms(query.as_deref(), name);
    let after_ms = ms("after")?.unwrap_or(desk.leak_after_ms());
    let limits = leaks::Limits { after_ms, open_after_ms: ms("open_after")? };
    reply(&desk, Question::Leaks { target: target(process)?, limits }).await
}

async fn history(
    State(desk): State<Arc<Desk>>,
    process: Process,
    RawQuery(query): RawQuery,
) -> Reply {
    let after_s = moment(query.as_deref())?;
    reply(&desk, Question::Past(Wanted { target: Some(target(process)?), after_s })).await
}

async fn events(State(desk): State<Arc<Desk>>, RawQuery(query): RawQuery) -> Reply {
    let after_s = moment(query.as_deref())?;
    reply(&desk, Question::Past(Wanted { target: None, after_s })).await
}

async fn reply(desk: &Arc<Desk>, question: Question) -> Reply {
    Ok(([(CONTENT_TYPE, JSON)], desk.answer(question).await?))
}

// Of the commands' targets numbers alone: a path could lead anywhere.
fn target(process: Process) -> Result<Target, Refusal> {
    let name = process.map(|Path(name)| name).unwrap_or_default();
    Target::parse(&name).ok_or_else(|| {
        let advice = "/api/v1/processes lists those that there are";
        Refusal::NotFound(format!("{name:?} is no number of a process: {advice}"))
    })
}

// The value of a parameter; one without a value is empty.
fn parameter<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    let mut pairs = form_urlencoded::parse(query?.as_bytes());
    pairs.find(|(known, _)| known == name).map(|(_, value)| value)
}

fn switch(query: Option<&str>, name: &str) -> Result<bool, Refusal> {
    match parameter(query, name).as_deref() {
        None | Some("0" | "false") => Ok(false),
        Some("" | "1" | "true") => Ok(true),
        Some(value) => Err(Refusal::Senseless(format!(
            "{name}={value:?} is neither true nor false: write {name}=true, or leave it out"
        ))),
    }
}

fn whose(query: Option<&str>) -> Result<Whose, Refusal> {
    match (parameter(query, "pid"), parameter(query, "process")) {
        (None, None) => Ok(Whose::Anyone),
        (None, Some(name)) => Ok(Whose::Name(name.into_owned())),
        (Some(pid), _) => pid.parse().map(Whose::Pid).map_err(|_| {
            Refusal::Senseless(format!(
                "pid={pid:?} is no number of a process: write one, such as pid=4242"
            ))
        }),
    }
}

// From when on the past is wanted, in seconds since 1970.
fn moment(query: Option<&str>) -> Result<u64, Refusal> {
    let after_s = seconds(query, "after")?;
    Ok(after_s.unwrap_or_else(|| historian::now_s().saturating_sub(DAY_S)))
}

fn seconds_as_ms(query: Option<&str>, name: &str) -> Result<Option<u64>, Refusal> {
    Ok(seconds(query, name)?.map(|seconds| seconds.saturating_mul(1000)))
}

fn seconds(query: Option<&str>, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(value) = parameter(query, name) else { return Ok(None) };
    let seconds: u64 = value.parse().map_err(|_| {
        Refusal::Senseless(format!(
            "{name}={value:?} is no number of seconds: write one, such as {name}=60"
        ))
    })?;
    Ok(Some(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_name() {
        let query = Some("after=5&all&x=&after=7");
        let value = |name| parameter(query, name);
        assert_eq!(value("after").as_deref(), Some("5"));
        assert_eq!((value("all").as_deref(), value("x").as_deref()), (Some(""), Some("")));
        assert_eq!((value("aft"), parameter(None, "after")), (None, None));
        assert_eq!(parameter(Some("x=Web%20a+b"), "x").as_deref(), Some("Web a b"));
    }

    #[test]
    fn switches_and_seconds_are_understood_or_refused() {
        for (query, on) in [("all", true), ("all=true", true), ("all=0", false), ("x", false)] {
            assert_eq!(switch(Some(query), "all").ok(), Some(on), "{query}");
        }
        assert!(switch(Some("all=perhaps"), "all").is_err());
        let ms = |query| seconds_as_ms(Some(query), "after");
        assert_eq!((ms("after=2"), ms("")), (Ok(Some(2000)), Ok(None)));
        assert_eq!(ms("after=18446744073709551615"), Ok(Some(u64::MAX)));
        for query in ["after=", "after=-1", "after=1.5", "after=18446744073709551616"] {
            assert!(ms(query).is_err(), "{query}");
        }
    }

    #[test]
    fn whose_profile_is_said_by_number_by_name_or_not_at_all() {
        let name = || Whose::Name("redis-server".to_owned());
        assert_eq!(whose(Some("process=redis-server")), Ok(name()));
        assert_eq!(whose(Some("process=x&pid=42")), Ok(Whose::Pid(42)));
        assert_eq!((whose(None), whose(Some("x"))), (Ok(Whose::Anyone), Ok(Whose::Anyone)));
        assert!(whose(Some("pid=redis")).is_err());
    }
}
