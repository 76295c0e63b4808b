//! The local model, on tiny models with random weights: whatever they want to say, a reply is of its type.
#![cfg(feature = "local")]

#[allow(dead_code)]
#[path = "../../../localmodel/tests/it/synthetic/mod.rs"]
mod synthetic;

use crate::support::program::{ask as llm, caught, decl, machine};
use core_ir::{Comparison, Data, EffectClass, EnumType, Measure, ModelParams, Num, Pred, Role, Type};
use machine::{Message, Reply};
use runtime::{
    Answer, CancellationToken, Environment, Event, Handlers, Limits, Local, ModelCall, ModelEntry,
    ModelSettings, Models, Progress, Provider, Work,
};
use std::path::PathBuf;
use std::sync::Arc;
use synthetic::{Model, Scratch};

fn call(params: Option<ModelParams>) -> ModelCall {
    ModelCall {
        messages: vec![Message { role: Role::User, content: "hello".into(), call: None }].into(),
        params: params.map(Arc::new),
        tools: Vec::new(),
        max_output: None,
        attempt: 0,
        place: Arc::default(),
        said: Arc::default(),
    }
}

fn typed(ty: Type) -> Option<ModelParams> {
    Some(ModelParams { result: Some(ty), max_tokens: Some(40), ..ModelParams::default() })
}

async fn ask(model: &Arc<Local>, call: ModelCall) -> Answer {
    match model.clone().ask(call, Progress::none()) {
        Work::Now(answer) => answer,
        Work::Later(answer) => answer.await,
    }
}

fn model(name: &str, seed: u64) -> (Arc<Local>, Scratch) {
    let dir = Scratch::new(&format!("runtime-{name}-{seed}"));
    let path = Model::new(seed).write(&dir.0, "m.gguf");
    (Arc::new(Local::new(path)), dir)
}

fn category() -> Type {
    Type::Enum(Arc::new(EnumType::new("C", vec!["bug".into(), "billing".into(), "other".into()])))
}

#[tokio::test]
async fn a_typed_reply_is_of_its_type() {
    let short = Pred::Compare(Measure::Length, Comparison::Le, Num::from(5));
    let types = [
        category(),
        Type::Bool,
        Type::Dyn,
        Type::Num,
        Type::option(category()),
        Type::list(Type::Bool),
        Type::record([
            ("c".into(), category()),
            ("n".into(), Type::Num),
            ("s".into(), Type::option(Type::Str)),
        ]),
        Type::Variant([("done".into(), Type::Null), ("next".into(), Type::Num)].into()),
        Type::Pair(Arc::new((Type::Bool, Type::Bool))),
        Type::Pair(Arc::new((Type::Bool, category()))),
        Type::Refined(Arc::new((Type::Str, short))),
    ];
    for seed in 0..3 {
        let (model, _dir) = model("typed", seed);
        for ty in &types {
            let answer = ask(&model, call(typed(ty.clone()))).await;
            let Ok(Reply::Text(text)) = answer.result else { panic!("{ty}: {answer:?}") };
            let data = match ty {
                Type::Refined(_) => Data::str(text.as_str()),
                _ => ty.read(&serde_json::from_str(&text).unwrap()).unwrap(),
            };
            assert_eq!(ty.check(&data), Ok(()), "{text}");
            assert!(answer.tokens.input > 0 && answer.tokens.output > 0);
        }
    }
}

#[tokio::test]
async fn a_reply_received_as_code_is_a_literal() {
    for seed in 0..3 {
        let (model, _dir) = model("code", seed);
        let mut c = call(None);
        c.max_output = Some(30);
        let Ok(Reply::Text(text)) = ask(&model, c).await.result else { panic!("a text") };
        let literal: String = serde_json::from_str(&text).unwrap();
        assert!(!literal.contains(['{', '}', '\\']), "{text}");
    }
}

#[tokio::test]
async fn tools_that_change_the_world_are_not_offered() {
    let tool = |name: &str, effect| core_ir::ToolDecl {
        effect,
        ..decl(name, &[("q", category())], Type::Str, None)
    };
    for seed in 0..8 {
        let (model, _dir) = model("tools", seed);
        let mut c = call(typed(Type::Num));
        c.tools = vec![tool("read", EffectClass::Read).into(), tool("write", EffectClass::Write).into()];
        match ask(&model, c).await.result.unwrap() {
            Reply::ToolCall { name, args } => {
                assert_eq!(&*name, "read");
                assert_eq!(category().check(args.field("q").unwrap()), Ok(()));
            }
            Reply::Text(text) => {
                assert!(text.parse::<Num>().is_ok(), "{text}");
            }
            Reply::ToolCalls(calls) => panic!("{calls:?}"),
        }
        // With nothing left to offer, it answers.
        let mut c = call(typed(Type::Bool));
        c.tools = vec![tool("write", EffectClass::Write).into()];
        assert!(matches!(ask(&model, c).await.result, Ok(Reply::Text(t)) if t == "true" || t == "false"));
    }
}

