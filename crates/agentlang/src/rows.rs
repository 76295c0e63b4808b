//! Data sets and samples of tests: which runs a test has, and how many of them must pass.
//!
//! Invariant: no file is opened here. Whoever runs a test gives the text of its data set.

use super::codes;
use super::decls::Decls;
use super::types::plain;
use super::{Entry, Module};
use core_ir::{Data, Name, Num, Type};
use diagnostics::{Diagnostic, FileId, Span, clip_to};
use serde_json::Value;
use syntax::agent::ast::{Item, Number, Program, Test};

/// Field of a test's input that holds the row.
pub const ROW: &str = "row";

/// Maximum number of runs of a test: its rows times its samples.
const MAX_RUNS: usize = 10_000;
/// Maximum number of bytes of a row.
const MAX_ROW_BYTES: usize = 1 << 20;
/// Rows with errors beyond this number are counted, not shown.
const MAX_SHOWN: usize = 5;
/// Bytes of a row that a message marks.
const MAX_SPAN_BYTES: usize = 200;

/// The data set of a test.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// Path as the program says it, relative to its folder.
    pub path: String,
    /// Place of the path.
    pub span: Span,
    /// Type of a row.
    ty: Type,
    /// Number of runs for each row.
    samples: u32,
}

/// A row of a data set.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number among the rows, from 1.
    pub number: usize,
    /// Its line.
    pub span: Span,
    /// Input of the test.
    pub input: Data,
}

/// Repetition of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    /// Number of runs.
    pub count: u32,
    /// Required rate, as it is written.
    pub required: String,
    /// Number of runs that must pass: the least whole number that reaches the rate.
    pub must_pass: u32,
}

/// The input of a test.
pub(super) fn input_of(test: &Test, decls: &Decls) -> Type {
    let ty = test.rows.as_ref().and_then(|r| decls.rows.get(&r.span));
    Type::record(ty.map(|ty| (Name::from(ROW), ty.clone())))
}

/// Reports data sets and samples that a test can't have.
pub(super) fn check(main: FileId, program: &Program, decls: &Decls, out: &mut Vec<Diagnostic>) {
    for item in &program.items {
        let Item::Test(test) = item else { continue };
        if test.span.file != main {
            continue;
        }
        if let Some(rows) = &test.rows {
            let ty = decls.rows.get(&rows.span).map(plain);
            if let (Some(written), Some(ty)) = (&rows.ty, ty)
                && !matches!(ty, Type::Record(_) | Type::Dyn)
            {
                out.push(
                    Diagnostic::error(codes::BAD_ROWS, "a row is a record", written.span)
                        .help("declare the fields: `row: Obj{ticket: String, team: String}`"),
                );
            }
            if !rows.path.value.ends_with(".jsonl") {
                out.push(
                    Diagnostic::error(
                        codes::BAD_ROWS,
                        "a data set is a file with the ending `.jsonl`",
                        rows.path.span,
                    )
                    .help("write a JSON object on each line of such a file"),
                );
            }
        }
        if let Some(samples) = &test.samples
            && let Err(d) = samples_of(&samples.count, &samples.rate)
        {
            out.push(*d);
        }
    }
}

/// The samples that a test says.
fn samples_of(count: &Number, rate: &Number) -> Result<Samples, Box<Diagnostic>> {
    let wrong = |message: String, at: Span, help: &str| {
        Box::new(Diagnostic::error(codes::BAD_SAMPLES, message, at).help(help))
    };
    let count_of = |text: &str| text.parse::<u32>().ok().filter(|n| (1..=MAX_RUNS as u32).contains(n));
    let Some(runs) = count_of(&count.text) else {
        let message = format!("a test has 1 to {MAX_RUNS} samples, not {}", clip_to(&count.text, 40));
        return Err(wrong(message, count.span, "write `samples 20 pass >= 0.9`"));
    };
    let range = || {
        let message = format!("the required rate is above 0 and at most 1, not {}", clip_to(&rate.text, 40));
        wrong(message, rate.span, "90 percent are `0.9`")
    };
    let exact = rate.text.parse::<Num>().map_err(|_| range())?;
    let one = Num::from(1);
    if exact <= Num::from(0) || exact > one {
        return Err(range());
    }
    let needed = exact.mul(&Num::from(i64::from(runs))).map_err(|_| range())?;
    // Exact: a floating-point product of 0.07 and 100 is more than 7.
    let whole = needed.floor();
    let must_pass =
        whole.to_usize().and_then(|n| u32::try_from(n).ok()).map_or(runs, |n| n + u32::from(whole < needed));
    Ok(Samples { count: runs, required: rate.text.clone(), must_pass })
}

