//! Goose recipes: `instructions`, `prompt`, `extensions`, `sub_recipes`, `retry`.
//!
//! A recipe is one agent with its extensions as tools and its sub-recipes as helpers; `prompt` is what it is
//! asked first; `parameters` are the inputs of `{{ name }}`; `settings.max_turns` bounds the loop, and
//! `retry.max_retries` repeats the whole.
//!
//! Source: block/goose, `crates/goose/src/recipe/mod.rs`; `GOOSE_MAX_TURNS` 1000.

use crate::defaults;
use core_ir::{Name, TermId, Type};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, report_keys, value_span};
use frontend_kit::kit::{Action, Kit, Units, double, mark, setting, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, by_name, why};

/// The front end.
pub struct Goose;

const SHAPE: Shape = Shape {
    what: "a Goose recipe",
    name: &["title", "name"],
    prompt: &["instructions"],
    model: &[],
    tools: &[],
    end: None,
    bound: &[],
    also: &["prompt", "version", "extensions", "sub_recipes", "settings", "retry", "parameters", "recipe"],
    unused: &[
        ("description", why::SHOWN),
        ("author", why::SHOWN),
        ("activities", "they are suggested to the user"),
        ("context", why::NOT_YET),
        ("response", why::NOT_YET),
    ],
    split: double,
    default: |_| LoopBound::none(""),
};

impl Frontend for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn names_files(&self) -> bool {
        true
    }

    fn detect(&self, file: &File) -> u8 {
        let recipe = |r: Node<'_>| {
            let says = mark::has(r, "instructions") || mark::has(r, "prompt");
            let marks = ["extensions", "sub_recipes", "activities", "parameters", "settings"];
            says && mark::has(r, "title")
                && (mark::has(r, "version") || marks.iter().any(|k| mark::has(r, k)))
        };
        if mark::any(file, |r| recipe(r) || r.get("recipe").is_some_and(recipe)) { 82 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("Goose asks the model that the user has configured"),
            ends_loops: Some("Goose ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `instructions` or `prompt`",
                bound: "state it: `settings.max_turns`",
                ..Words::default()
            },
            asks_user: true,
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let node = root.get("recipe").unwrap_or(root);
            let name = SHAPE.name_of(node).unwrap_or("recipe");
            units.add(name, UnitKind::Agent, node.head(), |kit| recipe(kit, project, file, node));
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no recipe is defined")
    }
}

/// The parameters against the placeholders: Goose refuses a recipe where they differ. A recipe with
/// statements of its template language (loops, inclusions) may define names of its own and is left alone.
fn parameters(kit: &mut Kit<'_>, node: Node<'_>) {
    let declared: Vec<(&str, diagnostics::Span)> = node
        .get("parameters")
        .into_iter()
        .flat_map(|p| p.items())
        .filter_map(|p| Some((p.get("key")?.text()?, p.head())))
        .collect();
    let texts: Vec<_> = node.descendants().filter_map(|n| Some((n.as_str()?, n.span()))).collect();
    if texts.iter().any(|(t, _)| t.contains("{%") || t.contains("{#")) {
        return;
    }
    let mut read: Vec<&str> = Vec::new();
    for (text, at) in &texts {
        for part in double(text) {
            if let frontend_kit::emit::Part::Hole(name) = part {
                read.push(name);
                let own = name == "recipe_dir" || name.contains('.');
                if !own && !declared.iter().any(|(d, _)| *d == name) {
                    kit.outline.missing(name, *at);
                }
            }
        }
    }
    // Anything else in braces may be an expression that reads a parameter.
    let mentioned = |d: &str| texts.iter().any(|(t, _)| t.contains("{{") && t.contains(d));
    for (name, at) in declared.iter().filter(|(d, _)| !read.contains(d) && !mentioned(d)) {
        kit.outline.unread.push((name.to_string(), *at));
    }
}

fn recipe(kit: &mut Kit<'_>, project: &Project, file: &File, node: Node<'_>) -> TermId {
    let name = SHAPE.name_of(node).unwrap_or("recipe");
    let head = node.head();
    if let Err(term) = kit.open(name, node.span(), head, size(node.span())) {
        return term;
    }
    parameters(kit, node);
    let mut actions: Vec<Action> = Vec::new();
    for item in node.get("extensions").into_iter().flat_map(|e| e.items()) {
        let tool = item.text().or_else(|| item.get("name")?.text()).unwrap_or("");
        actions.push(Action::mcp(tool, tool, item.head()));
    }
    for item in node.get("sub_recipes").into_iter().flat_map(|e| e.items()) {
        let sub = item.get("name").and_then(|n| n.text()).unwrap_or("sub_recipe");
        let path = item.get("path").and_then(|p| p.text()).unwrap_or("");
        let found = project.beside(file, path);
        let term = match found.and_then(|f| Some((f, f.documents.first()?.root()))) {
            Some((other, root)) => recipe(kit, project, other, root),
            None => kit.unknown(&format!("the recipe in {path}"), item.head()),
        };
        actions.push(Action::ask(sub, term, item.head()));
    }
    let settings = node.get("settings");
    let mut given = Given { called: Some(name), ..Given::default() };
    if let Some(settings) = settings {
        report_keys(
            settings,
            &["goose_model", "temperature", "max_turns", "max_tokens"],
            &[("goose_provider", why::RUNTIME)],
            "a recipe's `settings`",
            kit.out,
        );
        given.params.model = settings.get("goose_model").and_then(|m| m.text()).map(Name::from);
        given.model_at = settings.entry("goose_model").map(|e| value_span(&e));
        for key in ["temperature", "max_tokens"] {
            if let Some(e) = settings.entry(key) {
                setting(&e, &mut given.params, kit.out);
            }
        }
    }
    let asked = node.entry("prompt").and_then(|e| Some((e.value.text()?, value_span(&e))));
    let asked = asked.filter(|(t, _)| !t.trim().is_empty());
    let instructed = node.get("instructions").is_some_and(|i| i.text().is_some());
    if let (false, Some((text, at))) = (instructed, asked) {
        // Without instructions the question is the whole prompt.
        given.prompt = Some(kit.filled(text, at, double));
    }
    let bound = defaults::bound(&defaults::GOOSE_TURNS, kit.versions);
    let bound = bound.or_written(settings.and_then(|s| s.entry("max_turns")), kit.out);
    let mut term = shape::agent_bounded(kit, node, &SHAPE, given, actions, &by_name, bound);
    if let (true, Some((text, at))) = (instructed, asked) {
        // The prompt is the first message; what is given joins it.
        let mut first = frontend_kit::emit::Template::new(at);
        kit.fill(&mut first, text, at, double);
        let x = kit.b.var("x", at);
        first.text("\n").term(x);
        let first = first.build(&mut kit.b);
        let run = kit.b.app(term, first, at);
        term = kit.b.abs("x", Some(Type::Str), run, at);
    }
    if let Some(retry) = node.entry("retry") {
        let entry = retry.value.entry("max_retries");
        if entry.is_some() {
            let why =
                "the checks that decide on a retry are commands; the bound on retries is kept by the runtime";
            kit.out.push(diagnostics::Diagnostic::info(
                frontend_kit::emit::codes::UNUSED_KEY,
                format!("`retry` is left out: {why}"),
                retry.key.span(),
            ));
        }
    }
    kit.close();
    term
}
