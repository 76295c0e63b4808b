//! Tokens with marks about where lines may be broken, and the printer that decides where they are.
//!
//! A [`Layout`] holds the tokens of a text, the comments between them, a [`Gap`] before every
//! token, and nested groups. A group is written on one line if it fits there and nothing in it asks for
//! a line break; otherwise all breaks that belong to it directly are taken. This is the algebra of
//! prettier and its relatives, on a flat list of events instead of a tree of documents.
//!
//! Invariant: every token is written once, in order, but for those that were left out; every comment once, in
//! order.
//! Invariant: time and memory are linear in the text (sorting groups aside); nothing recurses.

use std::cmp::Reverse;

/// The most columns of a line, where it can be broken.
pub(super) const WIDTH: usize = 100;

/// White space before a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// Nothing.
    Tight,
    /// A space.
    Space,
    /// A space, or a line break if the group is broken.
    Soft,
    /// Nothing, or a line break if the group is broken.
    SoftTight,
    /// A line break.
    Line,
    /// A line break and an empty line.
    Blank,
}

/// Indentation of the lines of a bracket or a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nest {
    /// One step more than what is around it.
    Around,
    /// One step more than the line on which it begins.
    Line,
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub start: u32,
    pub end: u32,
}

/// A comment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub start: u32,
    pub end: u32,
    /// Nothing but white space stands before it on its line.
    pub own_line: bool,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first: usize,
    last: usize,
    /// The gap before the first token belongs to the group.
    with_gap: bool,
    broken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Indent {
    first: usize,
    last: usize,
    nest: Nest,
}

/// See the module.
pub(super) struct Layout<'a> {
    pub text: &'a str,
    pub pieces: Vec<Piece>,
    pub gaps: Vec<Gap>,
    notes: Vec<Note>,
    groups: Vec<Group>,
    indents: Vec<Indent>,
    /// The token closes a bracket: its own line is indented like the one of the opening bracket.
    closes: Vec<bool>,
    /// The token opens a bracket.
    opens: Vec<bool>,
    /// The token is left out.
    drops: Vec<bool>,
    /// A comma follows the token if the group is broken.
    commas: Vec<bool>,
    /// The token is a comma or semicolon, which no comment separates from what it follows.
    clings: Vec<bool>,
    /// Columns of one step.
    step: usize,
}

/// A group that was made, so that it can be taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupId(usize);

/// An indentation that was made, so that it can be taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndentId(usize);

impl<'a> Layout<'a> {
    /// All gaps are spaces at first.
    pub fn new(text: &'a str, pieces: Vec<Piece>, notes: Vec<Note>, step: usize) -> Layout<'a> {
        let n = pieces.len();
        let clings =
            pieces.iter().map(|p| matches!(text.get(p.start as usize..p.end as usize), Some("," | ";")));
        Layout {
            text,
            gaps: vec![Gap::Space; n],
            notes,
            groups: Vec::new(),
            indents: Vec::new(),
            closes: vec![false; n],
            opens: vec![false; n],
            drops: vec![false; n],
            commas: vec![false; n],
            clings: clings.collect(),
            step,
            pieces,
        }
    }

    pub fn source(&self, i: usize) -> &'a str {
        self.pieces.get(i).and_then(|p| self.text.get(p.start as usize..p.end as usize)).unwrap_or("")
    }

    /// The token that begins at or after a place; the number of tokens if there is none.
    pub fn at(&self, place: u32) -> usize {
        self.pieces.partition_point(|p| p.start < place)
    }

    /// Leaves a token out.
    pub fn leave_out(&mut self, i: usize) {
        if let Some(d) = self.drops.get_mut(i) {
            *d = true;
        }
    }

    /// The last token before this one that is kept.
    pub fn kept_before(&self, i: usize) -> Option<usize> {
        (0..i.min(self.drops.len())).rev().find(|k| !self.drops[*k])
    }

    pub fn gap(&mut self, i: usize, gap: Gap) {
        if let Some(g) = self.gaps.get_mut(i) {
            *g = gap;
        }
    }

