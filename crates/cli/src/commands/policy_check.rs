//! `entail policy check`: what in a policy has no effect, and what admits nothing.

use super::check::programs_under;
use super::say_problem;
use crate::args::PolicyCheckArgs;
use crate::ui::{Exit, Ui};
use core_ir::{Builder, Code, Data, Globals, Name, ToolDecl};
use diagnostics::{Diagnostic, FileId, Level, Sources, Span, has_errors, render};
use entries::rules::{self, RuleFinding, RuleReport, Undecided};
use policy::{Policy, PolicyUse};
use serde_json::json;
use session::Settings;
use session::load::{Loaded, Problem, load};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// The tools of a program, or of the servers of a client, with what is known of the rules about them.
struct Scope {
    tools: HashSet<Name>,
    report: RuleReport,
}

/// Runs the command.
pub fn check(ui: &Ui, args: &PolicyCheckArgs) -> Exit {
    let settings = match crate::setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let options = settings.loading(args.policy.as_deref());
    let mut sources = Sources::new();
    let (mut scopes, mut wrong, mut is_said) = (Vec::new(), Vec::new(), false);
    for file in &args.files {
        let is_directory = Path::new(file).is_dir();
        let mut has_program = false;
        for path in programs_under(Path::new(file)) {
            match load(&mut sources, &path.display().to_string(), &options) {
                Ok(loaded) => {
                    has_program = true;
                    is_said |= loaded.policy.is_some();
                    match of_program(&loaded) {
                        Ok(scope) => scopes.extend(scope),
                        Err(found) => wrong.extend(found),
                    }
                }
                // In a directory, configurations of unknown formats are simply not programs.
                Err(Problem::Unreadable(..)) if is_directory => {}
                // What a policy can't be applied with is a finding about it.
                Err(Problem::Policy(found)) => {
                    (has_program, is_said) = (true, true);
                    wrong.extend(found);
                }
                Err(problem) => return say_problem(ui, &sources, problem),
            }
        }
        if !has_program {
            let help = "name the file of a program, or the list of servers with `--mcp-config FILE`";
            return ui.usage(&format!("`{file}` holds no program of a known framework"), Some(help));
        }
    }
    if let Some(path) = &options.policy {
        match session::policy::read(&mut sources, Some(path)) {
            Ok(Some(policy)) => {
                is_said = true;
                match of_servers(ui, args, &settings, &Arc::new(policy)) {
                    Ok(Servers::Checked(scope)) => scopes.extend(scope),
                    #[cfg(feature = "mcp")]
                    Ok(Servers::DontFit(found)) => wrong.extend(found),
                    Err(exit) => return exit,
                }
            }
            Ok(None) => {}
            Err(Problem::Policy(found)) => {
                is_said = true;
                wrong.extend(found);
            }
            Err(problem) => return say_problem(ui, &sources, problem),
        }
    }
    if !is_said {
        let help =
            "name one with `--policy FILE`, or as `policy` in `entail.toml`, or a program that has one";
        return ui.usage("there is no policy to check", Some(help));
    }
    let is_compared = !scopes.is_empty();
    let (mut found, undecided) = merged(&sources, scopes);
    found.extend(wrong);
    found.sort_by_key(|d| key(&sources, d));
    found.dedup_by_key(|d| key(&sources, d));
    show(ui, &sources, &found, &undecided, is_compared);
    if has_errors(&found) { Exit::Failed } else { Exit::Done }
}

/// Place and text of a finding, which are the same for every program that a policy is read for.
fn key(sources: &Sources, d: &Diagnostic) -> (String, u32, u32, &'static str, String) {
    let path = d.span.and_then(|at| sources.get(at.file)).map_or(String::new(), |s| s.path.to_string());
    let (start, end) = d.span.map_or((0, 0), |at| (at.start, at.end));
    (path, start, end, d.code, d.message.clone())
}

