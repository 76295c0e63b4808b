//! `cargo xtask COMMAND`: chores of the repository.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line")]
use std::process::{Command, ExitCode};
use xtask::{File, generate, scaffold, tidy};

const HELP: &str = "\
usage: cargo xtask COMMAND

  tidy       check line lengths, words, links and the structure of pages; `cargo test -p xtask` does the same
  new-rule CODE NAME
             begin a rule of lint, such as `new-rule L027 silent-failure`
  new-frontend NAME
             begin a front end that reads YAML
  generate   write the computed parts of the book: indexes of rules, front ends and diagnostics, exit statuses
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["tidy"] => tidy(),
        ["generate"] => generate(),
        ["new-rule", code, name] => new_rule(code, name),
        ["new-frontend", name] => new_front_end(name),
        _ => Err(HELP.into()),
    };
    match result {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn files() -> Result<Vec<File>, String> {
    xtask::read_repository(&xtask::root()).map_err(|e| e.to_string())
}

fn tidy() -> Result<String, String> {
    let report = tidy::check(&files()?, xtask::EXCEPTIONS, &|path| xtask::root().join(path).exists());
    for (check, stem, count) in &report.lower {
        eprintln!("exceptions.tsv: `{}` of `{stem}` may be lowered to {count}", check.name());
    }
    if report.findings.is_empty() {
        return Ok("tidy".into());
    }
    let shown: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    Err(format!("{}\n{} untidy places", shown.join("\n"), shown.len()))
}

fn generate() -> Result<String, String> {
    let files = files()?;
    // These need no other crate, so they are current even if the rest does not compile.
    let mut pages = generate::pages(&files);
    write(&pages)?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let explain = ["run", "--quiet", "--package", "entail", "--", "explain", "--format", "json"];
    let out =
        Command::new(cargo).args(explain).current_dir(xtask::root()).output().map_err(|e| e.to_string())?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned());
    }
    let table = generate::diagnostics(&String::from_utf8_lossy(&out.stdout))?;
    if let Some(page) = files.iter().find(|f| f.path == generate::DIAGNOSTICS) {
        let text = generate::replaced(&page.text, "diagnostics", &table);
        let text = text.ok_or_else(|| format!("{}: no generated part `diagnostics`", page.path))?;
        if text != page.text {
            pages.push(File { path: page.path.clone(), text });
        }
    }
    write(&pages)
}

fn new_rule(code: &str, name: &str) -> Result<String, String> {
    let written = write(&scaffold::rule(&files()?, code, name)?)?;
    Ok(format!("{written}\nnext: write the check and the page, then `cargo xtask generate`"))
}

fn new_front_end(name: &str) -> Result<String, String> {
    let written = write(&scaffold::front_end(&files()?, name)?)?;
    let expected = "UPDATE_EXPECTED=1 cargo test -p frontends";
    Ok(format!("{written}\nnext: write the source and the page, `{expected}`, then `cargo xtask generate`"))
}

fn write(files: &[File]) -> Result<String, String> {
    for file in files {
        let path = xtask::root().join(&file.path);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder.and_then(|()| std::fs::write(&path, &file.text)).map_err(|e| format!("{}: {e}", file.path))?;
    }
    let written: Vec<&str> = files.iter().map(|f| f.path.as_str()).collect();
    Ok(if written.is_empty() {
        "nothing to write".into()
    } else {
        format!("written: {}", written.join(", "))
    })
}
