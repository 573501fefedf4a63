//! Why a request gets no answer, as JSON.

use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::commands::NotFound;
use crate::text;

/// What JSON is called in HTTP.
pub const JSON: &str = "application/json";

/// What is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such thing.
    NotFound(String),
    /// The request does not make sense.
    Senseless(String),
    /// The request brings no token, or another one.
    Unauthorized,
    /// It could not be done.
    Failed(String),
}

#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
}

impl Refusal {
    fn parts(&self) -> (StatusCode, &str) {
        match self {
            Self::NotFound(why) => (StatusCode::NOT_FOUND, why),
            Self::Senseless(why) => (StatusCode::BAD_REQUEST, why),
            Self::Unauthorized => (
                StatusCode::UNAUTHORIZED,
                "this needs the server's token: send it as `Authorization: Bearer TOKEN`",
            ),
            Self::Failed(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
        }
    }
}

impl From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Self {
        let why = format!("{error:#}");
        if error.is::<NotFound>() { Self::NotFound(why) } else { Self::Failed(why) }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, error) = self.parts();
        // A text is always JSON.
        let body = text::json(&Body { error }).unwrap_or_default();
        let mut response = (status, [(CONTENT_TYPE, JSON)], body).into_response();
        if self == Self::Unauthorized {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
