//! The default model itself. Without it in the store these tests say so and
//! pass; `cargo run -p localmodel --example chat -- --pull` fetches it.

use localmodel::{Finish, LocalModel, Message, Reply, Request, store::Store};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::{LazyLock, Mutex, MutexGuard};

static MODEL: LazyLock<Option<Mutex<LocalModel>>> =
    LazyLock::new(|| match Store::from_env().and_then(|store| store.default_model()) {
        Ok(path) => Some(Mutex::new(LocalModel::load(&path).unwrap())),
        Err(error) => {
            eprintln!("SKIPPED: the tests with real weights: {error}");
            None
        }
    });

fn model() -> Option<MutexGuard<'static, LocalModel>> {
    Some(MODEL.as_ref()?.lock().unwrap())
}

fn ask(model: &mut LocalModel, request: &Request) -> Reply {
    model.generate(request, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn it_knows_capitals() {
    let Some(mut model) = model() else { return };
    let places = [
        ("France", "Paris"),
        ("Japan", "Tokyo"),
        ("Germany", "Berlin"),
        ("Egypt", "Cairo"),
        ("Kenya", "Nairobi"),
    ];
    for (country, capital) in places {
        let question = format!("What is the capital of {country}?");
        let mut request = Request::new(vec![Message::user(question)]);
        request.max_tokens = 30;
        let reply = ask(&mut model, &request);
        // Where other engines round activations to a byte, "The" loses to "L'".
        assert_eq!(reply.text, format!("The capital of {country} is {capital}."));
        assert_eq!(reply.finish, Finish::Stop);
    }
}

#[test]
fn text_is_split_as_in_training() {
    let Some(model) = model() else { return };
    // Counted with the tokenizer that the model's authors publish.
    for (text, count) in [
        ("", 0),
        ("Hello world", 2),
        ("1234", 4),
        (" 12", 3),
        ("<|im_end|>", 7),
        ("naïve  café\n\n日本", 9),
        ("it's  we'll\t x_y  ", 10),
        ("½ Ⅷ २३ 12", 13),
        ("a\u{a0}b\u{3000}c \n d", 8),
        ("🙂🙃 'S 's ''", 10),
        ("def f(x):\n    return x\n\n\n", 9),
        ("e\u{301} 'RE're", 6),
    ] {
        assert_eq!(model.count_tokens(text), count, "{text:?}");
    }
}

#[test]
fn objects_follow_their_schema() {
    let Some(mut model) = model() else { return };
    let schema = json!({
        "type": "object",
        "properties": {
            "category": {"enum": ["billing", "bug", "question"]},
            "urgency": {"type": "integer", "minimum": 1, "maximum": 5},
            "refund": {"type": "boolean"},
            "summary": {"type": "string"},
        },
        "required": ["category", "urgency", "refund", "summary"],
    });
    let mut request = Request::new(vec![
        Message::system("You sort support tickets."),
        Message::user("I was charged twice, please refund the second payment."),
    ]);
    request.schema = Some(schema);
    let whole = ask(&mut model, &request);
    for max_tokens in [1, 5, 10, 15, 20, 200] {
        request.max_tokens = max_tokens;
        let reply = ask(&mut model, &request);
        let value: Value = serde_json::from_str(&reply.text).unwrap();
        let names = ["billing", "bug", "question"];
        assert!(names.contains(&value["category"].as_str().unwrap()), "{value}");
        assert!((1..=5).contains(&value["urgency"].as_i64().unwrap()), "{value}");
        assert!(value["refund"].is_boolean() && value["summary"].is_string(), "{value}");
        assert_eq!(value.as_object().unwrap().len(), 4, "{value}");
        // The prompt is the same each time.
        assert_eq!(reply.cached_tokens, reply.input_tokens - 1);
    }
    assert_eq!(ask(&mut model, &request).text, whole.text);
}

#[test]
fn labels_are_chosen_better_than_by_chance() {
    let Some(mut model) = model() else { return };
    let texts = [
        ("The striker scored twice in the final.", "sports"),
        ("She won the tennis tournament.", "sports"),
        ("Parliament passed the new law yesterday.", "politics"),
        ("Voters go to the polls on Sunday.", "politics"),
        ("Astronomers discovered a new planet.", "science"),
        ("Researchers sequenced the genome of the mouse.", "science"),
        ("Bake the cake for forty minutes.", "food"),
        ("This soup needs more salt and pepper.", "food"),
    ];
    let right = texts.iter().filter(|(text, topic)| {
        let mut request = Request::new(vec![
            Message::system("Decide the topic of the text: sports, politics, science or food."),
            Message::user(*text),
        ]);
        request.schema = Some(json!({"enum": ["sports", "politics", "science", "food"]}));
        ask(&mut model, &request).text == format!("\"{topic}\"")
    });
    // Chance is two of eight.
    assert!(right.count() >= 5);
}

#[test]
fn strings_are_quoted_for_json() {
    let Some(mut model) = model() else { return };
    let mut request = Request::new(vec![Message::user("What is the capital of France?")]);
    request.schema = Some(json!({"type": "string", "maxLength": 14}));
    let reply = ask(&mut model, &request);
    assert_eq!(reply.text, "\"The capital of\"");
}

/// One of each category, with the descriptions of `examples/triage.agent`.
#[test]
fn tickets_are_sorted_by_the_channel() {
    let Some(mut model) = model() else { return };
    let schema = json!({
        "enum": ["billing", "technical", "account", "other"],
        "enumDescriptions": [
            "charges, invoices, refunds and payments",
            "something that does not work, an error or a crash",
            "signing in, passwords, profiles and permissions of users",
            "anything else, such as praise, jobs, opening hours or products",
        ],
        "title": "Category",
    });
    for (ticket, category) in [
        ("I was charged twice for March, please refund me.", "billing"),
        ("The app crashes every time I open the settings page.", "technical"),
        ("How do I change my display name?", "account"),
        ("Do you have any job openings for designers?", "other"),
    ] {
        let mut request = Request::new(vec![
            Message::system("You sort the tickets of a support desk."),
            Message::user(format!("Read the ticket and give its category.\n\nTicket: {ticket}")),
        ]);
        request.schema = Some(schema.clone());
        assert_eq!(ask(&mut model, &request).text, format!("\"{category}\""), "{ticket}");
    }
}
