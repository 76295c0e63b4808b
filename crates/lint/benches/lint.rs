//! Lint per file: from its bytes to its findings.
//!
//! The seed's figure is 5 µs for a parsed dict and 1.3 ms for compiling (Table 6).

use diagnostics::FileId;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use frontend_kit::doc::{Format, Limits, load};
use frontend_kit::{File, Project};
use frontends::compile;
use lint::{Config, lint, lint_bytes};
use std::sync::Arc;

fn main() {
    divan::main();
}

const FILES: &[(&str, &str)] = &[
    ("listing1.yaml", include_str!("../../../suite/frontends/lambda_yaml/listing1.yaml")),
    ("router.yaml", include_str!("../../../suite/frontends/lambda_yaml/router.yaml")),
    ("agents.yaml", include_str!("../../../suite/frontends/crewai/agents.yaml")),
    ("crew.yaml", include_str!("../../../suite/frontends/crewai/crew.yaml")),
    ("agents.json", include_str!("../../../suite/frontends/crewai/agents.json")),
];

fn text(name: &str) -> &'static str {
    FILES.iter().find(|(n, _)| *n == name).map_or("", |(_, t)| t)
}

fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(n, _)| *n)
}

/// Everything `entail lint` does for one file.
#[divan::bench(args = names())]
fn file(bencher: Bencher<'_, '_>, name: &str) {
    let text = text(name);
    let config = Config::default();
    bencher.counter(BytesCount::of_str(text)).bench(|| {
        lint_bytes(frontends::recognize, black_box(name), FileId(0), black_box(text.as_bytes()), &config)
    });
}

/// The rules alone, on what was compiled before.
#[divan::bench(args = names())]
fn rules(bencher: Bencher<'_, '_>, name: &str) {
    let text: Arc<str> = text(name).into();
    let files = vec![File::read(FileId(0), name, &text, &Limits::default())];
    let Some(compiled) = compile(&Project { files, ..Project::default() }, 0) else { return };
    let config = Config::default();
    bencher.bench(|| lint(black_box(&compiled), &config));
}

/// Compiling alone, from loaded documents to terms.
#[divan::bench(args = names())]
fn lower(bencher: Bencher<'_, '_>, name: &str) {
    let text: Arc<str> = text(name).into();
    let files = vec![File::read(FileId(0), name, &text, &Limits::default())];
    let project = Project { files, ..Project::default() };
    bencher.bench(|| compile(black_box(&project), 0));
}

/// Reading a crew of many agents.
#[divan::bench(args = [10, 1000])]
fn read(bencher: Bencher<'_, '_>, agents: usize) {
    let text: Arc<str> = (0..agents)
        .map(|i| text("agents.yaml").replace("scout", &format!("scout{i}")))
        .collect::<String>()
        .into();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| load(FileId(0), black_box(&text), Some(Format::Yaml), &Limits::default()));
}
