//! Clearances where the request leaves: no endpoint gets a conversation that it may not see, however its
//! model was chosen.

use crate::support::program::{AT, code};
use crate::support::{Act, Server};
use core_ir::{Data, LabelSpec, ModelParams, Name, Term};
use machine::{Config, ErrorCode, Machine, Reply};
use policy::Policy;
use proptest::prelude::*;
use runtime::{
    Answer, CancellationToken, Environment, Event, Handlers, Journal, Limits, ModelCall, ModelSettings,
    Models, Price, Progress, Provider, RunIdentity, RunReport, Scripted, Session, Tokens, Work,
};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const PUBLIC: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };

/// `llm "" {…} (label: "4711")`
fn asks(params: ModelParams, untrusted: bool, secret: bool) -> Arc<core_ir::Code> {
    code(|b| {
        let prompt = b.lit("", AT);
        let llm = b.add(Term::Llm(prompt, params.into()), AT);
        let axes = [("U", untrusted), ("S", secret)];
        let axes = axes.into_iter().filter(|a| a.1).map(|a| Data::str(a.0));
        let (label, text) = (b.lit(Data::list(axes), AT), b.lit("4711", AT));
        let text = b.add(Term::Relabel(label, text), AT);
        b.app(llm, text, AT)
    })
}

async fn run(code: Arc<core_ir::Code>, config: Config, models: Models) -> (RunReport, Vec<Event>) {
    let handlers = Handlers::new(models);
    let machine = Machine::new(code, None, config);
    let (limits, cancel, mut events) = (Limits::default(), CancellationToken::new(), Vec::new());
    let report = runtime::run(machine, &handlers, &limits, &cancel, &mut |e| events.push(e)).await;
    (report, events)
}

fn named(model: &str) -> ModelParams {
    ModelParams { model: Some(model.into()), ..ModelParams::default() }
}

fn listed(clearances: &[(&str, LabelSpec)]) -> Config {
    let clearances = clearances.iter().map(|(n, l)| (Name::from(*n), l.clone())).collect();
    Config { clearances, ..Config::default() }
}

/// Models as `entail.toml` says, with these entries at the server.
fn models(server: &Server, mut file: Json, force: Option<&str>, env: &[(&str, &str)]) -> Models {
    for (_, entry) in file["models"].as_object_mut().unwrap() {
        if entry.get("base_url").is_none() && entry.get("provider").is_none() {
            entry["base_url"] = json!(server.url);
        }
        entry["retries"] = json!(0);
    }
    let settings = ModelSettings {
        model: force.map(String::from),
        file: serde_json::from_value(file).unwrap(),
        ..ModelSettings::default()
    };
    let environment = env.iter().copied().chain([("ENTAIL_MODEL_DIR", "/nowhere")]);
    Models::new(settings, Environment::new(environment)).unwrap()
}

/// The models that the server was asked for.
fn asked(server: &Server) -> Vec<String> {
    server.seen().iter().map(|s| s.body["model"].as_str().unwrap().to_string()).collect()
}

/// A program of somebody else: its model is told a secret.
const PROGRAM: &str = r#"
    tool vault() -> String reads {}
    agent clerk { tools: [], prompt: "You file things."MODEL }
    task file(text: String) -> String by agent { prompt "file {text}" }
    pipeline main() -> String {
        let code = run vault with {};
        let filed = run file with { text: code } by clerk;
        return filed;
    }
"#;