    /// Returns true if the author broke the line before a token.
    pub fn broken_before(&self, i: usize) -> bool {
        let (Some(a), Some(b)) = (i.checked_sub(1).and_then(|i| self.pieces.get(i)), self.pieces.get(i))
        else {
            return false;
        };
        self.text.get(a.end as usize..b.start as usize).is_some_and(|t| t.contains('\n'))
    }

    /// Groups the tokens from `first` to `last`.
    pub fn group(&mut self, first: usize, last: usize, with_gap: bool, broken: bool) -> GroupId {
        self.groups.push(Group { first, last, with_gap, broken });
        GroupId(self.groups.len() - 1)
    }

    pub fn remove_group(&mut self, id: GroupId) {
        if let Some(g) = self.groups.get_mut(id.0) {
            (g.first, g.last) = (1, 0);
        }
    }

    /// Indents the lines that begin with the tokens from `first` to `last`.
    pub fn indent(&mut self, first: usize, last: usize, nest: Nest) -> IndentId {
        self.indents.push(Indent { first, last, nest });
        IndentId(self.indents.len() - 1)
    }

    pub fn remove_indent(&mut self, id: IndentId) {
        if let Some(i) = self.indents.get_mut(id.0) {
            (i.first, i.last) = (1, 0);
        }
    }

    /// Indents what is between two brackets.
    pub fn bracket(&mut self, open: usize, close: usize, nest: Nest) {
        self.indents.push(Indent { first: open + 1, last: close, nest });
        if let (Some(c), true) = (self.closes.get_mut(close), open < close) {
            (*c, self.opens[open]) = (true, true);
        }
    }

    pub fn comma_if_broken(&mut self, i: usize) {
        if let Some(c) = self.commas.get_mut(i) {
            *c = true;
        }
    }

    /// Writes everything.
    pub fn print(mut self) -> String {
        let events = self.events();
        let printer = Printer {
            text: self.text,
            step: self.step,
            out: String::with_capacity(self.text.len() + self.text.len() / 8),
            column: 0,
            line: 0,
            nests: Vec::new(),
            closing: None,
        };
        printer.print(&events)
    }

    fn events(&mut self) -> Vec<Event> {
        let n = self.pieces.len();
        self.groups.retain(|g| g.first <= g.last && g.last < n);
        self.indents.retain(|g| g.first <= g.last && g.last < n);
        // Outer ones first, where several begin at one token.
        self.groups.sort_by_key(|g| (g.first, !g.with_gap, Reverse(g.last)));
        self.indents.sort_by_key(|i| (i.first, Reverse(i.last)));
        let mut ends = vec![0usize; n];
        for g in &self.groups {
            ends[g.last] += 1;
        }
        let mut pops = vec![0usize; n];
        for i in &self.indents {
            pops[i.last] += 1;
        }
        let mut groups = self.groups.iter().peekable();
        let mut indents = self.indents.iter().peekable();
        let mut notes = Notes { text: self.text, notes: &self.notes, next: 0, last_end: 0, started: false };
        let mut out = Vec::with_capacity(4 * n);
        for i in 0..n {
            let (piece, gap) = (self.pieces[i], self.gaps[i]);
            let (closes, first_inside) = (self.closes[i], self.kept_before(i).is_some_and(|k| self.opens[k]));
            while let Some(x) = indents.next_if(|x| x.first == i) {
                out.push(Event::Push(x.nest));
            }
            while let Some(g) = groups.next_if(|g| g.first == i && g.with_gap) {
                out.push(Event::Begin(g.broken));
            }
            if self.drops[i] {
                // Brackets are kept, so no group or indentation begins or ends with a break here.
                notes.last_end = notes.last_end.max(piece.end);
                out.extend(std::iter::repeat_n(Event::End, ends[i]));
                out.extend(std::iter::repeat_n(Event::Pop, pops[i]));
                continue;
            }
            let extra = matches!(gap, Gap::Tight | Gap::Space) && !closes && !first_inside;
            let had_note = !self.clings[i] && notes.before(piece.start, gap, extra, first_inside, &mut out);
            if closes {
                out.push(Event::Close);
                pops[i] -= 1;
            }
            let blank = notes.empty_line(piece.start) && !closes && (had_note || !first_inside);
            match gap {
                _ if !notes.started => {}
                _ if had_note => out.push(Event::Hard { blank, extra }),
                Gap::Tight => {}
                Gap::Space => out.push(Event::Space),
                Gap::Soft | Gap::SoftTight => out.push(Event::Soft { space: gap == Gap::Soft, blank }),
                Gap::Line => out.push(Event::Hard { blank, extra }),
                Gap::Blank => out.push(Event::Hard { blank: !first_inside && !closes, extra }),
            }
            while let Some(g) = groups.next_if(|g| g.first == i) {
                out.push(Event::Begin(g.broken));
            }
            out.push(Event::Text(piece.start, piece.end));
            notes.last_end = piece.end;
            notes.started = true;
            out.extend(std::iter::repeat_n(Event::End, ends[i]));
            if self.commas[i] {
                out.push(Event::Comma);
            }
            out.extend(std::iter::repeat_n(Event::Pop, pops[i]));
        }
        notes.before(u32::MAX, Gap::Line, false, false, &mut out);
        out
    }
}