/// The findings for every program that a rule may be about: elsewhere the rule has an effect.
fn merged(sources: &Sources, scopes: Vec<Scope>) -> (Vec<Diagnostic>, Vec<Undecided>) {
    let has = |scope: &Scope, finding: &Diagnostic| {
        let all = &scope.report.found;
        all.iter().any(|other| key(sources, &other.finding) == key(sources, finding))
    };
    let holds = |RuleFinding { tool, finding }: &RuleFinding| {
        // What a program says itself is about that program.
        finding.level == Level::Info
            || scopes.iter().all(|scope| {
                tool.as_ref().is_some_and(|tool| !scope.tools.contains(tool)) || has(scope, finding)
            })
    };
    let all = scopes.iter().flat_map(|scope| &scope.report.found);
    let found = all.filter(|f| holds(f)).map(|f| f.finding.clone()).collect();
    let mut undecided: Vec<Undecided> = scopes.iter().flat_map(|s| s.report.undecided.clone()).collect();
    undecided.sort_by_key(|u| (u.span, u.key));
    undecided.dedup();
    (found, undecided)
}

/// Shows what was found. `is_compared` says that the rules were compared with tools.
fn show(ui: &Ui, sources: &Sources, found: &[Diagnostic], undecided: &[Undecided], is_compared: bool) {
    let place = |at: Span| {
        sources.get(at.file).map_or_else(String::new, |source| {
            let at = source.line_column(at.start);
            format!("{}:{}:{}", source.path, at.line, at.column)
        })
    };
    if ui.is_json() {
        let findings: Vec<_> = found.iter().map(|d| render::json(sources, d)).collect();
        let rule = |u: &Undecided| {
            json!({"tool": &*u.tool, "rule": u.key, "parameter": u.param.as_deref(), "why": u.why,
                "at": place(u.span)})
        };
        let undecided: Vec<_> = undecided.iter().map(rule).collect();
        ui.result(&json!({"findings": findings, "undecided": undecided}).to_string());
        return;
    }
    ui.findings(sources, found);
    match (found.is_empty(), is_compared) {
        (true, true) => ui.result("every rule that can be decided has an effect"),
        (true, false) => ui.result("the policy can be read; its rules were compared with no tools"),
        (false, _) => {}
    }
    if !is_compared && !has_errors(found) {
        ui.note("  help: name the programs, or the list of servers with `--mcp-config FILE`");
    }
    if ui.args.verbose {
        for u in undecided {
            let of = u.param.as_ref().map_or(String::new(), |param| format!(" {param}"));
            ui.note(&format!("not decided: `{}{of}` of `{}`: {} ({})", u.key, u.tool, u.why, place(u.span)));
        }
    } else if !undecided.is_empty() {
        let rules = super::plural(undecided.len(), "rule");
        ui.note(&format!("{rules} not decided before a run; `--verbose` lists them"));
    }
}

/// The rules about the tools of a program.
fn of_program(loaded: &Loaded) -> Result<Option<Scope>, Vec<Diagnostic>> {
    let Some(policy) = &loaded.policy else { return Ok(None) };
    let mut tools: Vec<Arc<ToolDecl>> = Vec::new();
    for tool in loaded.runnables.iter().flat_map(|r| &r.code.tools) {
        if !tools.iter().any(|t| t.name == tool.name) {
            tools.push(tool.clone());
        }
    }
    // What nothing of the program calls has no policy in it yet.
    let globals = loaded.runnables.first().map_or_else(Globals::none, |r| r.code.globals().clone());
    let is_used = |tool: &Arc<ToolDecl>| tools.iter().any(|t| t.name == tool.name);
    if !loaded.declared.iter().all(is_used) {
        let mut code = code_of(&loaded.declared, &globals);
        let found = policy.apply_to(&mut code, &loaded.named);
        if has_errors(&found) {
            return Err(found);
        }
        let rest: Vec<_> = code.tools.into_iter().filter(|tool| !is_used(tool)).collect();
        tools.extend(rest);
    }
    // Where a part of the program isn't known, it may have other tools.
    let is_complete = !loaded.found.iter().any(|d| d.level == Level::Unknown);
    Ok(Some(scope(policy, &code_of(&tools, &globals), &loaded.named, is_complete)))
}

/// A program that does nothing with these tools.
fn code_of(tools: &[Arc<ToolDecl>], globals: &Arc<Globals>) -> Code {
    let at = Span { file: FileId(0), start: 0, end: 0 };
    let mut b = Builder::new();
    for tool in tools {
        b.tool(ToolDecl::clone(tool));
    }
    let root = b.lit(Data::Null, at);
    // INVARIANT: a literal is closed.
    b.finish(root, globals).unwrap_or_else(|_| unreachable!("a literal is closed"))
}

