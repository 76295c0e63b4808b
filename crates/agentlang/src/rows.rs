//! Data sets and samples of tests: which runs a test has, and how many of them must pass.
//!
//! Invariant: no file is opened here. Whoever runs a test gives the text of its data set.

use super::codes;
use super::csv::{Cell, Malformed, Records};
use super::decls::Decls;
use super::types::plain;
use super::{Entry, Module};
use core_ir::{Data, Name, Num, Type};
use diagnostics::{Diagnostic, FileId, Span, clip_to};
use serde_json::Value;
use std::sync::Arc;
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

/// Format of a data set, which the ending of its file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowFormat {
    /// A JSON object on each line.
    JsonLines,
    /// Comma-separated values below a line of names.
    Table,
}

impl RowFormat {
    fn of(path: &str) -> Option<RowFormat> {
        match path.rsplit_once('.')?.1 {
            "jsonl" => Some(RowFormat::JsonLines),
            "csv" => Some(RowFormat::Table),
            _ => None,
        }
    }
}

/// A row as it is written: its place in the text, and its value or what is wrong with it and what to do.
struct Written {
    start: usize,
    end: usize,
    value: Result<Value, (String, String)>,
}

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
            if RowFormat::of(&rows.path.value).is_none() {
                out.push(
                    Diagnostic::error(
                        codes::BAD_ROWS,
                        "a data set is a file with the ending `.jsonl` or `.csv`",
                        rows.path.span,
                    )
                    .help("`.jsonl` has a JSON object on each line, `.csv` the names of the fields in its first line"),
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

    /// Reads the rows from the text of the file.
    ///
    /// # Errors
    /// Each row that is none, up to a bound; a table whose first line does not name fields; a file without
    /// rows or with too many.
    pub fn rows(&self, file: FileId, text: &str) -> Result<Vec<Row>, Vec<Diagnostic>> {
        match RowFormat::of(&self.path) {
            Some(RowFormat::Table) => {
                let mut records = Records::new(text);
                let columns = match records.next() {
                    Some(header) => self.columns(file, &header).map_err(|d| vec![*d])?,
                    None => Vec::new(),
                };
                self.read(
                    file,
                    text,
                    records.map(|r| Written {
                        start: r.start,
                        end: r.end,
                        value: self.record(&columns, &r.cells, r.end - r.start),
                    }),
                )
            }
            _ => self.read(file, text, lines(text)),
        }
    }

    /// Reads rows that are written.
    fn read(
        &self,
        file: FileId,
        text: &str,
        all: impl Iterator<Item = Written>,
    ) -> Result<Vec<Row>, Vec<Diagnostic>> {
        let (mut rows, mut found, mut more) = (Vec::new(), Vec::new(), 0usize);
        for (number, row) in (1..).zip(all) {
            if usize::saturating_mul(number, self.samples as usize) > MAX_RUNS {
                let message = format!("more than {MAX_RUNS} runs of one test");
                return Err(vec![
                    Diagnostic::error(codes::BAD_ROWS, message, self.span)
                        .help("shorten the data set, divide it between tests, or take fewer samples"),
                ]);
            }
            let span = place(file, text, row.start, row.end);
            match row.value.and_then(|json| self.row(&json)) {
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
                let help = match RowFormat::of(&self.path) {
                    Some(RowFormat::Table) => {
                        "write a row on each of its lines, below the names of the fields"
                    }
                    _ => "write a JSON object on each of its lines",
                };
                Err(vec![Diagnostic::error(codes::BAD_ROWS, message, self.span).help(help)])
            }
            (false, true) => Ok(rows),
        }
    }

    /// Checks a row against the type.
    fn row(&self, json: &Value) -> Result<Data, (String, String)> {
        self.ty.read_input(json).map_err(|e| {
            let help = match &self.ty {
                Type::Dyn => "correct the row".to_string(),
                _ => "correct the row, or the type that the test declares".to_string(),
            };
            (clip_to(&e.message, 300), e.help.as_deref().map_or(help, str::to_string))
        })
    }

    /// The fields of the type, if it is known.
    fn fields(&self) -> Option<Arc<[(Name, Type)]>> {
        let mut ty = self.ty.unfolded();
        while let Type::Refined(r) = &ty {
            ty = r.0.unfolded();
        }
        match ty {
            Type::Record(fields) => Some(fields),
            _ => None,
        }
    }

    /// The columns of a table: the names in its first line, with the types of these fields.
    fn columns(
        &self,
        file: FileId,
        header: &super::csv::Record,
    ) -> Result<Vec<(String, Type)>, Box<Diagnostic>> {
        let end = header.end.min(header.start + MAX_SPAN_BYTES);
        let span = Span { file, start: offset(header.start), end: offset(end) };
        let wrong = |message: String, help: &str| {
            let d = Diagnostic::error(codes::BAD_ROWS, message, span);
            Box::new(d.remark(self.span, "the data set of this test").help(help))
        };
        let cells = header.cells.as_ref().map_err(|why| {
            let (why, help) = malformed(*why);
            wrong(why, &help)
        })?;
        let fields = self.fields();
        let mut columns: Vec<(String, Type)> = Vec::with_capacity(cells.len());
        for cell in cells {
            let name = cell.text.trim();
            let shown = diagnostics::clip(name);
            if name.is_empty() {
                return Err(wrong(
                    "a column has no name".into(),
                    "the first line of a table names its fields",
                ));
            }
            if columns.iter().any(|(n, _)| n == name) {
                return Err(wrong(
                    format!("two columns are called `{shown}`"),
                    "give each a name of its own",
                ));
            }
            let ty = match &fields {
                None => Type::Dyn,
                Some(fields) => match fields.iter().find(|(n, _)| **n == *name) {
                    Some((_, ty)) => ty.clone(),
                    None => {
                        let near = diagnostics::nearest(name, fields.iter().map(|(n, _)| &**n));
                        let help = match near {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => "correct the table, or the type that the test declares".to_string(),
                        };
                        return Err(wrong(format!("a row has no field `{shown}`"), &help));
                    }
                },
            };
            columns.push((name.to_string(), ty));
        }
        Ok(columns)
    }

    /// A record of a table as an object.
    fn record(
        &self,
        columns: &[(String, Type)],
        cells: &Result<Vec<Cell>, Malformed>,
        bytes: usize,
    ) -> Result<Value, (String, String)> {
        if bytes > MAX_ROW_BYTES {
            return Err(too_long());
        }
        let cells = cells.as_ref().map_err(|why| malformed(*why))?;
        if cells.len() != columns.len() {
            let count = |n: usize| format!("{n} cell{}", if n == 1 { "" } else { "s" });
            let why = format!("{}, the first line has {}", count(cells.len()), count(columns.len()));
            return Err((why, "a cell with a comma stands in quotes: `\"a, b\"`".into()));
        }
        let mut object = serde_json::Map::new();
        for ((name, ty), cell) in columns.iter().zip(cells) {
            let value = value_of(ty, cell).map_err(|expected| {
                let found = diagnostics::clip(&cell.text);
                let why = format!("$.{name}: expected {expected}, found `{found}`");
                (why, "correct the row, or the type that the test declares".to_string())
            })?;
            object.insert(name.clone(), value);
        }
        Ok(Value::Object(object))
    }
}

/// The value of a cell for a field of a type, or what was expected.
fn value_of(ty: &Type, cell: &Cell) -> Result<Value, &'static str> {
    let json = || serde_json::from_str::<Value>(cell.text.trim());
    let is_absent = cell.text.is_empty() && !cell.is_quoted;
    match ty {
        Type::Refined(r) => value_of(&r.0, cell),
        Type::Option(_) | Type::Null if is_absent => Ok(Value::Null),
        Type::Option(inside) => value_of(inside, cell),
        Type::Str | Type::Enum(_) | Type::Dyn => Ok(Value::String(cell.text.clone())),
        Type::Num => json().ok().filter(Value::is_number).ok_or("a number"),
        Type::Bool => json().ok().filter(Value::is_boolean).ok_or("`true` or `false`"),
        // A case without fields is a name.
        Type::Variant(_) => Ok(json().unwrap_or_else(|_| Value::String(cell.text.clone()))),
        _ => json().map_err(|_| "JSON"),
    }
}

