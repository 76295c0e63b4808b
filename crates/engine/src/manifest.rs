//! The description of a worker, for the engine.

use runtime::Schema;
use serde_json::{Value as Json, json};

/// Newest version of the description that we write.
const VERSIONS: [u32; 3] = [4, 3, 2];

/// Name of the handler that runs a program.
pub(crate) const RUN: &str = "run";

/// Name of the handler that takes the answer to a question.
pub(crate) const ANSWER: &str = "answer";

/// A workflow, as the engine is told of it.
pub(crate) struct Workflow<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: Option<&'a core_ir::Type>,
}

/// The media type of a description that an `Accept` header admits, and its version.
pub(crate) fn accepted(accept: &str) -> Option<(String, u32)> {
    let media = |version: u32| format!("application/vnd.restate.endpointmanifest.v{version}+json");
    VERSIONS.into_iter().map(|v| (media(v), v)).find(|(media, _)| accept.contains(media.as_str()))
}

/// The description of a worker.
pub(crate) fn manifest(workflows: &[Workflow<'_>], version: u32) -> Json {
    let services: Vec<Json> = workflows.iter().map(|w| service(w, version)).collect();
    json!({
        "protocolMode": "BIDI_STREAM", "minProtocolVersion": 5, "maxProtocolVersion": 8, "services": services,
    })
}

fn service(workflow: &Workflow<'_>, version: u32) -> Json {
    let schema = workflow.input.and_then(Schema::of).map(|s| s.json);
    let mut input = json!({"required": workflow.input.is_some(), "contentType": "application/json"});
    if let Some(schema) = schema {
        input["jsonSchema"] = schema;
    }
    let output = json!({"contentType": "application/json", "setContentTypeIfEmpty": false});
    let mut run = json!({"name": RUN, "ty": "WORKFLOW", "input": input, "output": output});
    let answer = json!({
        "name": ANSWER, "ty": "SHARED", "input": {"required": true, "contentType": "application/json"},
        "output": output,
    });
    if version >= 3 {
        // A model or a tool may take its time, and meanwhile timers and answers of others have to arrive. An
        // attempt that only waits ends by itself.
        const DAY: u64 = 24 * 3600 * 1000;
        run["inactivityTimeout"] = DAY.into();
        run["abortTimeout"] = DAY.into();
    }
    if version >= 4 {
        // A run whose workers are away for long waits for them.
        run["retryPolicyInitialInterval"] = 100.into();
        run["retryPolicyMaxInterval"] = 5_000.into();
        run["retryPolicyMaxAttempts"] = 1_000_000.into();
        run["retryPolicyOnMaxAttempts"] = "PAUSE".into();
    }
    json!({"name": workflow.name, "ty": "WORKFLOW", "handlers": [run, answer]})
}
