//! `examples/triage.agent` in a program of one's own: types of Rust in and out, a model of one's own, and
//! what it may cost.
//!
//!     cargo run -p entail --example triage

use entail::{Answer, JsonSchema, ModelCall, Price, Program, Progress, Provider, Reply, Tokens, Work, World};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize, JsonSchema)]
struct Ticket {
    ticket: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Category {
    Billing,
    Technical,
    Account,
    Other,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Sorted {
    category: Category,
    urgency: f64,
    route: String,
}

/// A model that looks for words.
struct Words;

impl Provider for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::FREE)
    }

    fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<Answer> {
        let category = if call.last_text().contains("charged") { "billing" } else { "other" };
        let text = format!(r#"{{"category": "{category}", "urgency": 3, "summary": "{category}"}}"#);
        Work::Now(Answer::new(Ok(Reply::Text(text)), Tokens::default()))
    }
}

#[tokio::main(flavor = "current_thread")]
#[allow(clippy::print_stdout, reason = "an example")]
async fn main() -> Result<(), entail::Error> {
    let program = Program::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/triage.agent"))?;
    let triage = program.main()?.typed::<Ticket, Sorted>()?;
    println!("at most {:?} calls of models", triage.pipeline().bound().model_calls.most);

    let world = World::new(Arc::new(Words));
    triage.pipeline().check_world(&world)?;
    let sorted = triage.run(&Ticket { ticket: "I was charged twice.".into() }, &world).await?;
    println!("{:?}, urgency {}: {}", sorted.category, sorted.urgency, sorted.route);
    Ok(())
}
