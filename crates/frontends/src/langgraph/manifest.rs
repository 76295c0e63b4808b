//! `langgraph.json`: the graphs of a project, by the place of their Python.
//!
//! | source | here |
//! |---|---|
//! | `"graphs": {"agent": "./src/agent.py:graph"}` | what the module builds under that name |
//! | `"agent": {"path": "…"}` | the same |
//! | a module that is not there, or TypeScript | a finding that says so |
//!
//! Source: langgraph-cli, `libs/cli/schemas/schema.json`.

use super::{compile, facts};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::Node;
use frontend_kit::emit::{self, Unused, clip, codes, undecided};
use frontend_kit::kit::{Units, mark};
use frontend_kit::project::{Compiled, File, Frontend, Project, join};
use frontend_kit::shape::why;

/// The front end.
pub struct Manifest;

const USED: &[&str] = &["graphs", "dependencies", "$schema"];
const UNUSED: &[Unused] = &[
    ("python_version", why::RUNTIME),
    ("node_version", why::RUNTIME),
    ("pip_config_file", why::RUNTIME),
    ("pip_installer", why::RUNTIME),
    ("keep_pkg_tools", why::RUNTIME),
    ("base_image", why::RUNTIME),
    ("image_distro", why::RUNTIME),
    ("dockerfile_lines", why::RUNTIME),
    ("env", "keys come from the environment"),
    ("store", why::RUNTIME),
    ("checkpointer", why::RUNTIME),
    ("auth", why::CODE),
    ("encryption", why::CODE),
    ("http", why::CODE),
    ("webhooks", why::RUNTIME),
    ("ui", why::SHOWN),
    ("ui_config", why::SHOWN),
    ("api_version", why::RUNTIME),
    ("source", why::RUNTIME),
    ("internal_docker_tag", why::RUNTIME),
    ("disable_persistence", why::RUNTIME),
];

impl Frontend for Manifest {
    fn name(&self) -> &'static str {
        "langgraph_json"
    }

    fn detect(&self, file: &File) -> u8 {
        let marks = ["dependencies", "node_version", "python_version", "source", "env", "dockerfile_lines"];
        let is = mark::any(file, |r| {
            let graphs = r.get("graphs");
            let names_code = |n: Node<'_>| {
                n.entries().take(20).any(|e| {
                    let path = e.value.as_str().or_else(|| e.value.get("path").and_then(|p| p.as_str()));
                    path.is_some_and(|p| p.contains(':'))
                })
            };
            graphs.is_some_and(names_code) && marks.iter().any(|m| mark::has(r, m))
        });
        if is { 96 } else { 0 }
    }

    fn names_modules(&self) -> bool {
        true
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let mut units = Units::new(self.name(), facts(), project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        let mut start = None;
        for document in file.documents.iter().take(1) {
            let root = document.root();
            start = Some(root.head());
            emit::report_keys(root, USED, UNUSED, "`langgraph.json`", &mut units.compiled.diagnostics);
            let graphs = root.get("graphs");
            for entry in graphs.into_iter().flat_map(|g| g.entries()).take(100) {
                let named = entry.value.as_str().map(|t| (t, entry.value.span()));
                let within = || entry.value.get("path").and_then(|p| Some((p.as_str()?, p.span())));
                let Some((path, at)) = named.or_else(within) else {
                    units.compiled.diagnostics.push(emit::wrong_kind(&entry, "`path/to/module.py:name`"));
                    continue;
                };
                graph(project, file, entry.name(), path, at, &mut units);
            }
        }
        units.done(start, "none of the graphs that it names is there")
    }
}

/// Adds the graph that a path names.
fn graph(project: &Project, file: &File, name: &str, path: &str, at: Span, units: &mut Units) {
    let out = &mut units.compiled.diagnostics;
    let Some((module, wanted)) = path.rsplit_once(':') else {
        let message = format!("`{}` names no module and graph", clip(path));
        out.push(Diagnostic::warn(codes::WRONG_KIND, message, at).help("write `./path/to/module.py:name`"));
        return;
    };
    if !module.ends_with(".py")
        && module.contains(['/', '.'])
        && [".ts", ".js", ".mts", ".mjs", ".tsx"].iter().any(|e| module.ends_with(e))
    {
        let message = format!(
            "`{}` is built in `{}`, which is not Python and is not compiled",
            clip(name),
            clip(module)
        );
        out.push(undecided(codes::NOT_COMPILED, message, at));
        return;
    }
    let found = if module.ends_with(".py") {
        project.files.iter().position(|f| f.path == join(file.folder(), module))
    } else {
        // `package.module`.
        let tail = format!("{}.py", module.replace('.', "/"));
        let package = format!("{}/__init__.py", module.replace('.', "/"));
        let ends = |f: &File, t: &str| f.path == t || f.path.ends_with(&format!("/{t}"));
        project
            .files
            .iter()
            .position(|f| ends(f, &tail))
            .or_else(|| project.files.iter().position(|f| ends(f, &package)))
    };
    let Some(index) = found.filter(|i| project.files[*i].python.is_some()) else {
        if project.files.len() == 1 {
            // Nothing else was looked at.
            let message = format!(
                "`{}` is what `{}` builds: the module is compiled by itself",
                clip(name),
                clip(module)
            );
            out.push(Diagnostic::info(codes::NOT_COMPILED, message, at));
            return;
        }
        let message = format!(
            "`{}` is built in `{}`, which is not there: it is not compiled",
            clip(name),
            clip(module)
        );
        let d = undecided(codes::NOT_COMPILED, message, at);
        out.push(d.help("compile the module itself, or call this beside it"));
        return;
    };
    let compiled = compile("langgraph", project, index, Some(wanted));
    let units = &mut units.compiled;
    if compiled.units.is_empty() {
        let message = format!("`{}` builds nothing under the name `{}`", clip(module), clip(wanted));
        units.diagnostics.push(undecided(codes::NOT_COMPILED, message, at));
    }
    units.diagnostics.extend(compiled.diagnostics.into_iter().filter(|d| d.code != codes::NOTHING));
    units.units.extend(compiled.units.into_iter().map(|mut unit| {
        unit.name = name.to_string();
        unit
    }));
}
