//! A scanner of Rust text: which parts are comments, and which are string literals.

/// A part of a file that is no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Line of its beginning, from 1.
    pub line: usize,
    /// Comment or literal.
    pub kind: PartKind,
    /// Text without quotes, and without the slashes of a line comment.
    pub text: String,
}

/// Kinds of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// `/// …` or `//! …`.
    Doc,
    /// `// …` or `/* … */`.
    Comment,
    /// `"…"` or `r"…"`. Escapes are left as they are, except for line continuations.
    Literal,
}

/// Returns the comments and string literals of a file, in their order.
pub fn parts(source: &str) -> Vec<Part> {
    let text: Vec<char> = source.chars().collect();
    let (mut out, mut at, mut line) = (Vec::new(), 0, 1);
    while at < text.len() {
        let rest = |n: usize| text.get(at + n).copied().unwrap_or('\0');
        let start = line;
        match text[at] {
            '\n' => line += 1,
            '/' if rest(1) == '/' => {
                let end = (at..text.len()).find(|i| text[*i] == '\n').unwrap_or(text.len());
                let comment: String = text[at + 2..end].iter().collect();
                let is_doc = comment.starts_with(['/', '!']) && !comment.starts_with("//");
                let kind = if is_doc { PartKind::Doc } else { PartKind::Comment };
                let body = comment.trim_start_matches(['/', '!']).trim().to_string();
                out.push(Part { line, kind, text: body });
                at = end;
                continue;
            }
            '/' if rest(1) == '*' => {
                let end =
                    (at + 2..text.len()).find(|i| text[*i] == '/' && text[*i - 1] == '*' && *i > at + 2);
                let end = end.map_or(text.len(), |i| i + 1);
                line += text[at..end].iter().filter(|c| **c == '\n').count();
                out.push(Part { line: start, kind: PartKind::Comment, text: text[at..end].iter().collect() });
                at = end;
                continue;
            }
            // A character such as '"', and no lifetime.
            '\'' if rest(1) == '\\' => {
                at += 3;
                while at < text.len() && text[at] != '\'' {
                    at += 1;
                }
            }
            '\'' if rest(2) == '\'' => at += 2,
            '"' => {
                let hashes = (0..at).rev().take_while(|i| text[*i] == '#').count();
                let is_raw = at > hashes && text[at - hashes - 1] == 'r';
                let (body, end) = if is_raw { raw(&text, at, hashes) } else { plain(&text, at) };
                line += text[at..end].iter().filter(|c| **c == '\n').count();
                out.push(Part { line: start, kind: PartKind::Literal, text: body });
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    out
}

/// Returns the body of a raw literal whose quote is at `at`, and where it ends.
fn raw(text: &[char], at: usize, hashes: usize) -> (String, usize) {
    let closes = |i: &usize| text[*i] == '"' && (1..=hashes).all(|n| text.get(*i + n) == Some(&'#'));
    let end = (at + 1..text.len()).find(closes).unwrap_or(text.len());
    (text[at + 1..end].iter().collect(), (end + 1 + hashes).min(text.len()))
}

/// Returns the body of a literal whose quote is at `at`, and where it ends.
fn plain(text: &[char], at: usize) -> (String, usize) {
    let (mut body, mut i) = (String::new(), at + 1);
    while i < text.len() && text[i] != '"' {
        if text[i] == '\\' && text.get(i + 1) == Some(&'\n') {
            i += 2;
            while text.get(i).is_some_and(|c| c.is_whitespace()) {
                i += 1;
            }
            continue;
        }
        if text[i] == '\\' {
            body.push('\\');
            i += 1;
        }
        body.extend(text.get(i));
        i += 1;
    }
    (body, (i + 1).min(text.len()))
}

/// Returns the file up to its inline tests, which begin with `#[cfg(test)]` and `mod … {`.
pub fn without_tests(source: &str) -> &str {
    let mut rest = 0;
    while let Some(found) = source[rest..].find("#[cfg(test)]\nmod ") {
        let at = rest + found;
        let item = source[at..].split_once("\nmod ").map_or("", |(_, item)| item);
        if item.lines().next().is_some_and(|l| l.ends_with('{')) {
            return &source[..at];
        }
        rest = at + 1;
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(PartKind, String, usize)> {
        parts(source).into_iter().map(|p| (p.kind, p.text, p.line)).collect()
    }

    #[test]
    fn literals_and_comments_are_told_apart() {
        let source = "/// a \"b\"\nfn f<'a>(c: char) { // d\n    g('\"', \"h // i\", r#\"j\"k\"#, '\\'', \"l \\\n       m\"); }\n";
        let expected = [
            (PartKind::Doc, "a \"b\"".into(), 1),
            (PartKind::Comment, "d".into(), 2),
            (PartKind::Literal, "h // i".into(), 3),
            (PartKind::Literal, "j\"k".into(), 3),
            (PartKind::Literal, "l m".into(), 3),
        ];
        assert_eq!(kinds(source), expected);
    }

    #[test]
    fn tests_in_a_file_are_cut_off_and_declared_ones_are_not() {
        let source = "#[cfg(test)]\nmod tests;\nfn a() {}\n#[cfg(test)]\nmod more {\n}\n";
        assert_eq!(without_tests(source), "#[cfg(test)]\nmod tests;\nfn a() {}\n");
    }
}
