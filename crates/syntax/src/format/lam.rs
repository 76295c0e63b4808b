//! `.lam` programs in one style.
//!
//! The tokens are those of the text, commas before a closing bracket aside. Line breaks never change what
//! a program means: outside brackets, no line but the first of an item begins at the margin, unless the
//! word before it asks for a term anyway.

use super::layout::{Gap, Layout, Nest, Note, Piece};
use crate::lam::shape::{Form, Part, Shape, Shapes};
use crate::lam::shapes;
use diagnostics::{Diagnostic, FileId};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Writes a program of the calculus in the one style.
///
/// # Errors
/// What is wrong with the text, if it is no program; such a text is not formatted.
///
/// # Examples
/// ```
/// let mut sources = diagnostics::Sources::new();
/// let text = "let twice=\\f . f>>f   # both\ntwice ( \\x. x+1 ) 5";
/// let file = sources.add("twice.lam", text);
/// let formatted = syntax::format::lam(file, text).unwrap();
/// assert_eq!(formatted, "let twice = \\f. f >> f # both\ntwice (\\x. x + 1) 5\n");
/// ```
pub fn lam(file: FileId, text: &str) -> Result<String, Vec<Diagnostic>> {
    let shapes = shapes(file, text)?;
    let mut marks = Marks::new(text, &shapes);
    marks.spaces();
    marks.forms();
    marks.brackets();
    Ok(marks.l.print())
}

const STEP: usize = 2;

struct Marks<'a> {
    shapes: &'a Shapes,
    l: Layout<'a>,
    parts: Vec<Part>,
    /// For each token of the text the piece that contains it: a string with holes is one piece.
    piece_of: Vec<usize>,
    /// Number of open brackets around each piece.
    depth: Vec<usize>,
    /// Pieces before which a line may be broken, by the brackets around them.
    soft: BTreeSet<(usize, usize)>,
    /// Break of each λ that is alone in parentheses, by its first piece.
    lambdas: HashMap<usize, LambdaBreak>,
}

#[derive(Clone, Copy)]
struct LambdaBreak {
    last: usize,
    group: Option<(super::layout::GroupId, super::layout::IndentId)>,
}

