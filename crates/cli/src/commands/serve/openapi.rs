//! The description of a server in the OpenAPI format.

use super::super::service::{Pipeline, Service, input_schema};
use serde_json::{Map, Value, json};

/// A pipeline with its input and what a run of it may use at most.
pub(super) fn pipeline_json(p: &Pipeline) -> Value {
    json!({
        "name": p.name, "input": input_schema(p.input.as_ref()),
        "bound": {"modelCalls": p.bound.model_calls.most, "toolCalls": p.bound.tool_calls.most},
    })
}

/// OpenAPI 3.1.
pub(super) fn description(service: &Service) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let answer = |what: &str, schema: Value| json!({"description": what, "content": {"application/json": {"schema": schema}}});
    let failures = |codes: &[(&str, &str)]| -> Map<String, Value> {
        codes.iter().map(|(code, what)| (code.to_string(), answer(what, reference("Failure")))).collect()
    };
    let run_parameter =
        json!([{"name": "run", "in": "path", "required": true, "schema": {"type": "string"}}]);
    let mut paths = Map::new();
    for p in service.pipelines() {
        let mut responses = failures(&[
            ("401", "the token is missing or wrong"),
            ("403", "the caller has not the role `start`, or the outcome is withheld"),
            ("413", "the body is too large"),
            ("415", "the body is not JSON"),
            ("429", "as many runs as may be are under way, or a limit of the caller is reached"),
        ]);
        let events = json!({"description": "the result, or the run as it happens", "content": {
            "application/json": {"schema": reference("Outcome")},
            "text/event-stream": {"schema": {"type": "string", "description": "events `run`, `asked`, `text`, `retry`, `answered`, `waiting`, `skipped` (the client was too slow for so many), and at the end `result` or `error`; data is JSON"}},
        }});
        responses.insert("200".into(), events);
        responses
            .insert("202".into(), answer("the run has begun (`Prefer: respond-async`)", reference("Status")));
        for (code, what) in [
            ("422", "the input is wrong, the program failed, or the key was used for another request"),
            ("502", "a model or a tool failed"),
            ("503", "a limit was reached, or the run was cancelled"),
        ] {
            responses.insert(
                code.into(),
                answer(what, json!({"anyOf": [reference("Failure"), reference("Outcome")]})),
            );
        }
        let operation = json!({
            "operationId": format!("run_{}", p.name),
            "summary": format!("runs `{}`", p.name),
            "parameters": [{"name": "Idempotency-Key", "in": "header", "required": false, "schema": {"type": "string", "maxLength": 255}, "description": "under which the same request begins no second run"}],
            "requestBody": {"required": true, "content": {"application/json": {"schema": input_schema(p.input.as_ref())}}},
            "responses": responses,
        });
        paths.insert(format!("/v1/pipelines/{}/runs", p.name), json!({ "post": operation }));
    }
    let get = |what: &str, schema: Value| json!({"get": {"summary": what, "responses": {"200": answer(what, schema)}}});
    paths.insert(
        "/v1/pipelines".into(),
        get("the pipelines", json!({"type": "array", "items": {"type": "object"}})),
    );
    let mut runs = get("how a run stands", reference("Status"));
    runs["parameters"] = run_parameter.clone();
    runs["delete"] = json!({"summary": "cancels a run", "responses": {"200": answer("how it stands", reference("Status"))}});
    paths.insert("/v1/runs/{run}".into(), runs);
    let mut all = get(
        "the newest runs, without their outcomes",
        json!({"type": "array", "items": reference("Status")}),
    );
    all["get"]["parameters"] = json!([{"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 1000, "default": 50}}]);
    paths.insert("/v1/runs".into(), all);
    paths.insert("/v1/runs/{run}/resume".into(), json!({
        "parameters": run_parameter,
        "post": {"summary": "goes on with a run of the journal that was interrupted, or stopped by a limit", "requestBody": {"required": false, "content": {"application/json": {"schema": {
            "type": "object", "additionalProperties": false, "properties": {"unfinished": {"enum": ["ask", "retry", "fail"], "default": "ask", "description": "what becomes of a call that was under way and may have changed the world"}},
        }}}}, "responses": {
            "202": answer("it goes on", reference("Status")), "404": answer("there is no such run", reference("Failure")),
            "409": answer("it is under way, has ended, or its program has changed", reference("Failure")),
            "429": answer("as many runs as may be are under way", reference("Failure")),
        }},
    }));
    paths.insert(
        "/v1/approvals".into(),
        get(
            "what waits for approval and the caller may decide",
            json!({"type": "array", "items": reference("Approval")}),
        ),
    );
    paths.insert("/v1/approvals/{request}".into(), json!({
        "parameters": [{"name": "request", "in": "path", "required": true, "schema": {"type": "string"}}],
        "post": {
            "summary": "answers a question, once",
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "required": ["decision"], "additionalProperties": false,
                "properties": {"decision": {"enum": ["approve", "deny"]}, "reason": {"type": "string"}},
            }}}},
            "responses": {"200": answer("what was decided", reference("Decided")), "404": answer("there is no such question", reference("Failure")), "409": answer("it does not wait", reference("Failure"))},
        },
    }));
    let mut health = get("whether the server is up", json!({"type": "object"}));
    health["get"]["security"] = json!([]);
    paths.insert("/health".into(), health);
    let text = json!({"type": "string"});
    let schemas = json!({
        "Failure": {"type": "object", "required": ["error"], "properties": {"error": {"type": "object", "required": ["code", "message"], "properties": {"code": text, "message": text}}}},
        "Outcome": {"type": "object", "description": "with the error `withheld`, `run` and `error` only", "required": ["run"], "properties": {
            "run": text, "result": {}, "label": {}, "error": {"type": "object"}, "usage": {"type": "object"}, "bound": {"type": "object"}, "ms": {"type": "integer"},
        }},
        "Status": {"type": "object", "required": ["run", "status"], "properties": {
            "run": text, "pipeline": text, "status": {"enum": ["running", "waiting", "done", "failed", "interrupted", "withheld"]}, "outcome": reference("Outcome"), "waiting": {"type": "array", "items": reference("Approval")},
        }},
        "Decided": {"type": "object", "required": ["request", "run", "verdict", "resumed"], "properties": {
            "request": text, "run": text, "verdict": {"enum": ["approved", "denied"]}, "resumed": {"type": "boolean", "description": "whether the run, which a server that is gone had left, goes on now"},
        }},
        "Approval": {"type": "object", "required": ["run", "request", "tool", "args", "asked", "expires"], "properties": {
            "run": text, "request": text, "tool": text, "args": {"type": "array"}, "asked": {"type": "integer"}, "expires": {"type": "integer"},
        }},
    });
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Entail", "version": env!("CARGO_PKG_VERSION")},
        "servers": [{"url": service.base()}],
        "security": if service.callers().wants_credential() { json!([{"bearer": []}]) } else { json!([]) },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    })
}