fn scope(policy: &Policy, code: &Code, uses: &[PolicyUse], is_complete: bool) -> Scope {
    let tools = code.tools.iter().map(|t| t.called().clone()).collect();
    Scope { tools, report: rules::check(policy, code, uses, is_complete) }
}

/// Result of comparing a policy with servers.
enum Servers {
    Checked(Option<Scope>),
    #[cfg(feature = "mcp")]
    DontFit(Vec<Diagnostic>),
}

#[cfg(not(feature = "mcp"))]
fn of_servers(_: &Ui, _: &PolicyCheckArgs, _: &Settings, _: &Arc<Policy>) -> Result<Servers, Exit> {
    Ok(Servers::Checked(None))
}

/// The rules about the tools of the servers that a guard has.
#[cfg(feature = "mcp")]
fn of_servers(
    ui: &Ui,
    args: &PolicyCheckArgs,
    settings: &Settings,
    policy: &Arc<Policy>,
) -> Result<Servers, Exit> {
    let Some(servers) = servers::known(ui, args, settings)? else { return Ok(Servers::Checked(None)) };
    match ::serve::guard::declared(policy.clone(), &servers.declared) {
        Ok((mut code, named)) => {
            servers.add_types(&mut code);
            let mut scope = scope(&named, &code, &[], false);
            if servers.is_complete {
                scope.report.found.extend(servers.unused(policy));
            }
            Ok(Servers::Checked(Some(scope)))
        }
        Err(found) => Ok(Servers::DontFit(found)),
    }
}

#[cfg(feature = "mcp")]
mod servers {
    use super::{Code, Diagnostic, Exit, Name, Policy, PolicyCheckArgs, RuleFinding, Settings, Ui};
    use crate::commands::canceled;
    use crate::interrupt::unless_canceled;
    use crate::setup::refuse;
    use ::serve::guard::{DeclaredServer, Param, ToolSpec, describe, tool_prefix};
    use core_ir::Type;
    use diagnostics::visible;
    use policy::PolicyScope;
    use runtime::{Pins, ServerTool};
    use session::server_list::{self, ListedServer};
    use session::settings::read_lock;
    use session::tool_schemas::{result_of_server, type_of_schema};
    use std::collections::HashMap;
    use std::sync::Arc;

    /// Names of the protocol's messages among the approved tools begin so.
    const METHOD: &str = "mcp:";

    /// Servers with their tools, as far as they are known.
    pub(super) struct KnownServers {
        pub(super) declared: Vec<DeclaredServer>,
        /// True if all tools of all servers are known, with their parameters.
        pub(super) is_complete: bool,
        /// Descriptions with the types of tools, by the names that the tools have in the guard.
        types: HashMap<String, ServerTool>,
    }

    /// The servers that the arguments name; `None` if they name none.
    pub(super) fn known(
        ui: &Ui,
        args: &PolicyCheckArgs,
        settings: &Settings,
    ) -> Result<Option<KnownServers>, Exit> {
        let pins = match &args.lock {
            Some(path) => read_lock(path).map_err(|e| refuse(ui, e))?,
            None => settings.pins.clone(),
        };
        if let Some(name) = &args.server {
            let Some((tools, is_complete)) = approved(&pins, name) else {
                let help = "approve it with `entail guard --approve --server NAME -- COMMAND`";
                return Err(ui.usage(&format!("nothing of the server `{name}` is approved"), Some(help)));
            };
            let declared = vec![DeclaredServer { name: None, is_approved: true, tools }];
            return Ok(Some(KnownServers { declared, is_complete, types: HashMap::new() }));
        }
        let Some(path) = &args.mcp_config else { return Ok(None) };
        let folder = std::env::current_dir()
            .map_err(|e| ui.usage(&format!("the current folder is not known: {e}"), None))?;
        let list = server_list::read(path, &folder, &settings.environment).map_err(|e| refuse(ui, e))?;
        let mut out = KnownServers {
            declared: Vec::new(),
            is_complete: list.unusable.is_empty(),
            types: HashMap::new(),
        };
        for server in &list.servers {
            let (name, is_approved) = (Some(server.name.clone()), pins.knows(&server.name));
            let tools = match args.discover {
                true => discovered(ui, server)?,
                false => None,
            };
            let (tools, is_complete) = match tools {
                Some(said) => {
                    let prefix = tool_prefix(&server.name);
                    let specs = said.iter().map(|t| ToolSpec::of_schema(&t.name, &t.input)).collect();
                    out.types.extend(said.into_iter().map(|t| (format!("{prefix}{}", t.name), t)));
                    (specs, true)
                }
                None => approved(&pins, &server.name).unwrap_or_default(),
            };
            if !is_complete {
                let name = visible(&server.name, 200);
                ui.note(&format!(
                    "the tools of `{name}` are not known (help: `--discover`, or `entail guard --approve`)"
                ));
                out.is_complete = false;
                continue;
            }
            out.declared.push(DeclaredServer { name, is_approved, tools });
        }
        Ok(Some(out))
    }

