//! Refused flows in words: the origin of the value, and the changes that would allow the flow.
//!
//! Entry points: [`remarks`] and [`with_remedies`].

use core_ir::{Code, ToolDecl};
use diagnostics::Diagnostic;
use policy::Policy;
use runs::Refused;
use std::sync::Arc;

/// The most steps of a way that are shown, from each end.
pub const MAX_STEPS: usize = 8;

/// The steps of a refused value, at their places.
pub fn remarks(mut d: Diagnostic, refused: &Refused) -> Diagnostic {
    for chain in &refused.value.chains {
        // The shortest way; `entail trace --why error` shows the others.
        let Some(way) = chain.ways.first() else { continue };
        for (i, hop) in way.iter().enumerate().filter(|(i, _)| *i < MAX_STEPS || i + MAX_STEPS >= way.len()) {
            let that = if i == 0 {
                format!("{} {}", refused.part.describe(), chain.words)
            } else {
                "before that".into()
            };
            d = d.remark(hop.span, format!("({}) {that}: {}", i + 1, hop.what.describe()));
        }
    }
    d
}

/// Returns the remedies for a refused flow, the best first.
fn remedies(refused: &Refused) -> Vec<String> {
    use machine::Part;
    let raise = |what: &str, words: &str| {
        format!("raise the bound, if that is right for `{what}` everywhere: {words}")
    };
    // An approval vouches for untrusted data. Secret data stay refused, also at a tool with `approve`.
    let approval = |tool: &str| {
        (refused.integrity && !refused.secrecy).then(|| {
            format!("ask a person before each call: `approve = true` under `[tools.{tool}]` of a policy")
        })
    };
    let word = match refused.admits {
        (true, true) => "any",
        (true, false) => "untrusted",
        _ => "secret",
    };
    let name = refused.name.as_deref();
    let mut ways: Vec<String> = Vec::new();
    match (&refused.part, name) {
        (Part::Argument(arg), Some(tool)) => {
            if refused.integrity {
                ways.push(format!("take `{arg}` from what is trusted, or out of untrusted text as one of a few values (`endorse … in […] else …`)"));
                ways.extend(approval(tool));
            }
            if refused.secrecy {
                ways.push(format!("leave what is secret out of `{arg}`, or `declassify` what may be known"));
            }
            ways.push(raise(tool, &format!("`bounds = {{ {arg} = \"{word}\" }}` under `[tools.{tool}]`")));
        }
        (Part::Control, Some(tool)) => {
            ways.push("decide it by what is trusted and public: take the decision before the untrusted text is read, or in a conversation that has not read it".into());
            ways.extend(approval(tool));
            ways.push(raise(tool, &format!("`control = \"{word}\"` under `[tools.{tool}]`")));
        }
        (Part::Control, None) => {
            ways.push("use a separate conversation (`fork`, `fresh`) and keep only its answer".into());
        }
        (Part::Conversation, model) => {
            ways.push("ask a model that may see it, or leave what is secret out of the conversation".into());
            if let Some(model) = model {
                ways.push(format!(
                    "raise what it may see: `clearance = \"{word}\"` under `[models.{model}]` of a policy"
                ));
            }
        }
        (Part::Value, Some(key)) => {
            ways.push(format!(
                "declare the key `{key}` with that label, so that what is read from it has it again"
            ));
        }
        (Part::Verdict, Some(tool)) => {
            ways.push(format!("let the policy of `{tool}` look at what those who see the call may know"));
        }
        (Part::Value, None) => {
            if refused.integrity {
                ways.push(
                    "look at what is trusted, or have a person or a check vouch for it (`endorse`)".into(),
                );
            }
            if refused.secrecy {
                ways.push("leave what is secret out of it, or `declassify` what may be known".into());
            }
            ways.push("assert a label that this may have".into());
        }
        (Part::Answer, _) => {
            if refused.integrity {
                ways.push("answer with what is trusted, or have a person vouch for the value".into());
            }
            if refused.secrecy {
                ways.push("leave what is secret out of the answer, or `declassify` what may be known".into());
            }
            ways.push(format!(
                "raise the bound, if whoever reads answers may: `bound = \"{word}\"` under `[output]`"
            ));
        }
        (Part::Form(param), tool) => {
            ways.push(
                "leave links, addresses and numbers out: ask for a narrower type, or cut them away".into(),
            );
            ways.push(
                "name what may be in the text in the request, or have a person vouch for the text".into(),
            );
            let (key, table) = match (param, tool) {
                (Some(param), Some(tool)) => (format!("`{param}` of `plain`"), format!("[tools.{tool}]")),
                _ => ("`plain`".into(), "[output]".into()),
            };
            ways.push(format!("remove {key} under `{table}`, if any text is right there"));
        }
        (Part::Pattern(param), tool) => {
            ways.push("cut the value out of what was read: all of it must match".into());
            let table = tool.as_ref().map_or("the tool".into(), |tool| format!("`[tools.{tool}]`"));
            ways.push(format!("change `{param}` of `pattern` under {table}, if other values are right"));
        }
        (Part::Readers(param), tool) => {
            ways.push("send it to those who may read it, or leave out what others must not read".into());
            let table = tool.as_ref().map_or("the tool".into(), |tool| format!("`[tools.{tool}]`"));
            ways.push(format!("remove `{param}` of `readers` under {table}, if anybody may get it"));
        }
        (Part::Argument(_) | Part::Verdict, None) => {}
    }
    let said = |(i, way): (usize, String)| format!("{} {way}", if i == 0 { "to allow it," } else { "or" });
    ways.into_iter().enumerate().map(said).collect()
}

/// Adds the changes that would allow a refused flow. For a tool of which nothing is known that is to say what
/// it does; bounds come later.
pub fn with_remedies(
    mut d: Diagnostic,
    refused: &Refused,
    code: &Code,
    policy: Option<&Policy>,
) -> Diagnostic {
    // A block that delegates has bounds of its own, in a table without a name.
    let delegated = |t: &&Arc<ToolDecl>| refused.name.as_deref() == Some(&*t.name) && t.delegated.is_some();
    if let Some(tool) = code.tools.iter().find(delegated) {
        // The gate before the model has a text, and no set.
        if tool.confirms {
            return d.help(
                "a text that others had a part in can't choose: delegate the text alone, or name the others in `to`, \
                 here and in the `[[delegate]]` of the policy",
            );
        }
        let what = match &refused.part {
            machine::Part::Argument(arg) => format!("the set of `{arg}` in its `among`"),
            _ => "its `to`".into(),
        };
        return d.help(format!(
            "the `[[delegate]]` of the policy does not go that far for `{}`: widen {what}, or make the call in \
             the plan itself",
            tool.called()
        ));
    }
    let unknown = |t: &&Arc<ToolDecl>| {
        refused.name.as_deref() == Some(&*t.name)
            && t.is_unspecified()
            && !policy.is_some_and(|p| p.knows(&t.name))
    };
    let tool = code.tools.iter().find(unknown);
    if let Some(tool) = tool {
        d = d.help(analysis::flow::of_unknown(&tool.name));
    }
    let most = if tool.is_some() { 1 } else { usize::MAX };
    remedies(refused).into_iter().take(most).fold(d, Diagnostic::help)
}