#[tokio::test]
async fn a_question_that_is_dropped_does_not_keep_the_next_one_waiting() {
    let (model, _dir) = model("drop", 1);
    let mut c = call(Some(ModelParams { max_tokens: Some(1 << 20), ..ModelParams::default() }));
    c.messages = vec![Message { role: Role::User, content: "x".into(), call: None }].into();
    let Work::Later(long) = model.clone().ask(c, Progress::none()) else { panic!("takes time") };
    let task = tokio::spawn(long);
    tokio::task::yield_now().await;
    task.abort();
    let answer = ask(&model, call(typed(Type::Bool))).await;
    assert!(answer.result.is_ok());
}

fn settings(file: PathBuf) -> ModelSettings {
    let entry = ModelEntry { provider: Some("local".into()), file: Some(file), ..ModelEntry::default() };
    let mut s = ModelSettings { model: Some("tiny".into()), ..ModelSettings::default() };
    s.file.models.insert("tiny".into(), entry);
    s
}

#[tokio::test]
async fn a_run_on_the_local_model_is_counted_and_costs_nothing() {
    let dir = Scratch::new("runtime-run");
    let path = Model::new(3).write(&dir.0, "m.gguf");
    let handlers = Handlers::new(Models::new(settings(path), Environment::default()).unwrap());
    let m = machine(|b| llm(b, "hi", typed(Type::list(category())).unwrap()));
    let mut grown = 0;
    let report = runtime::run(m, &handlers, &Limits::default(), &CancellationToken::new(), &mut |e| {
        if let Event::Growing { output_tokens, .. } = e {
            grown = output_tokens;
        }
    })
    .await;
    let data = report.result.unwrap().data().unwrap();
    assert_eq!(Type::list(category()).check(&data), Ok(()));
    assert_eq!((report.usage.model_calls, report.usage.usd), (1, Some(Num::ZERO)));
    assert!(report.usage.output_tokens > 0 && grown > 0);
}

#[tokio::test]
async fn a_file_that_is_no_model_is_named() {
    let dir = Scratch::new("runtime-broken");
    std::fs::create_dir_all(&dir.0).unwrap();
    let path = dir.0.join("m.gguf");
    std::fs::write(&path, "no model").unwrap();
    let handlers = Handlers::new(Models::new(settings(path), Environment::default()).unwrap());
    let m = machine(|b| {
        let e = llm(b, "hi", ModelParams::default());
        caught(b, e)
    });
    let limits = Limits::default();
    let report = runtime::run(m, &handlers, &limits, &CancellationToken::new(), &mut |_| {}).await;
    let message = report.result.unwrap().data().unwrap();
    let message = message.as_str().unwrap();
    assert!(message.contains("the local model: ") && message.contains("is not a GGUF model"), "{message}");
}

/// With the default model's real weights, where they are installed.
#[tokio::test]
async fn the_default_model_answers_by_type_and_as_a_literal() {
    let models = match Models::new(ModelSettings::default(), Environment::of_process()) {
        Ok(models) if models.resolve(None).is_ok() => models,
        _ => {
            eprintln!("SKIPPED: the default model is not installed");
            return;
        }
    };
    let handlers = Handlers::new(models);
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let question = "Classify the ticket.\n\nI was charged twice for March, please refund me.";
    let ty = Type::record([("category".into(), category()), ("urgent".into(), Type::Bool)]);
    let m = machine(|b| llm(b, question, typed(ty.clone()).unwrap()));
    let report = runtime::run(m, &handlers, &limits, &cancel, &mut |_| {}).await;
    let data = report.result.unwrap().data().unwrap();
    assert_eq!(ty.check(&data), Ok(()), "{data:?}");

    let provider = handlers.models.resolve(None).unwrap();
    let mut c = call(None);
    c.messages =
        vec![Message { role: Role::User, content: "What is the capital of France?".into(), call: None }]
            .into();
    let Work::Later(answer) = provider.ask(c, Progress::none()) else { panic!("takes time") };
    let Ok(Reply::Text(text)) = answer.await.result else { panic!("a text") };
    let literal: String = serde_json::from_str(&text).unwrap();
    assert!(!literal.is_empty() && !literal.contains(['{', '}']), "{text}");
}
