//! Texts with `{name}` as Python's `str.format` reads them.
//!
//! Entry point: [`split`].

/// A part of a text.
pub enum Piece {
    /// Text.
    Text(String),
    /// The name in `{name}`.
    Name(String),
}

/// Splits a text at `{name}`; doubled braces are braces, and braces around anything but a name are text.
pub fn split(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut run = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        run.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        if rest[at + 1..].starts_with(brace) {
            run.push_str(brace);
            rest = &rest[at + 2..];
            continue;
        }
        let end = (brace == "{").then(|| rest[at..].find('}')).flatten();
        let name = end.map(|end| &rest[at + 1..at + end]);
        match (name, end) {
            (Some(name), Some(end))
                if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') =>
            {
                if !run.is_empty() {
                    out.push(Piece::Text(std::mem::take(&mut run)));
                }
                out.push(Piece::Name(name.to_string()));
                rest = &rest[at + end + 1..];
            }
            _ => {
                run.push_str(brace);
                rest = &rest[at + 1..];
            }
        }
    }
    run.push_str(rest);
    if !run.is_empty() {
        out.push(Piece::Text(run));
    }
    out
}
