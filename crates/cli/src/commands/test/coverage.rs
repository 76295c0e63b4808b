//! `entail test --coverage`: which branches of the programs the tests took.
//!
//! Invariant: a file that several programs import is counted once, whatever it is called in each.

use agentlang::{BranchId, ProgramBranch};
use diagnostics::{LineColumn, Sources};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A branch in its file: the place of its construct, and the index of the way through it.
type Place = (u32, u32, u32);

/// A branch and the times that tests took it.
struct Branch {
    name: String,
    function: String,
    at: LineColumn,
    /// Number of runs that took it.
    taken: u64,
}

/// The branches of a file.
struct FileBranches {
    /// Its path, as the first program has it.
    shown: String,
    branches: BTreeMap<Place, Branch>,
}

impl FileBranches {
    fn count(&self) -> Count {
        let taken = self.branches.values().filter(|b| b.taken > 0).count();
        Count { taken, all: self.branches.len() }
    }

    /// The branches that no run took, in the order of the text.
    fn missed(&self) -> Vec<&Branch> {
        let mut missed: Vec<&Branch> = self.branches.values().filter(|b| b.taken == 0).collect();
        missed.sort_by_key(|b| (b.at.line, b.at.column));
        missed
    }
}

/// Number of branches, and of those that were taken.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    taken: usize,
    all: usize,
}

impl Count {
    /// Percentage of the branches that were taken; all of none.
    pub(super) fn percent(self) -> f64 {
        if self.all == 0 { 100.0 } else { 100.0 * self.taken as f64 / self.all as f64 }
    }

    fn row(self, name: &str, width: usize) -> String {
        let percent = if self.all == 0 { "-".into() } else { format!("{:.1} %", self.percent()) };
        format!("{name:<width$} {:>8} {:>7} {percent:>9}", self.taken, self.all - self.taken)
    }
}

/// The branches of all programs.
#[derive(Default)]
pub(super) struct Coverage(BTreeMap<PathBuf, FileBranches>);

impl Coverage {
    /// Adds the branches of a program.
    pub(super) fn declare(&mut self, sources: &Sources, branches: &[ProgramBranch]) {
        for b in branches {
            let Some(source) = sources.get(b.at.file) else { continue };
            let file = self
                .0
                .entry(identity(&source.path))
                .or_insert_with(|| FileBranches { shown: source.path.clone(), branches: BTreeMap::new() });
            file.branches.entry(place(b.id)).or_insert_with(|| Branch {
                name: b.name.clone(),
                function: b.function.clone(),
                at: source.line_column(b.at.start),
                taken: 0,
            });
        }
    }

    /// Counts branches that a run took.
    pub(super) fn count(&mut self, sources: &Sources, taken: impl IntoIterator<Item = BranchId>) {
        for id in taken {
            let file = sources.get(id.span.file).and_then(|s| self.0.get_mut(&identity(&s.path)));
            if let Some(branch) = file.and_then(|f| f.branches.get_mut(&place(id))) {
                branch.taken += 1;
            }
        }
    }

    /// The branches of all files together.
    pub(super) fn all(&self) -> Count {
        self.0
            .values()
            .map(FileBranches::count)
            .fold(Count::default(), |a, b| Count { taken: a.taken + b.taken, all: a.all + b.all })
    }

    /// A table of the files, and below it a line for each branch that no run took.
    pub(super) fn text(&self) -> String {
        if self.0.is_empty() {
            return "no branches".into();
        }
        let width = self.0.values().map(|f| f.shown.chars().count()).max().unwrap_or(0).max("branches".len());
        let mut lines = vec![format!("{:<width$} {:>8} {:>7} {:>9}", "branches", "taken", "missed", "cover")];
        lines.extend(self.0.values().map(|f| f.count().row(&f.shown, width)));
        if self.0.len() > 1 {
            lines.push(self.all().row("all", width));
        }
        for file in self.0.values() {
            for b in file.missed() {
                let LineColumn { line, column } = b.at;
                lines.push(format!("{}:{line}:{column}: never in `{}`: {}", file.shown, b.function, b.name));
            }
        }
        lines.join("\n")
    }

    /// An object for each file.
    pub(super) fn json(&self) -> Vec<Value> {
        let missed = |b: &&Branch| json!({"line": b.at.line, "column": b.at.column, "function": b.function, "branch": b.name});
        let of = |f: &FileBranches| {
            let count = f.count();
            let missed: Vec<Value> = f.missed().iter().map(missed).collect();
            json!({"coverage": {"path": f.shown, "branches": count.all, "taken": count.taken, "missed": missed}})
        };
        self.0.values().map(of).collect()
    }

    /// The format of LCOV, which services and editors read: the branches of each file.
    pub(super) fn lcov(&self) -> String {
        let mut out = String::new();
        for file in self.0.values() {
            out.push_str(&format!("TN:\nSF:{}\n", file.shown));
            // A block is a construct: the places of one differ in the last part alone.
            let (mut block, mut before) = (0, None);
            for ((start, end, index), b) in &file.branches {
                block += u32::from(before.is_some_and(|at| at != (start, end)));
                before = Some((start, end));
                out.push_str(&format!("BRDA:{},{block},{index},{}\n", b.at.line, b.taken));
            }
            let count = file.count();
            out.push_str(&format!("BRF:{}\nBRH:{}\nend_of_record\n", count.all, count.taken));
        }
        out
    }
}

fn place(id: BranchId) -> Place {
    (id.span.start, id.span.end, id.index)
}

/// The file of a path. What has none, such as standard input, is known by its name.
fn identity(path: &str) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path))
}
