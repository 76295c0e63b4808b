//! Names of the calls by which programs ask models.
//!
//! Entry point: [`is_asking`].
//!
//! Invariant: a call whose receiver is not known counts if its name is one by which frameworks and clients
//! ask models.
//! Invariant: packages outside the project that are no clients or frameworks of models do not ask.

use python::Object;

/// Methods that ask a model, whatever they are called on.
pub const ALWAYS: &[&str] = &[
    "a_generate_reply",
    "a_initiate_chat",
    "acompletion",
    "agenerate",
    "ainvoke",
    "akickoff",
    "apredict",
    "astream_events",
    "chat_completion",
    "create_stream",
    "generate_content",
    "generate_content_async",
    "generate_reply",
    "initiate_chat",
    "initiate_chats",
    "invoke",
    "kickoff",
    "kickoff_async",
    "kickoff_for_each",
    "kickoff_for_each_async",
    "run_live",
    "run_stream",
    "run_streamed",
    "run_sync",
];
/// Methods that ask a model unless they are called on something that is known to be no model.
pub const LIKELY: &[&str] = &[
    "abatch",
    "acall",
    "acomplete",
    "arun",
    "ask",
    "astream",
    "batch",
    "call",
    "chat",
    "complete",
    "completion",
    "generate",
    "predict",
    "run",
    "run_async",
    "stream",
];
/// Methods that ask a model if they are called on a client or a framework.
pub const OF_MODELS: &[&str] = &[
    "acreate",
    "apply",
    "aquery",
    "astep",
    "create",
    "forward",
    "on_messages",
    "parse",
    "query",
    "step",
    "summarize",
];
/// Ends of the paths of clients.
pub const PATHS: &[&str] = &[
    "ChatCompletion.acreate",
    "ChatCompletion.create",
    "Completion.acreate",
    "Completion.create",
    "completions.create",
    "completions.parse",
    "completions.stream",
    "messages.create",
    "messages.stream",
    "responses.create",
    "responses.parse",
    "responses.stream",
];
/// Packages of clients and frameworks.
pub const PACKAGES: &[&str] = &[
    "ag2",
    "agent_framework",
    "agents",
    "agno",
    "anthropic",
    "autogen",
    "browser_use",
    "claude_agent_sdk",
    "claude_code_sdk",
    "cohere",
    "crewai",
    "deepagents",
    "dspy",
    "google.adk",
    "google.genai",
    "google.generativeai",
    "groq",
    "haystack",
    "huggingface_hub",
    "instructor",
    "langchain",
    "langgraph",
    "litellm",
    "llama_index",
    "mistralai",
    "ollama",
    "openai",
    "pydantic_ai",
    "semantic_kernel",
    "smolagents",
    "strands",
    "together",
    "transformers",
    "vertexai",
];

/// Hosts of services that are models.
pub(crate) const HOSTS: &[&str] = &[
    "api.anthropic.com",
    "api.cohere.com",
    "api.deepseek.com",
    "api.groq.com",
    "api.mistral.ai",
    "api.openai.com",
    "api.together.xyz",
    "api.x.ai",
    "generativelanguage.googleapis.com",
    "openrouter.ai",
];
/// Ends of the paths at which services and local servers answer.
pub(crate) const ENDPOINTS: &[&str] =
    &["/api/chat", "/api/generate", "/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"];
/// Programs that ask a model.
pub(crate) const PROGRAMS: &[&str] = &[
    "aider",
    "amp",
    "claude",
    "codex",
    "copilot",
    "cursor-agent",
    "gemini",
    "goose",
    "llm",
    "ollama",
    "opencode",
];

/// Returns true if a module has the address of a model in its text, or starts a program that asks one.
pub fn mentions_model(source: &python::Source) -> bool {
    let text = &source.text;
    let is_named =
        |program: &&str| [format!("\"{program}\""), format!("'{program}'")].iter().any(|n| text.contains(n));
    HOSTS.iter().chain(ENDPOINTS).any(|t| text.contains(t))
        || text.contains("subprocess") && PROGRAMS.iter().any(is_named)
}

/// Returns whether a call of something outside the project asks a model.
pub fn is_asking(object: &Object) -> bool {
    let short = object.short();
    let known = of_models(&object.callee);
    object.class.is_none()
        && (known || !is_qualified(&object.callee))
        && (ALWAYS.contains(&short)
            || LIKELY.contains(&short)
            || known && OF_MODELS.contains(&short) && is_request(&object.callee))
}

/// Returns whether a method of a client asks a model: `client.embeddings.create` does not.
fn is_request(callee: &str) -> bool {
    let client =
        ["openai.", "anthropic.", "groq.", "together.", "litellm."].iter().any(|c| callee.starts_with(c));
    !client || PATHS.iter().any(|path| callee.ends_with(path))
}

/// Returns whether a qualified name belongs to a client or a framework.
pub fn of_models(name: &str) -> bool {
    PACKAGES
        .iter()
        .any(|p| name.strip_prefix(p).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_'])))
}

/// Returns whether a name is qualified, that is, tells which package something belongs to.
pub fn is_qualified(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
