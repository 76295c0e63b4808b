//! Parts of a program that an editor folds, and what can be done with its declarations.

use crate::analysis::Bound;
use crate::names::{MAIN, title};
use crate::workspace::range_of;
use crate::{Fold, FoldKind, Lens, LensAction, Range};
use syntax::agent::ast::{Comment, Item, Program};
use syntax::agent::{Token, lex};

/// The parts of several lines: what stands between brackets, strings, comments.
pub(crate) fn folds(text: &str) -> Vec<Fold> {
    let tokens = lex(MAIN, text, 0, text.len());
    let (mut open, mut out) = (Vec::new(), Vec::new());
    let mut add = |range: Range, kind: FoldKind| {
        if text.get(range.clone()).is_some_and(|part| part.contains('\n')) {
            out.push(Fold { range, kind });
        }
    };
    for token in &tokens.tokens {
        let range = token.start as usize..token.end as usize;
        match token.token {
            Token::Punct("(" | "{" | "[") => open.push(range.start),
            Token::Punct(")" | "}" | "]") => {
                if let Some(start) = open.pop() {
                    add(start..range.end, FoldKind::Block);
                }
            }
            Token::Str | Token::Template => add(range, FoldKind::Block),
            _ => {}
        }
    }
    for range in comment_blocks(text, &tokens.comments) {
        add(range, FoldKind::Comment);
    }
    out.sort_by_key(|fold| (fold.range.start, fold.range.end));
    out
}

/// Comments that stand alone on lines one after the other.
fn comment_blocks(text: &str, comments: &[Comment]) -> Vec<Range> {
    let mut blocks: Vec<Range> = Vec::new();
    for comment in comments.iter().filter(|c| c.own_line) {
        let range = comment.span.start as usize..comment.span.end as usize;
        let follows = |block: &Range| {
            text.get(block.end..range.start)
                .is_some_and(|between| between.trim().is_empty() && between.matches('\n').count() == 1)
        };
        match blocks.last_mut().filter(|block| follows(block)) {
            Some(block) => block.end = range.end,
            None => blocks.push(range),
        }
    }
    blocks
}

/// Actions and facts above pipelines, workflows and tests.
pub(crate) fn lenses(program: &Program, bounds: &[Bound]) -> Vec<Lens> {
    let mut out = Vec::new();
    for item in &program.items {
        let (name, at, _) = title(item);
        let range = range_of(at);
        let lens = |action| Lens { range: range.clone(), action };
        let takes_input = match item {
            Item::Pipeline(p) => !p.params.is_empty(),
            Item::Workflow(w) => !w.params.is_empty(),
            Item::Test(t) => {
                out.push(lens(LensAction::Test { name: t.name.value.clone() }));
                continue;
            }
            _ => continue,
        };
        let bound = bounds.iter().find(|b| b.name == name).map(|b| b.text.clone());
        out.push(lens(LensAction::Run { pipeline: name, takes_input }));
        out.extend(bound.map(|bound| lens(LensAction::Cost { bound })));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> Vec<(usize, usize, FoldKind)> {
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        folds(text).into_iter().map(|f| (line(f.range.start), line(f.range.end), f.kind)).collect()
    }

    #[test]
    fn brackets_strings_and_comments_of_several_lines_fold() {
        let text = "// one\n// two\n\n// three\nagent a {\n  tools: [],\n  prompt: \"\"\"x\n{ y\"\"\"\n}\ntask t() -> String by a {} // end\n";
        use FoldKind::{Block, Comment};
        assert_eq!(folded(text), [(1, 2, Comment), (5, 9, Block), (7, 8, Block)]);
    }

    #[test]
    fn brackets_that_are_not_closed_do_not_fold() {
        assert_eq!(folded("pipeline p( -> {\n"), []);
        assert_eq!(folded("}\n)\n{\n}"), [(3, 4, FoldKind::Block)]);
    }

    #[test]
    fn pipelines_run_tests_are_tested_and_bounds_are_told() {
        let text =
            "pipeline p(x: String) -> String { return x; }\nfn f() -> Int { return 1; }\ntest \"t\" { }";
        let (program, _) = syntax::agent::parse(MAIN, text);
        let bound = Bound { name: "p".into(), text: "0 model calls".into() };
        let actions: Vec<LensAction> = lenses(&program, &[bound]).into_iter().map(|l| l.action).collect();
        let run = LensAction::Run { pipeline: "p".into(), takes_input: true };
        let cost = LensAction::Cost { bound: "0 model calls".into() };
        assert_eq!(actions, [run, cost, LensAction::Test { name: "t".into() }]);
    }
}