/// Runs it under a policy by which no model but `vaulted` may see secrets. Gives the error and the models
/// that were asked.
async fn attack(
    model: &str,
    file: Json,
    force: Option<&str>,
    env: &[(&str, &str)],
) -> (Option<String>, Vec<String>) {
    let policy = "[tools.vault]\neffect = \"read\"\nresult = \"secret\"\n[models.\"*\"]\nclearance = \"untrusted\"\n\
                  [models.vaulted]\nclearance = \"any\"";
    let policy = Policy::parse(AT.file, policy).unwrap();
    let program = PROGRAM.replace("MODEL", model);
    let (module, found) = agentlang::check(AT.file, &program);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let mut code = module.lower(module.default_entry().unwrap()).unwrap();
    let said = policy.apply(&mut code);
    assert!(said.is_empty(), "{said:?}");
    let config = Config {
        clearance: policy.clearance.clone(),
        clearances: policy.clearances.clone(),
        ..Config::default()
    };
    let server = Server::start([Act::Say("filed".into())]).await;
    let vault: runtime::CustomTool = Arc::new(|_| Box::pin(async { Ok(Data::str("4711")) }));
    let mut handlers = Handlers::new(models(&server, file, force, env));
    handlers.tools = handlers.tools.with_custom("vault", vault);
    let machine = Machine::new(Arc::new(code), Some(Data::record([])), config);
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(machine, &handlers, &limits, &cancel, &mut |_| {}).await;
    let error = report.result.as_ref().err().map(|f| {
        assert_eq!(f.code, ErrorCode::Flow, "{f:?}");
        // The refusal is as secret as the conversation.
        assert_eq!(report.label, Data::list([Data::str("S")]));
        let refused = report.why.refused.as_ref().unwrap();
        assert_eq!(refused.part, machine::Part::Conversation);
        f.message.clone()
    });
    (error, asked(&server))
}

#[tokio::test]
async fn the_default_model_of_the_settings_is_refused_a_secret() {
    let file = json!({"model": "cheap", "models": {"cheap": {"model": "gpt-small"}}});
    let (error, asked) = attack("", file, None, &[]).await;
    assert_eq!(
        error.unwrap(),
        "the conversation is labeled [\"S\"], but the model `cheap` may see [\"U\"] at most"
    );
    assert!(asked.is_empty(), "{asked:?}");
    let file = json!({"models": {"cheap": {}}});
    let (error, asked) = attack("", file, None, &[("ENTAIL_MODEL", "cheap")]).await;
    assert!(error.unwrap().contains("`cheap`") && asked.is_empty());
    // The name that the endpoint knows counts as well; the default may see it.
    let file = json!({"model": ["cheap", "vaulted"], "models": {"cheap": {}, "vaulted": {"model": "own"}}});
    assert_eq!(attack("", file, None, &[]).await, (None, vec!["own".to_string()]));
}

#[tokio::test]
async fn a_fallback_is_refused_a_secret() {
    let server = Server::start([Act::Say("filed".into())]).await;
    // The first one is not there.
    let gone = json!({"base_url": "http://127.0.0.1:9/v1", "fallback": ["cheap"]});
    let models = models(&server, json!({"models": {"vaulted": gone, "cheap": {}}}), None, &[]);
    let policy = || listed(&[("vaulted", LabelSpec::TOP), ("cheap", PUBLIC)]);
    let (report, _) = run(asks(named("vaulted"), false, true), policy(), models.clone()).await;
    assert_eq!(report.result.unwrap_err().code, ErrorCode::Model);
    assert!(asked(&server).is_empty());
    let (report, _) = run(asks(named("vaulted"), true, false), policy(), models).await;
    assert!(report.result.is_ok());
    assert_eq!(asked(&server), ["cheap"]);
}