fn malformed(why: Malformed) -> (String, String) {
    let (why, help) = match why {
        Malformed::Unclosed => ("a quote is not closed", "a quote inside of quotes is doubled: `\"\"`"),
        Malformed::AfterQuote => {
            ("text follows a closing quote", "a quote inside of quotes is doubled: `\"say \"\"hi\"\"\"`")
        }
    };
    (why.into(), help.into())
}

fn too_long() -> (String, String) {
    ("longer than 1 MiB".into(), "shorten it".into())
}

fn offset(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The place of a row; of a long one, its beginning.
fn place(file: FileId, text: &str, start: usize, end: usize) -> Span {
    let most = end.min(start + MAX_SPAN_BYTES);
    let end = (start..=most).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(start);
    Span { file, start: offset(start), end: offset(end) }
}

/// The rows of a text with a JSON object on each line. Empty lines are none.
fn lines(text: &str) -> impl Iterator<Item = Written> {
    let mut next = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = next + (line.len() - line.trim_start().len());
        next += line.len();
        let content = line.trim();
        let written = Written { start, end: start + content.len(), value: object(content) };
        (!content.is_empty()).then_some(written)
    })
}

/// Reads an object, or says why a line is none and what to do.
fn object(line: &str) -> Result<Value, (String, String)> {
    if line.len() > MAX_ROW_BYTES {
        return Err(too_long());
    }
    let json: Value = serde_json::from_str(line).map_err(|e| {
        let column = e.column();
        let why = if e.is_eof() { "the object does not end on its line" } else { "malformed JSON" };
        (format!("{why} (column {column})"), "each line is a whole JSON object".to_string())
    })?;
    match json.is_object() {
        true => Ok(json),
        false => Err(("not an object".into(), "write a JSON object on each line".into())),
    }
}
