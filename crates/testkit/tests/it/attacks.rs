//! The attack gallery: each attack succeeds on the same program without labels, and is stopped with them, for
//! the reason and at the place that its description gives; and what stops it was foreseen before the run.
//!
//! The model is obedient: it does whatever an injected text tells it to do.

use analysis::flow::{Options, Sink, Verdict, analyze};
use core_ir::{Code, Data, LabelSpec, Name, Role};
use diagnostics::Sources;
use machine::{Call, CodeParser, Config, Failure, Machine, Message, Output, Reply, Response};
use serde_json::Value as Json;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program with its description.
struct Attack {
    path: PathBuf,
    about: Json,
    code: Code,
    sources: Sources,
}

fn gallery() -> Vec<Attack> {
    programs("attacks")
}

/// The programs of a folder of examples.
fn programs(folder: &str) -> Vec<Attack> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&dir)
        .expect("the gallery")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "agent" || e == "lam"))
        .collect();
    paths.sort();
    paths.into_iter().map(|p| load(&p)).collect()
}

fn load(path: &Path) -> Attack {
    let about = std::fs::read_to_string(path.with_extension("json")).expect("a description");
    let about: Json = serde_json::from_str(&about).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).expect("a program");
    let mut sources = Sources::new();
    let file = sources.add(path.file_name().unwrap().to_string_lossy().into_owned(), text.clone());
    let code = if path.extension().is_some_and(|e| e == "agent") {
        let (module, found) = agentlang::check(file, &text);
        let module = module.unwrap_or_else(|| panic!("{}: {found:?}", path.display()));
        let entry = module.default_entry().expect("an entry");
        module.lower(entry).expect("code")
    } else {
        let parsed = agentlang::calculus::compile(file, &text);
        parsed.code.unwrap_or_else(|| panic!("{}: {:?}", path.display(), parsed.diagnostics))
    };
    Attack { path: path.to_path_buf(), about, code, sources }
}

struct Generated {
    endorse: bool,
}

impl CodeParser for Generated {
    fn parse(&self, text: &str) -> Result<Arc<Code>, String> {
        let options = syntax::lam::Options { endorse: self.endorse, ..syntax::lam::Options::GENERATED };
        agentlang::calculus::parse_generated_with(text, options)
    }
}

/// The attacks that must be there, by a part of their titles.
const NAMED: [&str; 13] = [
    "inside a document",
    "in the output of a tool",
    "in the address of a page",
    "to another recipient",
    "encoding an argument",
    "which call is made",
    "Fenton and Denning",
    "retry loop",
    "through strings",
    "through generated code",
    "through memory",
    "through an error message",
    "through a sub-agent",
];

/// Returns the action that an injected text demands of the model: `Answer: …`, or the first `Call tool {…}`
/// that it has not made since reading the text. In arguments, `$ALL` expands to all results of tools.
fn injected(messages: &[Message], offered: &[String]) -> Option<Reply> {
    const MARK: &str = "IGNORE ALL PREVIOUS INSTRUCTIONS.";
    for (at, message) in messages.iter().enumerate().filter(|(_, m)| m.role != Role::Assistant) {
        let Some((_, text)) = message.content.split_once(MARK) else { continue };
        if let Some((_, answer)) = text.split_once("Answer: ") {
            return Some(Reply::Text(answer.trim().to_string()));
        }
        for call in text.split("Call ").skip(1) {
            let (name, rest) = call.split_once(' ').expect("a tool and its arguments");
            let done = messages[at..].iter().any(|m| m.call.as_ref().is_some_and(|c| &*c.0 == name));
            if done || !offered.iter().any(|o| o == name) {
                continue;
            }
            let heard =
                messages.iter().filter(|m| m.role == Role::Tool).map(|m| m.content.replace(['"', '\\'], ""));
            let rest = rest.replace("$ALL", &heard.collect::<Vec<_>>().join(" "));
            let args: Json = serde_json::Deserializer::from_str(&rest)
                .into_iter()
                .next()
                .expect("arguments")
                .expect("JSON");
            let args = Data::from_json(&args).expect("data");
            return Some(Reply::ToolCall { name: name.into(), args });
        }
    }
    None
}