/// The comments that have not been written.
struct Notes<'a> {
    text: &'a str,
    notes: &'a [Note],
    next: usize,
    /// The end of what was written last.
    last_end: u32,
    started: bool,
}

impl Notes<'_> {
    /// Returns true if an empty line separates the last written token from a place.
    fn empty_line(&self, to: u32) -> bool {
        let between = self.text.get(self.last_end as usize..to as usize).unwrap_or("");
        between.bytes().filter(|b| *b == b'\n').count() > 1
    }

    /// Writes the comments before a place; says whether there were any. What follows needs a new line.
    fn before(&mut self, place: u32, gap: Gap, extra: bool, first: bool, out: &mut Vec<Event>) -> bool {
        let (mut any, mut separated) = (false, false);
        while let Some(note) = self.notes.get(self.next).filter(|c| c.start < place) {
            if note.own_line || any {
                let wanted = gap == Gap::Blank && !std::mem::replace(&mut separated, true);
                let blank = (self.empty_line(note.start) || wanted) && (any || !first);
                if self.started {
                    out.push(Event::Hard { blank, extra });
                }
            } else if self.started {
                out.push(Event::Space);
            }
            out.push(Event::Text(note.start, note.end));
            (self.last_end, self.started, any) = (note.end, true, true);
            self.next += 1;
        }
        any
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Begin(bool),
    End,
    Push(Nest),
    Pop,
    /// Takes back an indentation; the break that follows is indented like what the bracket stood in.
    Close,
    Text(u32, u32),
    Space,
    Soft {
        space: bool,
        blank: bool,
    },
    Hard {
        blank: bool,
        /// It stands where no line break was foreseen.
        extra: bool,
    },
    Comma,
}

const FAR: usize = usize::MAX / 4;

struct Printer<'a> {
    text: &'a str,
    step: usize,
    out: String,
    column: usize,
    /// The indentation of the current line.
    line: usize,
    /// Indentations: of lines inside, and of the line that closes.
    nests: Vec<(usize, usize)>,
    /// Set from a closing bracket's [`Event::Close`] to its text.
    closing: Option<usize>,
}