    /// The approved tools of a server, and whether their parameters are known.
    fn approved(pins: &Pins, server: &str) -> Option<(Vec<ToolSpec>, bool)> {
        let tools: Vec<_> = pins.tools_of(server)?.filter(|t| !t.name.starts_with(METHOD)).collect();
        let is_complete = tools.iter().all(|t| t.parameters.is_some());
        let spec = |tool: &runtime::ApprovedTool<'_>| {
            let params = tool.parameters.into_iter().flatten();
            let params = params
                .map(|(name, is_required)| Param { name: name.as_str().into(), optional: !is_required });
            ToolSpec { name: tool.name.into(), params: Some(params.collect()), reads: false }
        };
        Some((tools.iter().map(spec).collect(), is_complete))
    }

    /// The tools of a server, as it says them now.
    fn discovered(ui: &Ui, server: &ListedServer) -> Result<Option<Vec<ServerTool>>, Exit> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| ui.usage(&format!("cannot start the runtime: {e}"), None))?;
        let said = unless_canceled(&runtime, describe(&server.launch, MAX_MESSAGE));
        let said = said.ok_or_else(|| canceled(ui))?;
        let said = said.map_err(|why| ui.usage(&format!("`{}`: {why}", visible(&server.name, 200)), None))?;
        Ok(Some(said.into_iter().filter(|t| !t.name.starts_with(METHOD)).collect()))
    }

    /// The most bytes of a message of a server.
    const MAX_MESSAGE: usize = 16 << 20;

    impl KnownServers {
        /// Adds the types that servers say. The guard leaves them to the servers.
        pub(super) fn add_types(&self, code: &mut Code) {
            for decl in &mut code.tools {
                let Some(said) = self.types.get(&**decl.called()) else { continue };
                let decl = Arc::make_mut(decl);
                for param in &mut decl.params {
                    let Some(schema) = said.input["properties"].get(&*param.name) else { continue };
                    let ty = type_of_schema(schema);
                    param.ty = match &param.ty {
                        Type::Option(_) if !matches!(ty, Type::Option(_)) => Type::option(ty),
                        _ => ty,
                    };
                }
                if let Some(schema) = &said.output {
                    decl.result = result_of_server(schema);
                }
            }
        }

        /// Tables of tools that no server has.
        pub(super) fn unused(&self, policy: &Policy) -> Vec<RuleFinding> {
            let mut names: Vec<String> = Vec::new();
            for server in &self.declared {
                let prefix = server.name.as_deref().map_or(String::new(), tool_prefix);
                for tool in &server.tools {
                    names.push(format!("{prefix}{}", tool.name));
                    // Such a table says nothing of a server that nobody approved.
                    if server.is_approved {
                        names.push(tool.name.to_string());
                    }
                }
            }
            let at = diagnostics::Span { file: policy.file, start: 0, end: 0 };
            let decl = |name: &String| Arc::new(core_ir::ToolDecl::unknown(Name::from(name.as_str()), at));
            let tools: Vec<_> = names.iter().map(decl).collect();
            let scope = PolicyScope { tools: &tools, uses: &[], is_complete: true };
            let is_unused = |d: &Diagnostic| d.code == policy::codes::UNUSED;
            let found = policy.check(scope).into_iter().filter(is_unused);
            found.map(|finding| RuleFinding { tool: None, finding }).collect()
        }
    }
}
