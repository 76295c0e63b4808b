//! rig: one agent that all runs share, with its own transport behind the scripted wire that its examples use.

use crate::{ANSWER, Plan, Run, Runs};
use rig_agent::AgentBuilder;
use rig_agent::tool::{Tool, ToolContext};
use rig_core::completion::{CompletionRequest, CompletionResponse, Usage};
use rig_core::driver::{Exchange, Model, Opened, Opening, Transport};
use rig_core::message::{AssistantContent, Message, Origin, ToolCall, ToolFunction, ToolName, UserContent};
use rig_core::test_utils::{MockFrame, MockScript};
use std::convert::Infallible;
use std::sync::Arc;

#[derive(Clone)]
struct Fake(Arc<Plan>);

fn is_result(message: &Message) -> bool {
    matches!(message, Message::User { content } if content.iter().any(|c| matches!(c, UserContent::ToolResult(_))))
}

impl Transport<MockScript> for Fake {
    fn send(&self, request: CompletionRequest, _: Exchange) -> Opening<MockFrame> {
        let plan = self.0.clone();
        let done = request.chat_history.iter().filter(|m| is_result(m)).count();
        Opening::new(async move {
            let answer = if plan.is_call(done) {
                let call = ToolFunction::new(ToolName::new("look").unwrap(), serde_json::json!({"q": "it"}));
                AssistantContent::ToolCall(ToolCall::from_wire(format!("c{done}"), call))
            } else {
                plan.before_answer().await;
                AssistantContent::text(ANSWER)
            };
            let origin = Origin::new("fake.api", "fake", "");
            let answer = CompletionResponse::new(vec![answer], Usage::new(), origin, serde_json::Value::Null);
            Ok(Opened::new(futures::stream::iter([Ok(MockFrame::Response(Box::new(answer)))])))
        })
    }
}

#[derive(serde::Deserialize)]
struct Args {
    q: String,
}

#[derive(Clone)]
struct Look;

impl Tool for Look {
    const NAME: &'static str = "look";
    type Args = Args;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Looks it up.".into()
    }

    fn parameters(&self) -> serde_json::Value {
        serde_json::json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})
    }

    async fn call(&self, _: &mut ToolContext, args: Args) -> Result<String, Infallible> {
        Ok(args.q)
    }
}

pub fn make(plan: Arc<Plan>) -> Runs {
    let model = Model::new(MockScript::new("fake"), Fake(plan));
    let agent = AgentBuilder::new(model).preamble("You look things up.").tool(Look).build();
    Box::new(move || -> Run {
        let run = agent.prompt("find it").max_turns(50);
        Box::pin(async move { run.await.unwrap().to_string() })
    })
}
