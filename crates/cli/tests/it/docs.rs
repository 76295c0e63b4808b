//! Runs the commands of the documentation and compares their output.
//!
//! In a `console` block of README.md and docs/, each line `$ entail …` is run in the project's root and must
//! print the lines that follow it (standard output, then standard error). `…` in an expected line matches any
//! text, a line `…` any number of lines. A block whose info string is `console no-run` is for reading only.
//! Blocks of `agent` and `lam` must be accepted. One that is marked `wrong CODE` must have this error alone.
//!
//! The pages of the parts Start, Guides and the language are followed in a fresh folder each, as a reader
//! does who has only the page: a block below a line that ends with a name in backticks and a colon is saved
//! under that name, and every command runs in that folder.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> Vec<PathBuf> {
    let mut out = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root().join(name)).to_vec();
    let mut folders = vec![root().join("docs"), root().join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// Pages of the parts Start, Guides and the language of the book.
fn guides() -> Vec<PathBuf> {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut out = Vec::new();
    let followed = ["Start\n", "Guides\n", "The `.agent` language\n"];
    for part in summary.split("\n# ").filter(|part| followed.iter().any(|name| part.starts_with(name))) {
        let links = part.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        out.extend(links.map(|link| root().join("docs").join(link)));
    }
    assert!(out.len() > 10, "{out:?}");
    out
}

/// A fenced block of a page.
struct Block {
    line: usize,
    info: String,
    text: String,
    /// Name of a file in backticks before a colon, at the end of the line above the block.
    file: Option<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let mut above = "";
    let mut lines = page.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let Some(info) = line.trim_start().strip_prefix("```") else {
            above = if line.trim().is_empty() { above } else { line };
            continue;
        };
        let file = above.trim_end().strip_suffix("`:").and_then(|rest| rest.rsplit('`').next());
        let is_name =
            |name: &&str| !name.contains(char::is_whitespace) && Path::new(name).extension().is_some();
        let file = file.filter(is_name);
        let mut text = String::new();
        for (_, inner) in lines.by_ref() {
            if inner.trim_start().starts_with("```") {
                break;
            }
            text.push_str(inner.get(indent.min(inner.len() - inner.trim_start().len())..).unwrap_or(""));
            text.push('\n');
        }
        out.push(Block { line: n + 1, info: info.trim().into(), text, file: file.map(Into::into) });
        above = "";
    }
    out
}

/// Runs a command line of the documentation with a shell, so that quotes mean what they mean to a reader.
fn shell(line: &str, folder: &Path) -> (String, bool) {
    let bin = Path::new(env!("CARGO_BIN_EXE_entail")).parent().unwrap().to_path_buf();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let out = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path)
        // A reader has none, and sees what a program prints into a pipe when it ends.
        .env_remove("PYTHONUNBUFFERED")
        .env("XDG_CONFIG_HOME", folder.join("target/config"))
        .output()
        .unwrap();
    let text = [out.stdout, out.stderr].map(|b| String::from_utf8(b).unwrap()).concat();
    (text, out.status.success())
}

