//! The description of a server in the OpenAPI format.
//!
//! The fixed part is `openapi.json`, and `openapi.pipeline.json` is the path of a pipeline. What a server
//! fills in is typed.

use crate::service::{Pipeline, Service, input_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const DOCUMENT: &str = include_str!("openapi.json");
const PIPELINE: &str = include_str!("openapi.pipeline.json");

/// A description; what is the same for every server stays JSON.
#[derive(Deserialize, Serialize)]
struct Document {
    openapi: String,
    info: Info,
    servers: Vec<Server>,
    security: Vec<Map<String, Value>>,
    paths: Map<String, Value>,
    components: Map<String, Value>,
}

#[derive(Deserialize, Serialize)]
struct Info {
    title: String,
    version: String,
}

#[derive(Deserialize, Serialize)]
struct Server {
    url: String,
}

/// The path of a pipeline.
#[derive(Clone, Deserialize, Serialize)]
struct Path {
    post: Operation,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    operation_id: String,
    summary: String,
    parameters: Vec<Value>,
    request_body: RequestBody,
    responses: Map<String, Value>,
}

#[derive(Clone, Deserialize, Serialize)]
struct RequestBody {
    required: bool,
    content: Content,
}

#[derive(Clone, Deserialize, Serialize)]
struct Content {
    #[serde(rename = "application/json")]
    json: Media,
}

#[derive(Clone, Deserialize, Serialize)]
struct Media {
    schema: Value,
}

/// A pipeline with its input and what a run of it may use at most.
pub(super) fn pipeline_json(p: &Pipeline) -> Value {
    json!({
        "name": p.name, "input": input_schema(p.input.as_ref()),
        "bound": {"modelCalls": p.bound.model_calls.most, "toolCalls": p.bound.tool_calls.most},
    })
}

/// OpenAPI 3.1.
///
/// # Errors
/// A template is invalid. Both are part of the program, and a test reads them.
pub(super) fn description(service: &Service) -> serde_json::Result<Value> {
    let mut document: Document = serde_json::from_str(DOCUMENT)?;
    let template: Path = serde_json::from_str(PIPELINE)?;
    document.info.version = env!("CARGO_PKG_VERSION").into();
    document.servers = vec![Server { url: service.base().into() }];
    if service.callers().wants_credential() {
        document.security = vec![Map::from_iter([("bearer".to_string(), json!([]))])];
    }
    let mut paths = Map::new();
    for p in service.pipelines() {
        let mut path = template.clone();
        let operation = &mut path.post;
        for text in [&mut operation.operation_id, &mut operation.summary] {
            *text = text.replace("{name}", &p.name);
        }
        operation.request_body.content.json.schema = input_schema(p.input.as_ref());
        paths.insert(format!("/v1/pipelines/{}/runs", p.name), serde_json::to_value(path)?);
    }
    paths.append(&mut document.paths);
    document.paths = paths;
    serde_json::to_value(document)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Log, Programs, ServiceOptions};
    use runtime::{Environment, Limits, Secret};
    use session::callers::{Callers, ServeEntry};
    use session::{RunOptions, Session, Settings};
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::path::Path;

    /// A server of `tests/openapi`, with the caller of a token if there is one.
    fn served(token: Option<&str>) -> Service {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi");
        let mut script = tempfile::NamedTempFile::new().unwrap();
        script.write_all(b"[\"a\"]").unwrap();
        let options = RunOptions { script: Some(script.path().to_path_buf()), ..RunOptions::default() };
        let session = Session::new(Settings::load(dir.join("entail.toml")).unwrap(), options);
        let mut programs = Programs::default();
        for file in ["served.agent", "served.lam"] {
            let path = dir.join(file).display().to_string();
            let loaded = session.load(programs.sources(), &path).ok().unwrap();
            programs.add(&session, &path, loaded).unwrap();
        }
        let environment = Environment::new([] as [(&str, &str); 0]);
        let token = token.map(Secret::new);
        let callers =
            Callers::of(&BTreeMap::new(), &ServeEntry::default(), &environment, token.as_ref()).unwrap();
        let options = ServiceOptions {
            models: session.models(&programs.codes()).unwrap(),
            limits: Limits::default(),
            journal: None,
            max_runs: 1,
            callers,
            log: Log::silent(),
        };
        let service = Service::new(&session, programs, options).unwrap();
        service.listens_at("http://127.0.0.1:8080/");
        service
    }

    #[test]
    fn description_is_the_recorded_one_to_the_byte() {
        let recorded = include_str!("../../tests/openapi/description.json");
        let mut recorded: Value = serde_json::from_str(recorded).unwrap();
        recorded["info"]["version"] = env!("CARGO_PKG_VERSION").into();
        let description = description(&served(None)).unwrap();
        assert_eq!(description.to_string(), recorded.to_string());
    }

    #[test]
    fn servers_with_a_token_describe_it() {
        let described = description(&served(Some("planted"))).unwrap();
        assert_eq!(described["security"], json!([{"bearer": []}]));
    }
}
