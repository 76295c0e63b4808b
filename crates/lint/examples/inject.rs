//! Prints the outcome of fault injection (seed 000, Experiment A): `cargo run -p lint --example inject`.

#[path = "../tests/it/inject/experiment.rs"]
mod experiment;

use std::io::Write;

fn main() -> std::io::Result<()> {
    let result = experiment::experiment();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:<10} {:<28} {:<6} {:>4} {:>6} {:>7}",
        "format", "fault", "code", "put", "found", "others"
    )?;
    let (mut put, mut found, mut others) = (0, 0, 0);
    for ((format, fault, code), row) in &result.rows {
        let other = row.others.len();
        writeln!(out, "{format:<10} {fault:<28} {code:<6} {:>4} {:>6} {other:>7}", row.put, row.found)?;
        (put, found, others) = (put + row.put, found + row.found, others + other);
    }
    let alarms = others + result.false_alarms.len();
    writeln!(
        out,
        "\n{} sound configurations, {} kinds of faults, {put} faults put in",
        result.sound,
        result.rows.len()
    )?;
    writeln!(out, "recall    {found}/{put} = {:.1} %", 100.0 * found as f64 / put.max(1) as f64)?;
    writeln!(
        out,
        "precision {found}/{} = {:.1} %",
        found + alarms,
        100.0 * found as f64 / (found + alarms).max(1) as f64
    )
}
