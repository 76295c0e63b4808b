//! Names in the options of an agent: tools and servers of rules, and modes.

use super::permissions::{self, MODES, Rule, Texts};
use super::{Host, agents};
use diagnostics::{Diagnostic, nearest};
use frontend_kit::emit::{clip, codes};
use frontend_kit::kit::Kit;
use python::ObjectId;

/// Reports names that the framework refuses, or that no tool has.
pub(super) fn check(host: &Host<'_, '_>, kit: &mut Kit<'_>, id: ObjectId) {
    let world = host.world;
    if let Some(given) = host.get(id, "permission_mode")
        && let Some(mode) = world.str(given.value).filter(|m| !MODES.contains(m))
    {
        let message = format!("`{}` is no permission mode: the run fails", clip(mode));
        let d = Diagnostic::error(codes::UNDEFINED, message, given.at);
        kit.out.push(helped(d, nearest(mode, MODES.iter().copied())));
    }
    if let (Some(callback), Some(_)) =
        (host.get(id, "can_use_tool"), host.get(id, "permission_prompt_tool_name"))
    {
        let message = "`can_use_tool` and `permission_prompt_tool_name` exclude each other: the run fails";
        kit.out.push(Diagnostic::error(codes::WRONG_KIND, message, callback.at).help("remove one of them"));
    }
    let mut rules: Vec<Rule> = host.permissions(id).rules().cloned().collect();
    let definitions = agents(world, world.object(id));
    let named = |id, key| host.get(id, key).map(|g| Texts::of(world, g.value));
    let lists = definitions
        .iter()
        .flat_map(|(_, agent, _)| ["tools", "disallowedTools"].map(|key| (*agent, key)))
        .chain(
            [(id, "tools")]
                .into_iter()
                .filter(|(id, key)| host.get(*id, key).is_some_and(|g| world.entries(g.value).is_none())),
        );
    for texts in lists.filter_map(|(id, key)| named(id, key)) {
        rules.extend(texts.known.iter().map(|(text, at)| Rule::of(text, *at)));
    }
    for rule in &rules {
        if let Some(d) = wrong(host, id, rule) {
            kit.out.push(d);
        }
    }
}

/// The finding about a rule that no tool matches.
fn wrong(host: &Host<'_, '_>, id: ObjectId, rule: &Rule) -> Option<Diagnostic> {
    let (servers, rest) = host.servers(id);
    let shown = clip(&rule.name);
    let warn = |message: String| Diagnostic::warn(codes::UNDEFINED, message, rule.at);
    if !rule.name.starts_with("mcp__") {
        if permissions::known().any(|k| k == rule.name) || rule.name.contains('*') {
            return None;
        }
        // A tool of the program by its own name.
        let own = servers.iter().find_map(|s| {
            let (tools, _) = host.own_tools(s)?;
            tools.iter().any(|(n, _)| *n == rule.name).then(|| format!("{}__{}", s.prefix, rule.name))
        });
        if let Some(name) = own {
            let message =
                format!("no rule for the tool `{shown}`: its name is that of its server and its own");
            return Some(helped(warn(message), Some(&name)));
        }
        let is_same = |k: &&str| k.eq_ignore_ascii_case(&rule.name);
        let meant =
            permissions::known().find(is_same).or_else(|| nearest(&rule.name, permissions::known()))?;
        let message = format!("Claude Code has no tool `{shown}`: the rule is ignored");
        return Some(helped(warn(message), Some(meant)));
    }
    let of = |prefix: &str| {
        let rest = rule.name.strip_prefix(prefix)?;
        (rest.is_empty() || rest.starts_with("__")).then(|| rest.strip_prefix("__"))
    };
    let server = servers.iter().find_map(|s| Some((s, of(&s.prefix)?)));
    let Some((server, tool)) = server else {
        if rest.is_some() || servers.is_empty() || rule.name.contains('*') {
            return None;
        }
        let written = rule.name.strip_prefix("mcp__")?.split("__").next()?;
        let keys = || servers.iter().map(|s| s.prefix.strip_prefix("mcp__").unwrap_or(s.key));
        // Other servers may be listed in files. Of one that runs in the process, the key counts.
        let renamed = servers.iter().find(|s| host.own_name(s).is_some_and(|n| n == written));
        let meant = renamed.map(|s| s.key).or_else(|| nearest(written, keys()))?;
        let message = format!("no server `{}` in `mcp_servers`: the rule is ignored", clip(written));
        let tool = rule.name.get("mcp__".len() + written.len()..).unwrap_or_default();
        return Some(helped(warn(message), Some(&format!("mcp__{meant}{tool}"))));
    };
    let tool = tool.filter(|t| !t.contains('*'))?;
    let (tools, is_whole) = host.own_tools(server)?;
    if !is_whole || tools.iter().any(|(name, _)| name == tool) {
        return None;
    }
    let message = format!("the server `{}` has no tool `{}`: the rule is ignored", server.key, clip(tool));
    let meant = nearest(tool, tools.iter().map(|(n, _)| n.as_str()));
    Some(helped(warn(message), meant.map(|m| format!("{}__{m}", server.prefix)).as_deref()))
}

fn helped(d: Diagnostic, meant: Option<&str>) -> Diagnostic {
    match meant {
        Some(meant) => d.help(format!("write `{meant}`")),
        None => d,
    }
}