impl<'a> Marks<'a> {
    fn new(text: &'a str, shapes: &'a Shapes) -> Marks<'a> {
        let (mut pieces, mut parts, mut piece_of) = (Vec::<Piece>::new(), Vec::new(), Vec::new());
        let mut strings = 0usize;
        for (start, end, part) in &shapes.tokens {
            if strings > 0 {
                if let Some(p) = pieces.last_mut() {
                    p.end = *end;
                }
            } else {
                pieces.push(Piece { start: *start, end: *end });
                parts.push(if *part == Part::TextOpen { Part::Other } else { *part });
            }
            match part {
                Part::TextOpen => strings += 1,
                Part::TextClose => strings = strings.saturating_sub(1),
                _ => {}
            }
            piece_of.push(pieces.len() - 1);
        }
        let mut depth = Vec::with_capacity(parts.len());
        let mut open = 0usize;
        for part in &parts {
            if *part == Part::Close {
                open = open.saturating_sub(1);
            }
            depth.push(open);
            if *part == Part::Open {
                open += 1;
            }
        }
        let notes = notes(text, &pieces);
        Marks {
            shapes,
            l: Layout::new(text, pieces, notes, STEP),
            parts,
            piece_of,
            depth,
            soft: BTreeSet::new(),
            lambdas: HashMap::new(),
        }
    }

    fn piece(&self, token: usize) -> usize {
        self.piece_of.get(token).copied().unwrap_or(self.l.pieces.len())
    }

    /// Spaces between pieces, where no line can be broken.
    fn spaces(&mut self) {
        let first_of: HashMap<usize, usize> =
            self.piece_of.iter().enumerate().rev().map(|(token, piece)| (*piece, token)).collect();
        // What is said of tokens inside a string does not concern the string.
        let begins = |t: &&usize| first_of.get(&self.piece(**t)) == Some(*t);
        let tight: HashSet<usize> = self.shapes.tight.iter().filter(begins).map(|t| self.piece(*t)).collect();
        let loose: HashSet<usize> = self.shapes.loose.iter().filter(begins).map(|t| self.piece(*t)).collect();
        for i in 1..self.parts.len() {
            let here = self.l.source(i);
            let sticks = match self.parts[i] {
                Part::Close => true,
                Part::Follows => !loose.contains(&i),
                // Two operators in one, or a type's `>` before another.
                _ => false,
            };
            let after = matches!(self.parts[i - 1], Part::Open | Part::Sticks | Part::Lambda);
            // The dot of a field, and what follows it.
            let field = tight.contains(&(i + 1)) && here == "." && !loose.contains(&i);
            if sticks || after || field || tight.contains(&i) {
                self.l.gap(i, Gap::Tight);
            }
        }
        for item in &self.shapes.items {
            let piece = self.piece(*item);
            self.l.gap(piece, Gap::Line);
        }
    }

    /// Returns true if a line may be broken between two pieces, outside the brackets that begin there.
    fn breakable(&self, first: usize, last: usize) -> bool {
        let depth = self.depth.get(first).copied().unwrap_or(0);
        first < last && self.soft.range((depth, first + 1)..=(depth, last)).next().is_some()
    }

    fn break_at(&mut self, i: usize) {
        self.l.gap(i, Gap::Soft);
        let depth = self.depth.get(i).copied().unwrap_or(0);
        self.soft.insert((depth, i));
    }

    /// A part that may stand on lines of its own, further in.
    fn own_lines(&mut self, first: usize, last: usize) -> (super::layout::GroupId, super::layout::IndentId) {
        self.break_at(first);
        let broken = self.l.broken_before(first);
        (self.l.group(first, last, true, broken), self.l.indent(first, last, Nest::Around))
    }

    fn forms(&mut self) {
        for shape in &self.shapes.forms {
            let (first, last) = (self.piece(shape.first), self.piece(shape.last));
            // What is inside a string stays as it is; so does what has one token.
            let begins = self.l.pieces.get(first).map(|p| p.start);
            if first < last && begins == self.shapes.tokens.get(shape.first).map(|t| t.0) {
                self.form(shape, first, last);
            }
        }
    }

    fn form(&mut self, shape: &Shape, first: usize, last: usize) {
        let marks: Vec<usize> = shape.marks.iter().map(|m| self.piece(*m)).collect();
        match (shape.form, &marks[..]) {
            (Form::Let, [inner, ..]) => {
                let broken = self.l.broken_before(*inner);
                marks.iter().for_each(|m| self.break_at(*m));
                self.l.group(first, last, false, broken);
            }
            (Form::Value, _) => {
                let lambda = self.parts.get(first) == Some(&Part::Lambda);
                if !lambda && self.breakable(first, last) {
                    self.own_lines(first, last);
                }
            }
            (Form::Lambda, [body, ..]) => {
                let nested = self.parts.get(*body) == Some(&Part::Lambda);
                let group = (!nested && self.breakable(*body, last)).then(|| self.own_lines(*body, last));
                self.lambdas.insert(first, LambdaBreak { last, group });
                if nested && let Some(inner) = self.lambdas.get(body).copied() {
                    self.lambdas.insert(first, inner);
                }
            }
            (Form::If, [then, otherwise]) => {
                let broken = self.l.broken_before(*otherwise);
                self.branch(*then + 1, *otherwise - 1);
                self.branch(*otherwise + 1, last);
                self.break_at(*then);
                self.break_at(*otherwise);
                let condition = self.l.broken_before(*then);
                self.l.group(first, last, false, broken);
                self.l.group(first, *otherwise - 1, false, condition);
            }
            (Form::Try, [catch, ..]) => {
                let broken = self.l.broken_before(*catch);
                self.break_at(*catch);
                self.l.group(first, last, false, broken);
            }
            (Form::Chain | Form::Stages, [op, ..]) => {
                let broken = shape.form == Form::Stages && self.l.broken_before(*op);
                marks.iter().for_each(|m| self.break_at(*m));
                self.l.group(first, last, false, broken);
                self.l.indent(*op, last, Nest::Around);
            }
            (Form::Application, [argument, ..]) => {
                // Brackets are broken inside, rather than the line before them.
                let opens = |m: &usize| matches!(self.parts.get(*m), Some(Part::Open | Part::Lambda));
                if !marks.iter().any(opens) && marks.len() > 1 {
                    marks.iter().for_each(|m| self.break_at(*m));
                    self.l.group(first, last, false, false);
                    self.l.indent(*argument, last, Nest::Around);
                }
            }
            _ => {}
        }
    }

    /// Lays out the branch after `then` or `else`.
    fn branch(&mut self, first: usize, last: usize) {
        let chained = self.l.source(first) == "if";
        let lambda = self.parts.get(first) == Some(&Part::Lambda);
        if first < last && !chained && !lambda && self.breakable(first, last) {
            self.own_lines(first, last);
        }
    }

    /// Lays out the content of brackets.
    fn brackets(&mut self) {
        let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
        for i in 0..self.parts.len() {
            match self.parts[i] {
                Part::Open => open.push((i, Vec::new())),
                Part::Close => {
                    if let Some((first, commas)) = open.pop() {
                        self.bracket(first, i, &commas);
                    }
                }
                _ if self.l.source(i) == "," => {
                    if let Some((_, commas)) = open.last_mut() {
                        commas.push(i);
                    }
                }
                _ => {}
            }
        }
    }

    fn bracket(&mut self, open: usize, close: usize, commas: &[usize]) {
        let inner = open + 1;
        if let Some(last) = commas.last().filter(|c| **c + 1 == close) {
            self.l.leave_out(*last);
        }
        let alone = self.lambdas.get(&inner).filter(|l| l.last + 1 == close).copied();
        if let Some(lambda) = alone {
            // `(\x.` stays on its line, the body goes further in.
            if let Some((group, indent)) = lambda.group {
                self.l.remove_group(group);
                self.l.remove_indent(indent);
                self.l.bracket(open, close, Nest::Line);
                self.l.gap(close, Gap::SoftTight);
                self.l.group(open, close, false, false);
            }
            return;
        }
        let single = commas.is_empty() && !self.breakable(inner, close - 1);
        // Something without a comma is left alone, unless it can be broken itself, or is a list or record.
        let word = self.l.gaps.get(open) == Some(&Gap::Tight)
            && self.parts.get(open.wrapping_sub(1)) == Some(&Part::Other);
        let items = matches!(self.l.source(open), "[" | "{") && !word;
        if inner == close || (single && !items) {
            return;
        }
        self.l.bracket(open, close, Nest::Line);
        self.l.gap(inner, Gap::SoftTight);
        self.l.gap(close, Gap::SoftTight);
        for comma in commas.iter().filter(|c| **c + 1 != close) {
            self.l.gap(comma + 1, Gap::Soft);
        }
        self.l.group(open, close, false, self.l.broken_before(inner));
    }
}

/// The comments: what is between the pieces and is no white space.
fn notes(text: &str, pieces: &[Piece]) -> Vec<Note> {
    let mut out = Vec::new();
    let mut from = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    for to in pieces.iter().map(|p| (p.start as usize, p.end as usize)).chain([(text.len(), text.len())]) {
        let mut at = from;
        let mut own_line = from == 0 || from == '\u{feff}'.len_utf8() && text.starts_with('\u{feff}');
        for line in text.get(from..to.0).unwrap_or("").split_inclusive('\n') {
            let trimmed = line.trim();
            if !trimmed.is_empty() {
                let start = at + (line.len() - line.trim_start().len());
                out.push(Note { start: start as u32, end: (start + trimmed.len()) as u32, own_line });
            }
            at += line.len();
            own_line = true;
        }
        from = to.1;
    }
    out
}