#[tokio::test]
async fn a_later_element_of_a_list_is_refused_a_secret() {
    let file = || json!({"models": {"vaulted": {"base_url": "http://127.0.0.1:9/v1"}, "cheap": {}}});
    let server = Server::start([Act::Say("filed".into())]).await;
    let mut params = named("vaulted");
    params.extra = vec![("fallback".into(), Data::list([Data::str("cheap")]))];
    let policy = [("vaulted", LabelSpec::TOP), ("cheap", PUBLIC)];
    let (report, _) =
        run(asks(params.clone(), false, true), listed(&policy), models(&server, file(), None, &[])).await;
    assert_eq!(report.result.unwrap_err().code, ErrorCode::Model);
    assert!(asked(&server).is_empty());
    // What is public goes on to it.
    let (report, _) =
        run(asks(params, true, false), listed(&policy), models(&server, file(), None, &[])).await;
    assert!(report.result.is_ok());
    assert_eq!(asked(&server), ["cheap"]);
    // The first one of a list need not be the one that may.
    let (error, asked) = attack(
        ", model: [\"cheap\", \"vaulted\"]",
        json!({"models": {"cheap": {}, "vaulted": {}}}),
        None,
        &[],
    )
    .await;
    assert_eq!((error, asked), (None, vec!["vaulted".to_string()]));
    let (error, asked) =
        attack(", model: [\"cheap\", \"other\"]", json!({"models": {"cheap": {}, "other": {}}}), None, &[])
            .await;
    let error = error.unwrap();
    assert!(
        error.contains("no model may see it: the model `cheap` may see [\"U\"] at most, the model `other`"),
        "{error}"
    );
    assert!(asked.is_empty());
}

#[tokio::test]
async fn the_model_of_the_command_line_is_refused_a_secret() {
    let file = || json!({"models": {"vaulted": {}, "cheap": {"fallback": ["vaulted"]}, "alone": {}}});
    let (error, asked) = attack(", model: \"vaulted\"", file(), Some("alone"), &[]).await;
    assert!(error.unwrap().contains("the model `alone` may see"));
    assert!(asked.is_empty());
    // Its fallback may.
    let (error, asked) = attack(", model: \"alone\"", file(), Some("cheap"), &[]).await;
    assert_eq!((error, asked), (None, vec!["vaulted".to_string()]));
}

#[tokio::test]
async fn another_name_for_a_model_gives_it_no_more() {
    let server = Server::start([Act::Say("filed".into())]).await;
    for (listed_name, file, ask) in [
        ("gpt-small", json!({"models": {"fast": {"model": "gpt-small"}}}), "fast"),
        ("openai/gpt-small", json!({"models": {"fast": {"model": "gpt-small"}}}), "fast"),
        ("gpt-small", json!({"models": {"fast": {"model": "openai/gpt-small"}}}), "fast"),
        ("gpt-small", json!({"models": {}}), "openai/gpt-small"),
    ] {
        let env = [("OPENAI_BASE_URL", &*server.url), ("OPENAI_API_KEY", "sk-planted-0zq7xw2rt9lm4kp8vb3nc")];
        let models = models(&server, file, None, &env);
        let policy = [(listed_name, PUBLIC), ("fast", LabelSpec::TOP)];
        let (report, _) = run(asks(named(ask), false, true), listed(&policy), models.clone()).await;
        assert_eq!(report.result.unwrap_err().code, ErrorCode::Flow, "{listed_name} {ask}");
        assert!(asked(&server).is_empty());
        // Without the line of the policy it may.
        let (report, _) = run(asks(named(ask), true, false), listed(&policy), models).await;
        assert!(report.result.is_ok());
        server.forget();
    }
}

/// A model of the embedding program, which remembers what it was shown.
#[derive(Default)]
struct Own(Mutex<Vec<String>>);

impl Provider for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::FREE)
    }

    fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<Answer> {
        self.0.lock().unwrap().push(call.last_text().to_string());
        Work::Now(Answer::new(Ok(Reply::Text("ok".into())), Tokens::default()))
    }
}

#[tokio::test]
async fn a_provider_of_the_library_is_known_by_its_own_name() {
    let own = Arc::new(Own::default());
    let models = || Models::only(own.clone());
    // That a program calls it by another name gives it nothing.
    let policy = Config { clearance: PUBLIC, ..listed(&[("vaulted", LabelSpec::TOP)]) };
    let (report, events) = run(asks(named("vaulted"), false, true), policy, models()).await;
    assert_eq!(report.result.unwrap_err().code, ErrorCode::Flow);
    assert!(own.0.lock().unwrap().is_empty());
    assert_eq!((report.usage.model_calls, events.len()), (0, 2));
    let policy = Config { clearance: PUBLIC, ..listed(&[("own", LabelSpec::TOP)]) };
    let (report, _) = run(asks(named("gpt"), false, true), policy, models()).await;
    assert!(report.result.is_ok());
    assert_eq!(*own.0.lock().unwrap(), ["4711"]);
}