impl Module {
    fn test_of(&self, entry: &Entry) -> Option<&Test> {
        match self.program.items.get(entry.item) {
            Some(Item::Test(test)) => Some(test),
            _ => None,
        }
    }

    /// Returns the repetition of a test; `None` if it runs once.
    pub fn samples(&self, entry: &Entry) -> Option<Samples> {
        let samples = self.test_of(entry)?.samples.as_ref()?;
        samples_of(&samples.count, &samples.rate).ok()
    }

    /// Returns the data set of a test; `None` if it has none.
    pub fn data_set(&self, entry: &Entry) -> Option<DataSet> {
        let rows = self.test_of(entry)?.rows.as_ref()?;
        Some(DataSet {
            path: rows.path.value.clone(),
            span: rows.path.span,
            ty: self.decls.rows.get(&rows.span)?.clone(),
            samples: self.samples(entry).map_or(1, |s| s.count),
        })
    }
}

impl DataSet {
    /// The report that the file can't be the data set.
    pub fn unreadable(&self, why: &str) -> Diagnostic {
        let message = format!("can't read `{}`: {why}", diagnostics::clip(&self.path));
        Diagnostic::error(codes::BAD_ROWS, message, self.span)
            .help("the path is relative to the folder of this file and stays in its project")
    }

    /// Reads the rows from the text of the file, a JSON object on each line. Empty lines are none.
    ///
    /// # Errors
    /// Each line that is no row, up to a bound; a file without rows or with too many.
    pub fn rows(&self, file: FileId, text: &str) -> Result<Vec<Row>, Vec<Diagnostic>> {
        let (mut rows, mut found, mut more) = (Vec::new(), Vec::new(), 0usize);
        let mut start = 0usize;
        for line in text.split_inclusive('\n') {
            let content = line.trim();
            let offset = start + (line.len() - line.trim_start().len());
            start += line.len();
            if content.is_empty() {
                continue;
            }
            let number = rows.len() + found.len() + more + 1;
            if number.saturating_mul(self.samples as usize) > MAX_RUNS {
                let message = format!("more than {MAX_RUNS} runs of one test");
                return Err(vec![
                    Diagnostic::error(codes::BAD_ROWS, message, self.span)
                        .help("shorten the data set, divide it between tests, or take fewer samples"),
                ]);
            }
            // A long line is not shown as a whole.
            let shown = content.len().min(MAX_SPAN_BYTES);
            let place = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let shown = (0..=shown).rev().find(|n| content.is_char_boundary(*n)).unwrap_or(0);
            let span = Span { file, start: place(offset), end: place(offset + shown) };
            match self.row(content) {
                Ok(row) => {
                    let input = Data::record([(Name::from(ROW), row)]);
                    rows.push(Row { number, span, input });
                }
                Err(_) if found.len() >= MAX_SHOWN => more += 1,
                Err((why, help)) => found.push(
                    Diagnostic::error(codes::BAD_ROWS, format!("row {number}: {why}"), span)
                        .remark(self.span, "the data set of this test")
                        .help(help),
                ),
            }
        }
        if more > 0
            && let Some(last) = found.pop()
        {
            found.push(last.help(format!("{more} more rows are wrong")));
        }
        match (rows.is_empty(), found.is_empty()) {
            (_, false) => Err(found),
            (true, true) => {
                let message = format!("`{}` has no rows", diagnostics::clip(&self.path));
                Err(vec![
                    Diagnostic::error(codes::BAD_ROWS, message, self.span)
                        .help("write a JSON object on each of its lines"),
                ])
            }
            (false, true) => Ok(rows),
        }
    }

    /// Reads a row, or says why a line is none and what to do.
    fn row(&self, line: &str) -> Result<Data, (String, String)> {
        if line.len() > MAX_ROW_BYTES {
            return Err(("longer than 1 MiB".into(), "shorten it".into()));
        }
        let json: Value = serde_json::from_str(line).map_err(|e| {
            let column = e.column();
            let why = if e.is_eof() { "the object does not end on its line" } else { "malformed JSON" };
            (format!("{why} (column {column})"), "each line is a whole JSON object".to_string())
        })?;
        if !json.is_object() {
            return Err(("not an object".into(), "write a JSON object on each line".into()));
        }
        self.ty.read_input(&json).map_err(|e| {
            let help = match &self.ty {
                Type::Dyn => "correct the row".to_string(),
                _ => "correct the row, or the type that the test declares".to_string(),
            };
            (clip_to(&e.message, 300), e.help.as_deref().map_or(help, str::to_string))
        })
    }
}