/// Observed effects of a run.
struct Run {
    result: Result<(), Failure>,
    /// Each tool call with its arguments, each question with its conversation, as texts.
    acts: Vec<(&'static str, String, String)>,
    /// Everything that a model was told.
    told: String,
}

fn run(attack: &Attack, code: Code, config: Config) -> Run {
    let about = &attack.about;
    let input = about.get("input").map(|i| Data::from_json(i).expect("data"));
    let mut honest: VecDeque<Json> = about["model"].as_array().expect("replies").iter().cloned().collect();
    let mut kept: HashMap<(Name, Name), Data> = HashMap::new();
    let mut machine = Machine::new(Arc::new(code), input, config);
    let (mut acts, mut told) = (Vec::new(), String::new());
    let result = loop {
        match machine.poll() {
            Output::Done(result) => break result,
            Output::Working => {}
            Output::Waiting => unreachable!("each request is answered at once"),
            Output::Request(id, request) => {
                let response = match &request.call {
                    Call::Model { messages, params, tools, .. } => {
                        let model =
                            params.as_ref().and_then(|p| p.model.clone()).unwrap_or_else(|| "".into());
                        let said: Vec<&str> = messages.iter().map(|m| &*m.content).collect();
                        acts.push(("model", model.to_string(), said.join("\n")));
                        told.push_str(&said.join("\n"));
                        let offered: Vec<String> = tools.iter().map(|t| t.name.to_string()).collect();
                        let messages: Vec<Message> = messages.iter().cloned().collect();
                        let reply =
                            injected(&messages, &offered).or_else(|| honest.pop_front().map(honestly));
                        Response::Model(reply.ok_or_else(|| "nothing more to say".into()))
                    }
                    Call::Tool { tool, args } => {
                        let args: Vec<String> =
                            args.iter().map(|(n, d)| format!("{n}={}", d.to_json())).collect();
                        acts.push(("tool", tool.name.to_string(), args.join(" ")));
                        let answer = &about["tools"][&*tool.name];
                        assert!(!answer.is_null(), "{}: `{}`", attack.path.display(), tool.name);
                        Response::Tool(Ok(Data::from_json(answer).expect("data")))
                    }
                    // The person knows what there is to pay.
                    Call::Approve { args, .. } => {
                        let knows = |text: &str| args.iter().any(|(_, d)| d.as_str() == Some(text));
                        let approved = about["approves"].as_str().is_some_and(knows);
                        Response::Approve(approved.then_some(()).ok_or_else(|| "not that one".into()))
                    }
                    Call::Recall { store, key } => {
                        let key = &store.keys[*key as usize].name;
                        Response::Recall(Ok(kept.get(&(store.name.clone(), key.clone())).cloned()))
                    }
                    Call::Remember { store, key, value } => {
                        let key = store.keys[*key as usize].name.clone();
                        kept.insert((store.name.clone(), key), value.clone());
                        Response::Remember(Ok(()))
                    }
                    other => panic!("{}: {other:?}", attack.path.display()),
                };
                machine.handle(id, response);
            }
        }
    };
    Run { result: result.map(|_| ()), acts, told }
}

fn honestly(reply: Json) -> Reply {
    match reply.as_str() {
        Some(text) => Reply::Text(text.into()),
        None => Reply::ToolCall {
            name: reply["tool"].as_str().expect("a tool").into(),
            args: Data::from_json(&reply["args"]).expect("data"),
        },
    }
}

/// Returns true if the run did what the attacker wanted.
fn harmed(attack: &Attack, run: &Run) -> bool {
    did(attack, run, "harm")
}

/// Returns true if the run did what the description says under a key.
fn did(attack: &Attack, run: &Run, what: &str) -> bool {
    let harm = &attack.about[what];
    let text = |key: &str| harm[key].as_str();
    let (kind, name) = match (text("tool"), text("model")) {
        (Some(tool), _) => ("tool", tool),
        (None, Some(model)) => ("model", model),
        _ => panic!("{}: no harm is described", attack.path.display()),
    };
    let contains = text("contains").expect("what the act contains");
    run.acts.iter().any(|(k, n, what)| *k == kind && n == name && what.contains(contains))
}

/// The run's configuration, and what the analysis is told of it.
fn enforced(attack: &Attack) -> (Config, Options) {
    let word = |w: &str| LabelSpec::Axes { untrusted: w.contains("untrusted"), secret: w.contains("secret") };
    let clearances: Vec<(Name, LabelSpec)> = attack.about["clearance"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(n, l)| (n.as_str().into(), word(l.as_str().expect("words"))))
        .collect();
    let config = Config {
        parser: Some(Arc::new(Generated { endorse: false })),
        clearances: clearances.clone(),
        ..Config::default()
    };
    let applied = attack.about.get("input").is_some();
    (config, Options { clearances, applied, ..Options::default() })
}

#[test]
fn attacks_succeed_without_labels() {
    for attack in gallery() {
        let config = Config {
            parser: Some(Arc::new(Generated { endorse: true })),
            generated_endorse: true,
            ..Config::default()
        };
        let run = run(&attack, testkit::erase::erased(&attack.code), config);
        assert!(harmed(&attack, &run), "{}: {:?} {:?}", attack.path.display(), run.acts, run.result);
    }
}

#[test]
fn every_attack_is_stopped_for_its_reason() {
    for attack in gallery() {
        let name = attack.path.display().to_string();
        let run = run(&attack, attack.code.clone(), enforced(&attack).0);
        assert!(!harmed(&attack, &run), "{name}: {:?}", run.acts);
        let stopped = &attack.about["stopped"];
        if let Some(told) = stopped["told"].as_str() {
            // The agent is told, and goes on.
            assert!(run.told.contains(told), "{name}: {}", run.told);
            assert!(run.result.is_ok(), "{name}: {:?}", run.result);
            continue;
        }
        let failure = run.result.expect_err(&name);
        assert_eq!(failure.code.as_str(), stopped["error"], "{name}: {failure:?}");
        assert!(failure.message.contains(stopped["says"].as_str().unwrap()), "{name}: {failure:?}");
        let place = attack.sources.place(failure.span);
        let line: u64 = place.split(':').nth(1).unwrap().parse().unwrap();
        assert_eq!(stopped["line"], line, "{name}: {place}");
    }
}

#[test]
fn every_refusal_was_foreseen() {
    for attack in gallery() {
        let name = attack.path.display().to_string();
        let report = analyze(&Arc::new(attack.code.clone()), &enforced(&attack).1);
        assert_eq!(report.gave_up, None, "{name}");
        let foreseen = &attack.about["foreseen"];
        let of = |sink: &Sink| foreseen[sink.kind()].as_str().is_some_and(|n| Some(n) == sink.name());
        let verdicts: Vec<Verdict> = report.sites.iter().filter(|s| of(&s.sink)).map(|s| s.verdict).collect();
        let expected = foreseen["verdict"].as_str().unwrap();
        assert!(verdicts.iter().any(|v| v.as_str() == expected), "{name}: {:#?}", report.sites);
    }
}

#[test]
fn patterns_do_their_work_and_at_worst_what_they_say() {
    let patterns = programs("patterns");
    assert!(patterns.len() >= 6, "{}", patterns.len());
    for mut pattern in patterns {
        let name = pattern.path.display().to_string();
        let done = run(&pattern, pattern.code.clone(), enforced(&pattern).0);
        assert!(
            done.result.is_ok() && did(&pattern, &done, "does"),
            "{name}: {:?} {:?}",
            done.acts,
            done.result
        );
        // The same with a text that tells the model what to say.
        let injected = pattern.about["injected"].clone();
        for (tool, says) in injected.as_object().expect("what tools return") {
            pattern.about["tools"][tool] = says.clone();
        }
        let done = run(&pattern, pattern.code.clone(), enforced(&pattern).0);
        assert!(
            done.result.is_ok() && did(&pattern, &done, "at_worst"),
            "{name}: {:?} {:?}",
            done.acts,
            done.result
        );
        let report = analyze(&Arc::new(pattern.code.clone()), &enforced(&pattern).1);
        // Only somebody who is asked may still refuse.
        let refused = report.sites.iter().filter(|s| s.verdict != Verdict::Always && s.asks.is_none());
        assert_eq!(refused.count(), 0, "{name}: {:#?}", report.sites);
    }
}

#[test]
fn the_gallery_is_as_large_as_it_says() {
    let gallery = gallery();
    assert!(gallery.len() >= 12, "{}", gallery.len());
    let dir = gallery[0].path.parent().unwrap();
    let page = std::fs::read_to_string(dir.join("README.md")).expect("a page about the gallery");
    for named in NAMED {
        let titled = |a: &&Attack| a.about["title"].as_str().is_some_and(|t| t.contains(named));
        assert_eq!(gallery.iter().filter(titled).count(), 1, "{named}");
    }
    for attack in &gallery {
        let file = attack.path.file_name().unwrap().to_string_lossy();
        let title = attack.about["title"].as_str().expect("a title");
        assert!(page.contains(&format!("`{file}`")) && page.contains(title), "{file}: {title}");
    }
}