#[tokio::test]
async fn a_script_stands_in_for_the_models_that_are_named() {
    let policy = || Config { clearance: PUBLIC, ..listed(&[("vaulted", LabelSpec::TOP)]) };
    let script = || Models::only(Arc::new(Scripted::parse(r#"["ok"]"#).unwrap()));
    let (report, _) = run(asks(named("vaulted"), false, true), policy(), script()).await;
    assert!(report.result.is_ok());
    let (report, _) = run(asks(named("gpt"), false, true), policy(), script()).await;
    assert_eq!(report.result.unwrap_err().code, ErrorCode::Flow);
    // With settings it stands in for what they would choose.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.json");
    std::fs::write(&path, r#"["ok"]"#).unwrap();
    let file = serde_json::from_value(json!({"model": "vaulted"})).unwrap();
    let settings = ModelSettings { script: Some(path), file, ..ModelSettings::default() };
    let models = Models::new(settings, Environment::default()).unwrap();
    let (report, _) = run(asks(ModelParams::default(), false, true), policy(), models).await;
    assert!(report.result.is_ok());
}

#[tokio::test]
async fn a_refusal_is_in_the_journal_and_replays() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("j.db");
    let code = asks(named("gpt"), false, true);
    let about = RunIdentity::new("p", &code, None, json!({}));
    let config = || Config { clearance: PUBLIC, ..Config::default() };
    let go = async |session: Session, models: Models, config: Config| {
        let mut handlers = Handlers::new(models);
        handlers.journal = Some(Arc::new(Mutex::new(session)));
        let machine = Machine::new(code.clone(), None, config);
        let report =
            runtime::run(machine, &handlers, &Limits::default(), &CancellationToken::new(), &mut |_| {})
                .await;
        (report.run.clone(), report.result.map(|v| v.to_string()).map_err(|f| (f.code, f.message)))
    };
    let script = || Models::only(Arc::new(Scripted::parse(r#"["ok"]"#).unwrap()));
    let session = Journal::open(&file).unwrap().begin(&about, &Default::default()).unwrap();
    let (run, first) = go(session, script(), config()).await;
    assert_eq!(first.as_ref().unwrap_err().0, ErrorCode::Flow);
    let session = Journal::existing(&file).unwrap().replay(&run).unwrap();
    assert_eq!(go(session, script(), config()).await.1, first);
}

/// A label, as two axes.
type Axes = (bool, bool);

fn may(label: Axes, clearance: Axes) -> bool {
    (!label.0 || clearance.0) && (!label.1 || clearance.1)
}

/// Settings, a policy and a call.
#[derive(Clone, Debug)]
struct Case {
    /// For each of four entries: the number in the name that its endpoint knows, its fallback, and whether it
    /// is there.
    entries: Vec<(usize, Vec<usize>, bool)>,
    default: Vec<usize>,
    env: Option<usize>,
    force: Option<usize>,
    model: Option<usize>,
    list: Vec<usize>,
    label: Axes,
    /// For names of entries, and for names of endpoints.
    clearances: Vec<Option<Axes>>,
    others: Axes,
}

const ENTRIES: usize = 4;

fn cases() -> impl Strategy<Value = Case> {
    let some = |most| prop::collection::vec(0..ENTRIES, 0..most);
    let entry = (0..ENTRIES, some(3), prop::bool::weighted(0.7));
    let axes = || any::<(bool, bool)>();
    let chosen = (some(4), prop::option::of(0..ENTRIES), prop::option::weighted(0.3, 0..ENTRIES));
    let call = (prop::option::of(0..ENTRIES), some(4), axes());
    let policy = (prop::collection::vec(prop::option::of(axes()), 2 * ENTRIES), axes());
    (prop::collection::vec(entry, ENTRIES), chosen, call, policy).prop_map(
        |(entries, (default, env, force), (model, list, label), (clearances, others))| Case {
            entries,
            // An empty list of models is an error.
            default: if default.is_empty() { vec![0] } else { default },
            env,
            force,
            model,
            list,
            label,
            clearances,
            others,
        },
    )
}

impl Case {
    /// The entries that may be asked, by the words of the documentation.
    fn chain(&self) -> Vec<usize> {
        let mut begin = match (self.force, self.model, self.env) {
            (Some(m), _, _) | (None, Some(m), _) | (None, None, Some(m)) => vec![m],
            (None, None, None) => self.default.clone(),
        };
        if self.force.is_none() {
            begin.extend(&self.list);
        }
        begin.into_iter().flat_map(|m| [vec![m], self.entries[m].1.clone()].concat()).collect()
    }

    fn cleared(&self, entry: usize) -> bool {
        let names = [self.clearances[entry], self.clearances[ENTRIES + self.entries[entry].0]];
        let listed: Vec<Axes> = names.into_iter().flatten().collect();
        if listed.is_empty() {
            may(self.label, self.others)
        } else {
            listed.iter().all(|c| may(self.label, *c))
        }
    }

    async fn check(&self) {
        let server = Server::start([Act::Say("ok".into())]).await;
        let name = |i: usize| format!("m{i}");
        let entry = |(i, (endpoint, fallback, there)): (usize, &(usize, Vec<usize>, bool))| {
            let mut entry = json!({
                "model": format!("e{endpoint}"), "fallback": fallback.iter().map(|i| name(*i)).collect::<Vec<_>>(),
            });
            let at = server.url.replace("/v1", &format!("/{i}/v1"));
            entry["base_url"] = json!(if *there { at } else { "http://127.0.0.1:9/v1".into() });
            (name(i), entry)
        };
        let entries: BTreeMap<String, Json> = self.entries.iter().enumerate().map(entry).collect();
        let default: Vec<String> = self.default.iter().map(|i| name(*i)).collect();
        let env = self.env.map(name);
        let env: Vec<(&str, &str)> = env.iter().map(|e| ("ENTAIL_MODEL", &**e)).collect();
        let force = self.force.map(name);
        let models = models(&server, json!({"model": default, "models": entries}), force.as_deref(), &env);
        let list = self.list.iter().map(|i| Data::str(name(*i)));
        let params = ModelParams {
            model: self.model.map(|i| name(i).into()),
            extra: vec![("fallback".into(), Data::list(list))],
            ..ModelParams::default()
        };
        let spec = |(untrusted, secret): Axes| LabelSpec::Axes { untrusted, secret };
        let names = (0..ENTRIES).map(name).chain((0..ENTRIES).map(|i| format!("e{i}")));
        let clearances =
            names.zip(&self.clearances).filter_map(|(n, c)| Some((n.into(), spec((*c)?)))).collect();
        let config = Config { clearance: spec(self.others), clearances, ..Config::default() };
        let (report, _) = run(asks(params, self.label.0, self.label.1), config, models).await;
        for seen in server.seen() {
            let entry: usize = seen.path.split('/').nth(1).unwrap().parse().unwrap();
            assert!(self.cleared(entry), "m{entry} was asked with {:?}", self.label);
        }
        let chain = self.chain();
        let result = report.result.map_err(|f| f.code);
        if chain.iter().any(|m| self.cleared(*m) && self.entries[*m].2) {
            assert!(result.is_ok(), "{result:?}");
            assert_eq!(server.seen().len(), 1);
        } else if chain.iter().any(|m| self.cleared(*m)) {
            assert_eq!(result.err(), Some(ErrorCode::Model));
        } else {
            assert_eq!(result.err(), Some(ErrorCode::Flow));
            assert_eq!(report.usage.model_calls, 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_endpoint_sees_more_than_its_clearance(case in cases()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(case.check());
    }
}
