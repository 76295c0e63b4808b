//! The standard library: files of the language that are a part of it, which `use "std:lists";` imports.

use crate::scopes::declared_name;
use diagnostics::{FileId, nearest};
use syntax::agent::ast::Name;

/// Beginning of the paths of its files.
const PREFIX: &str = "std:";

/// The files, by name.
const FILES: [(&str, &str); 4] = [
    ("dates", include_str!("library/dates.agent")),
    ("lists", include_str!("library/lists.agent")),
    ("numbers", include_str!("library/numbers.agent")),
    ("texts", include_str!("library/texts.agent")),
];

/// Numbers of the files count down from here, behind those of the prelude and of generated code. Nothing of
/// them is among the sources of a run.
const FIRST_FILE: u32 = u32::MAX - 2;

/// The text of a file of the standard library: that of the path `std:lists`, for example.
pub fn library_text(path: &str) -> Option<&'static str> {
    load(path)?.ok().map(|(_, text)| text)
}

/// The name of a function in a file of the library, if it is declared there.
pub(super) fn function_of<'n>(file: &str, name: &'n Name) -> Option<&'n str> {
    let number = (0u32..).zip(FILES).find(|(_, (n, _))| *n == file)?.0;
    (name.span.file == FileId(FIRST_FILE - number)).then(|| declared_name(&name.text))
}

/// The file that a path means; `None` if it is no path of the library.
///
/// # Errors
/// The library has no such file.
pub(super) fn load(path: &str) -> Option<Result<(FileId, &'static str), String>> {
    let name = path.strip_prefix(PREFIX)?;
    let numbered = (0u32..).zip(FILES);
    let found = numbered.into_iter().find(|(_, (n, _))| *n == name);
    Some(found.map(|(i, (_, text))| (FileId(FIRST_FILE - i), text)).ok_or_else(|| {
        let names = FILES.map(|(n, _)| format!("`{PREFIX}{n}`"));
        match nearest(name, FILES.iter().map(|(n, _)| *n)) {
            Some(near) => format!("the library has no such file; did you mean `{PREFIX}{near}`?"),
            None => format!("the library has {}", names.join(", ")),
        }
    }))
}