impl Printer<'_> {
    fn width(&self, start: u32, end: u32) -> (usize, bool) {
        let text = self.text.get(start as usize..end as usize).unwrap_or("");
        match text.split_once('\n') {
            None => (text.chars().count(), false),
            Some((first, _)) => (first.chars().count(), true),
        }
    }

    /// For every event the width of what follows up to the next possible line break; for every
    /// beginning of a group its width on one line.
    fn measure(&self, events: &[Event]) -> (Vec<usize>, Vec<usize>) {
        let mut rest = vec![0; events.len() + 1];
        for (i, e) in events.iter().enumerate().rev() {
            rest[i] = match e {
                Event::Soft { .. } | Event::Hard { .. } => 0,
                Event::Text(a, b) => {
                    let (width, several) = self.width(*a, *b);
                    if several { width } else { width + rest[i + 1] }
                }
                Event::Space => 1 + rest[i + 1],
                _ => rest[i + 1],
            };
        }
        let mut flat = vec![0usize; events.len()];
        let mut open: Vec<(usize, usize)> = Vec::new();
        let add = |open: &mut Vec<(usize, usize)>, width: usize| {
            if let Some((_, w)) = open.last_mut() {
                *w = w.saturating_add(width).min(FAR);
            }
        };
        for (i, e) in events.iter().enumerate() {
            match e {
                Event::Begin(broken) => open.push((i, if *broken { FAR } else { 0 })),
                Event::End => {
                    if let Some((begin, width)) = open.pop() {
                        flat[begin] = width;
                        add(&mut open, width);
                    }
                }
                Event::Text(a, b) => {
                    let (width, several) = self.width(*a, *b);
                    add(&mut open, if several { FAR } else { width });
                }
                Event::Space => add(&mut open, 1),
                Event::Soft { space, .. } => add(&mut open, usize::from(*space)),
                Event::Hard { .. } => add(&mut open, FAR),
                Event::Push(_) | Event::Pop | Event::Close | Event::Comma => {}
            }
        }
        (flat, rest)
    }

    fn newline(&mut self, blank: bool, extra: bool) {
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        self.out.push_str(if blank { "\n\n" } else { "\n" });
        let inside = self.nests.last().map_or(0, |n| n.0);
        self.line = self.closing.unwrap_or(inside) + if extra { self.step } else { 0 };
        self.out.extend(std::iter::repeat_n(' ', self.line));
        self.column = self.line;
    }

    fn print(mut self, events: &[Event]) -> String {
        let (flat, rest) = self.measure(events);
        // For each open group, where it ends being measured as flat.
        let mut broken: Vec<bool> = Vec::new();
        let mut after = vec![0usize; events.len()];
        let mut open = Vec::new();
        for (i, e) in events.iter().enumerate() {
            match e {
                Event::Begin(_) => open.push(i),
                Event::End => {
                    if let Some(begin) = open.pop() {
                        after[begin] = i + 1;
                    }
                }
                _ => {}
            }
        }
        for (i, e) in events.iter().enumerate() {
            match e {
                Event::Begin(_) => {
                    let fits = self.column + flat[i] + rest[after[i]] <= WIDTH;
                    // In a group on one line everything is on that line.
                    broken.push(flat[i] >= FAR || (broken.last().copied().unwrap_or(true) && !fits));
                }
                Event::End => {
                    broken.pop();
                }
                Event::Push(nest) => {
                    let around = self.nests.last().map_or(0, |n| n.0);
                    self.nests.push(match nest {
                        Nest::Around => (around + self.step, around),
                        Nest::Line => (self.line + self.step, self.line),
                    });
                }
                Event::Pop => {
                    self.nests.pop();
                }
                Event::Close => self.closing = self.nests.pop().map(|n| n.1),
                Event::Text(a, b) => {
                    let text = self.text.get(*a as usize..*b as usize).unwrap_or("");
                    self.out.push_str(text);
                    match text.rsplit_once('\n') {
                        Some((_, last)) => self.column = last.chars().count(),
                        None => self.column += text.chars().count(),
                    }
                    self.closing = None;
                }
                Event::Space => {
                    self.out.push(' ');
                    self.column += 1;
                }
                Event::Soft { space, blank } => {
                    if broken.last().copied().unwrap_or(true) {
                        self.newline(*blank, false);
                    } else if *space {
                        self.out.push(' ');
                        self.column += 1;
                    }
                }
                Event::Hard { blank, extra } => self.newline(*blank, *extra),
                Event::Comma => {
                    if broken.last().copied().unwrap_or(true) {
                        self.out.push(',');
                        self.column += 1;
                    }
                }
            }
        }
        while self.out.ends_with([' ', '\n']) {
            self.out.pop();
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }
}
