//! autoagents: an agent for each run, as one has a memory of its own.

use crate::{ANSWER, Plan, Run, Runs};
use async_trait::async_trait;
use autoagents::core::agent::memory::SlidingWindowMemory;
use autoagents::core::agent::prebuilt::executor::ReActAgent;
use autoagents::core::agent::task::Task;
use autoagents::core::agent::{AgentBuilder, AgentDeriveT, AgentHooks, DirectAgent};
use autoagents::core::tool::{ToolCallError, ToolRuntime, ToolT};
use autoagents::llm::chat::{
    ChatMessage, ChatProvider, ChatResponse, ChatRole, StructuredOutputFormat, Tool,
};
use autoagents::llm::completion::{CompletionProvider, CompletionRequest, CompletionResponse};
use autoagents::llm::embedding::EmbeddingProvider;
use autoagents::llm::error::LLMError;
use autoagents::llm::models::ModelsProvider;
use autoagents::llm::{FunctionCall, LLMProvider, ToolCall};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

struct Fake(Arc<Plan>);

#[derive(Debug)]
struct Reply {
    text: Option<String>,
    calls: Option<Vec<ToolCall>>,
}

impl ChatResponse for Reply {
    fn text(&self) -> Option<String> {
        self.text.clone()
    }

    fn tool_calls(&self) -> Option<Vec<ToolCall>> {
        self.calls.clone()
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.as_deref().unwrap_or_default())
    }
}

#[async_trait]
impl ChatProvider for Fake {
    async fn chat_with_tools(
        &self,
        messages: &[ChatMessage],
        _: Option<&[Tool]>,
        _: Option<StructuredOutputFormat>,
    ) -> Result<Box<dyn ChatResponse>, LLMError> {
        let done = messages.iter().filter(|m| m.role == ChatRole::Tool).count();
        if self.0.is_call(done) {
            let function = FunctionCall { name: "look".into(), arguments: r#"{"q": "it"}"#.into() };
            let call = ToolCall { id: format!("c{done}"), call_type: "function".into(), function };
            return Ok(Box::new(Reply { text: None, calls: Some(vec![call]) }));
        }
        self.0.before_answer().await;
        Ok(Box::new(Reply { text: Some(ANSWER.into()), calls: None }))
    }
}

#[async_trait]
impl CompletionProvider for Fake {
    async fn complete(
        &self,
        _: &CompletionRequest,
        _: Option<StructuredOutputFormat>,
    ) -> Result<CompletionResponse, LLMError> {
        unimplemented!("only chats are measured")
    }
}

#[async_trait]
impl EmbeddingProvider for Fake {
    async fn embed(&self, _: Vec<String>) -> Result<Vec<Vec<f32>>, LLMError> {
        unimplemented!("only chats are measured")
    }
}

impl ModelsProvider for Fake {}
impl LLMProvider for Fake {}

#[derive(Debug, Clone)]
struct Look;

#[async_trait]
impl ToolRuntime for Look {
    async fn execute(&self, args: Value) -> Result<Value, ToolCallError> {
        Ok(args["q"].clone())
    }
}

impl ToolT for Look {
    fn name(&self) -> &str {
        "look"
    }

    fn description(&self) -> &str {
        "Looks it up."
    }

    fn args_schema(&self) -> Value {
        json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})
    }
}

#[derive(Debug, Clone)]
struct Seeker;

impl AgentDeriveT for Seeker {
    type Output = String;

    fn description(&self) -> &str {
        "You look things up."
    }

    fn output_schema(&self) -> Option<Value> {
        None
    }

    fn name(&self) -> &str {
        "seeker"
    }

    fn tools(&self) -> Vec<Box<dyn ToolT>> {
        vec![Box::new(Look)]
    }
}

impl AgentHooks for Seeker {}

pub fn make(plan: Arc<Plan>) -> Runs {
    let model: Arc<dyn LLMProvider> = Arc::new(Fake(plan));
    Box::new(move || -> Run {
        let model = model.clone();
        Box::pin(async move {
            let agent = ReActAgent::with_max_turns(Seeker, 50);
            let agent = AgentBuilder::<_, DirectAgent>::new(agent)
                .llm(model)
                // Room for all of a run.
                .memory(Box::new(SlidingWindowMemory::new(64)))
                .build()
                .await
                .unwrap();
            agent.agent.run(Task::new("find it")).await.unwrap()
        })
    })
}
