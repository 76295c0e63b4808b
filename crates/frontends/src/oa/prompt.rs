//! Prompts of tasks: where they stand, and what is put in.
//!
//! Invariant: only what is known is put in; anything else in braces is text, as in the runner.

use super::{Known, OaLowering, Source, Task};
use core_ir::{TermId, Type};
use diagnostics::Span;
use frontend_kit::emit::{Template, value_span};

/// The prompt of a role: of the task, of the task below `prompts`, or of all tasks. An empty one is none.
pub(super) fn find<'d>(task: Task<'d>, role: &str) -> Option<(&'d str, Span)> {
    let all = task.spec.root.get("prompts");
    let places = [task.node.get("prompts"), all.and_then(|p| p.get(task.name)), all];
    places.into_iter().flatten().find_map(|prompts| {
        let entry = prompts.entry(role)?;
        let text = entry.value.text().filter(|t| !t.is_empty())?;
        Some((text, value_span(&entry)))
    })
}

/// Maximal length of a name in braces, in bytes.
const MAX_NAME_LEN: usize = 200;

/// A placeholder at the beginning of a text: its length and name, and whether it is written with one brace.
fn placeholder(text: &str) -> Option<(usize, &str, bool)> {
    let name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if let Some(rest) = text.strip_prefix("{{ ") {
        let rest = rest.strip_prefix("input.").unwrap_or(rest);
        let len = rest.find(|c| !name(c)).filter(|n| *n > 0 && *n <= MAX_NAME_LEN)?;
        let end = rest[len..].strip_prefix(" }}")?;
        return Some((text.len() - end.len(), &rest[..len], false));
    }
    let rest = text.strip_prefix('{')?;
    let len = rest.find(|c| !name(c)).filter(|n| *n > 0 && *n <= MAX_NAME_LEN)?;
    let end = rest[len..].strip_prefix('}')?;
    Some((text.len() - end.len(), &rest[..len], true))
}

impl<'d> OaLowering<'_, '_, 'd> {
    /// Lowers the user message.
    pub(super) fn user(&mut self, task: Task<'d>, known: &mut Known) -> TermId {
        let (text, at) = find(task, "user").unwrap_or(("{{ input }}", task.at));
        let mut out = Template::new(at);
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            out.text(&rest[..open]);
            rest = &rest[open..];
            let found = placeholder(rest)
                .and_then(|(len, name, single)| Some((len, self.named(task, name, single, known, at)?)));
            match found {
                Some((len, source)) => {
                    let value = self.value(&source, Some(&rest[..len]), at);
                    out.term(value);
                    rest = &rest[len..];
                }
                None => {
                    out.text("{");
                    rest = &rest[1..];
                }
            }
        }
        out.text(rest);
        out.build(&mut self.kit.b)
    }

    /// Resolves a name in braces.
    fn named(
        &mut self,
        task: Task<'d>,
        name: &str,
        single: bool,
        known: &mut Known,
        at: Span,
    ) -> Option<Source> {
        if let Some(source) = known.get(name) {
            return Some(source.clone());
        }
        // One brace is more often a piece of JSON or code.
        if single {
            return None;
        }
        match &self.open[..] {
            [] => {}
            [only] => return Some(Source::Output(only.clone(), name.into())),
            _ => return Some(Source::Unclear(format!("the task that outputs `{name}`"))),
        }
        // A task that does not say what it takes takes what its prompt holds.
        if super::properties(task.node.get("input")).next().is_some() {
            return None;
        }
        self.input(name, Type::Str, false, known, at);
        known.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::placeholder;

    #[test]
    fn placeholders_are_those_of_the_runner() {
        assert_eq!(placeholder("{{ a_b }}!"), Some((9, "a_b", false)));
        assert_eq!(placeholder("{{ input.x }} "), Some((13, "x", false)));
        assert_eq!(placeholder("{x}"), Some((3, "x", true)));
        for other in ["{{x}}", "{{ x}}", "{ x }", "{}", "{\"a\": 1}", "{{  }}", "{x", "x"] {
            assert_eq!(placeholder(other), None, "{other}");
        }
    }
}
