//! Refusals of HTTP requests, and the statuses of runs that failed.
//!
//! Entry points: [`Refusal`] with one table of status, code and message, and [`status_of`].

use crate::service::{Refused, RunError};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use session::callers::Role;
use std::borrow::Cow;
use std::time::Duration;

/// Reason why a request is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The request has no valid credential.
    Unauthorized,
    /// The request has no token and reaches this machine by a foreign name.
    ForeignName,
    /// The caller does not have a role.
    NoRole {
        /// The caller.
        caller: String,
        /// The role.
        role: Role,
    },
    /// No route has this path.
    UnknownPath,
    /// The path takes other methods.
    Method,
    /// The body is larger than this number of bytes, or incomplete.
    TooLarge(usize),
    /// The body did not arrive in time.
    TooSlow(Duration),
    /// The content type is not JSON.
    MediaType,
    /// The body is not JSON.
    NotJson(String),
    /// The body is JSON of another shape.
    Body(String),
    /// The idempotency key is empty or too long.
    BadKey,
    /// The idempotency key belongs to another request.
    KeyReused,
    /// The run ended without an outcome.
    Lost,
    /// Without a journal no run waits for a decision.
    NoJournal,
    /// No question with this identifier is open for the caller.
    NoQuestion,
    /// The question was decided before.
    NotWaiting(String),
    /// The server's own description can't be made.
    Description(String),
    /// The service refuses.
    Service(Refused),
}

/// The most bytes of an idempotency key.
pub(super) const MAX_KEY: usize = 255;

impl Refusal {
    /// The table: status, code and message of each refusal.
    fn row(&self) -> (StatusCode, &'static str, Cow<'static, str>) {
        use StatusCode as S;
        match self {
            Refusal::Unauthorized => {
                (S::UNAUTHORIZED, "unauthorized", "a valid bearer token is required".into())
            }
            Refusal::ForeignName => (
                S::FORBIDDEN,
                "forbidden",
                "requests without a token are answered only from this machine by its own name".into(),
            ),
            Refusal::NoRole { caller, role } => (S::FORBIDDEN, "forbidden", lacks_role(caller, *role).into()),
            Refusal::UnknownPath => (S::NOT_FOUND, "not_found", "unknown path".into()),
            Refusal::Method => (
                S::METHOD_NOT_ALLOWED,
                "method",
                "this path takes other methods, which the header `allow` names".into(),
            ),
            Refusal::TooLarge(most) => (
                S::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("the body has more than {most} bytes, the limit of `--max-body`, or is incomplete")
                    .into(),
            ),
            Refusal::TooSlow(limit) => (
                S::REQUEST_TIMEOUT,
                "timeout",
                format!("the body did not arrive within {} s", limit.as_secs_f64()).into(),
            ),
            Refusal::MediaType => (
                S::UNSUPPORTED_MEDIA_TYPE,
                "media_type",
                "the body must be of type `application/json`".into(),
            ),
            Refusal::NotJson(why) => (S::BAD_REQUEST, "json", format!("the body is not JSON: {why}").into()),
            Refusal::Body(why) => (S::UNPROCESSABLE_ENTITY, "input", why.clone().into()),
            Refusal::BadKey => (
                S::UNPROCESSABLE_ENTITY,
                "input",
                format!("an `Idempotency-Key` has 1 to {MAX_KEY} visible characters").into(),
            ),
            Refusal::KeyReused => (
                S::UNPROCESSABLE_ENTITY,
                "key_reused",
                "this `Idempotency-Key` was used for another request".into(),
            ),
            Refusal::Lost => (S::INTERNAL_SERVER_ERROR, "lost", "the run was lost".into()),
            Refusal::NoJournal => {
                (S::NOT_FOUND, "not_found", "no run waits for a decision: the server has no journal".into())
            }
            Refusal::NoQuestion => {
                (S::NOT_FOUND, "not_found", "unknown question: the run may have continued".into())
            }
            Refusal::NotWaiting(why) => (S::CONFLICT, "not_waiting", why.clone().into()),
            Refusal::Description(why) => (S::INTERNAL_SERVER_ERROR, "internal", why.clone().into()),
            Refusal::Service(refused) => {
                let (status, code) = match refused {
                    Refused::Unknown(_) => (S::NOT_FOUND, "not_found"),
                    Refused::Input(_) => (S::UNPROCESSABLE_ENTITY, "input"),
                    Refused::Conflict(_) => (S::CONFLICT, "conflict"),
                    Refused::Full(_) => (S::TOO_MANY_REQUESTS, "busy"),
                    Refused::Limited(_) => (S::TOO_MANY_REQUESTS, "limited"),
                    Refused::Closing => (S::SERVICE_UNAVAILABLE, "closing"),
                    Refused::Journal(_) => (S::INTERNAL_SERVER_ERROR, "journal"),
                };
                (status, code, refused.message().into_owned().into())
            }
        }
    }

    /// The message of the refusal.
    pub(super) fn message(&self) -> Cow<'static, str> {
        self.row().2
    }
}

/// The message for a caller that does not have a role.
pub(super) fn lacks_role(caller: &str, role: Role) -> String {
    format!("`{caller}` does not have the role `{}`", role.as_str())
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        Refusal::Service(refused)
    }
}

/// `{"error": {"code", "message"}}`, with the headers that the status asks for.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, message) = self.row();
        let mut response =
            (status, Json(json!({"error": {"code": code, "message": message}}))).into_response();
        let header = match status {
            StatusCode::TOO_MANY_REQUESTS => Some((header::RETRY_AFTER, "1")),
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            _ => None,
        };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Returns the status of the answer to a request for this outcome. A run that failed by itself is no success:
/// the body says which error it was.
pub(super) fn status_of(outcome: &Value) -> StatusCode {
    match RunError::of(outcome) {
        None => StatusCode::OK,
        Some(RunError::Cancelled | RunError::Budget) => StatusCode::SERVICE_UNAVAILABLE,
        Some(RunError::Model | RunError::Tool) => StatusCode::BAD_GATEWAY,
        Some(RunError::Withheld) => StatusCode::FORBIDDEN,
        Some(RunError::Interrupted | RunError::Other) => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_the_status_of_their_error() {
        let of = |code: &str| status_of(&json!({"error": {"code": code, "message": ""}})).as_u16();
        assert_eq!(status_of(&json!({"result": 1})).as_u16(), 200);
        let codes =
            ["cancelled", "budget", "model", "tool", "tool_timeout", "withheld", "interrupted", "flow"];
        assert_eq!(codes.map(of), [503, 503, 502, 502, 502, 403, 422, 422]);
    }

    #[test]
    fn refusals_that_can_be_repeated_say_so_in_a_header() {
        let busy = Refusal::from(Refused::Full(1)).into_response();
        assert_eq!(
            (busy.status().as_u16(), &busy.headers()[header::RETRY_AFTER]),
            (429, &"1".parse().unwrap())
        );
        let unknown = Refusal::Unauthorized.into_response();
        assert_eq!(unknown.headers()[header::WWW_AUTHENTICATE], "Bearer");
        assert!(Refusal::KeyReused.into_response().headers().get(header::RETRY_AFTER).is_none());
    }
}