fn line_matches(expected: &str, found: &str) -> bool {
    let mut rest = found;
    let pieces: Vec<&str> = expected.split('…').collect();
    for (i, piece) in pieces.iter().enumerate() {
        match rest.find(piece) {
            Some(0) if i == 0 => rest = &rest[piece.len()..],
            Some(at) if i > 0 => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || expected.ends_with('…')
}

fn matches(expected: &[&str], found: &[&str]) -> bool {
    match expected {
        [] => found.is_empty(),
        ["…", rest @ ..] => (0..=found.len()).any(|n| matches(rest, &found[n..])),
        [first, rest @ ..] => {
            found.first().is_some_and(|f| line_matches(first, f)) && matches(rest, &found[1..])
        }
    }
}

fn trimmed(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.retain(|l| !l.is_empty());
    lines
}

/// Runs the commands of a block in a folder, and describes those that print something else. A command shown
/// without output must simply succeed.
fn run_block(page: &Path, block: &Block, folder: &Path, every: bool) -> (usize, String) {
    let (mut ran, mut wrong) = (0, String::new());
    for part in format!("\n{}", block.text).split("\n$ ").skip(1) {
        let (command, expected) = part.split_once('\n').unwrap_or((part, ""));
        if !every && !command.starts_with("entail ") {
            continue;
        }
        let (found, ok) = shell(command, folder);
        ran += 1;
        let (want, have) = (trimmed(expected), trimmed(&found));
        if !(if want.is_empty() { ok } else { matches(&want, &have) }) {
            let (place, expected) = (format!("{}:{}", page.display(), block.line), expected.trim_end());
            wrong += &format!("{place}: `{command}`\n--- expected\n{expected}\n--- found\n{found}\n");
        }
    }
    (ran, wrong)
}

#[test]
fn commands_print_what_the_pages_show() {
    let (mut ran, mut wrong) = (0, String::new());
    let guides = guides();
    for page in pages().into_iter().filter(|page| !guides.contains(page)) {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in blocks(&text).iter().filter(|block| block.info == "console") {
            let (n, differences) = run_block(&page, block, &root(), false);
            ran += n;
            wrong += &differences;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(ran > 10, "only {ran} commands were found in the documentation");
}

/// A reader of a guide has the `entail` command, an empty folder and the page.
#[test]
fn guides_can_be_followed_in_an_empty_folder() {
    let (mut ran, mut wrong) = (0, String::new());
    for page in guides() {
        let text = std::fs::read_to_string(&page).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for block in blocks(&text) {
            if block.info == "console" {
                let (n, differences) = run_block(&page, &block, folder.path(), true);
                ran += n;
                wrong += &differences;
            } else if let Some(name) = &block.file {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, &block.text).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(ran > 50, "only {ran} commands were found in the guides");
}

#[test]
fn programs_in_the_pages_are_accepted() {
    let (mut seen, mut unexpected) = (0, String::new());
    let guides = guides();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        // The commands of a guide read the files that it saves, which may import one another.
        let is_guide = guides.contains(&page);
        let alone = blocks(&text).into_iter().filter(|block| !is_guide || block.file.is_none());
        for Block { line, info, text: block, .. } in alone {
            let language = info.split_whitespace().next().unwrap_or("");
            if !matches!(language, "agent" | "lam") {
                continue;
            }
            seen += 1;
            let wrong = info.split_once(" wrong").map(|(_, code)| format!("error[{}]", code.trim()));
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join(format!("block.{language}"));
            // What follows `# =` is another way to write the same; syntax's own tests compare them.
            let block = block.split("\n# =\n").next().unwrap_or(&block);
            std::fs::write(&file, block).unwrap();
            let out = Command::new(env!("CARGO_BIN_EXE_entail")).arg("check").arg(&file).output().unwrap();
            let said =
                String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
            let errors: Vec<&str> =
                said.lines().filter_map(|line| line.split_once(':')).map(|(head, _)| head).collect();
            let is_so = match &wrong {
                Some(wrong) => errors.iter().filter(|head| head.starts_with("error[")).eq([&&**wrong]),
                None => out.status.success(),
            };
            if !is_so {
                unexpected += &format!("{}:{line}:\n{block}\n{said}\n", page.display());
            }
        }
    }
    assert!(unexpected.is_empty(), "{unexpected}");
    assert!(seen > 0);
}

/// `docs/diagnostics.md` lists every code; `cargo xtask generate` writes it.
#[test]
fn the_index_of_diagnostics_is_current() {
    let out =
        Command::new(env!("CARGO_BIN_EXE_entail")).args(["explain", "--format", "json"]).output().unwrap();
    let table = xtask::generate::diagnostics(&String::from_utf8(out.stdout).unwrap()).unwrap();
    let page = std::fs::read_to_string(root().join(xtask::generate::DIAGNOSTICS)).unwrap();
    let current = xtask::generate::replaced(&page, "diagnostics", &table).unwrap();
    assert!(page == current, "run `cargo xtask generate`");
}

/// A path in backticks is relative to the root, to the folder that was named before it, or to one above that.
/// A word in capitals, as in `docs/frontends/NAME.md`, is a placeholder for a name that does not exist yet.
#[test]
fn contributing_names_files_that_exist() {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let mut folder = root();
    let mut seen = 0;
    for code in text.split('`').skip(1).step_by(2) {
        let is_path = code.contains('/') || [".rs", ".toml", ".v"].iter().any(|end| code.ends_with(end));
        if !is_path || code.contains(char::is_whitespace) {
            continue;
        }
        let is_new = |part: &str| ["CODE", "NAME", "STEP"].iter().any(|word| part.contains(word));
        let known: PathBuf = code.split('/').take_while(|part| !is_new(part)).collect();
        let found = root().join(&known);
        let found = if found.exists() {
            found
        } else {
            let place = folder.ancestors().map(|above| above.join(&known)).find(|path| path.exists());
            place.unwrap_or_else(|| panic!("CONTRIBUTING.md: there is no `{code}`"))
        };
        folder = if found.is_dir() { found } else { found.parent().unwrap().to_path_buf() };
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
}
