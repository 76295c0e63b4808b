//! A reader of the Markdown that the book uses: fences, headings, links.

/// One line of a page.
#[derive(Clone, Copy, Debug)]
pub struct Line<'t> {
    /// Number, from 1.
    pub number: usize,
    /// Text without the line break.
    pub text: &'t str,
    /// Part of a fenced block, its fences included.
    pub is_code: bool,
}

/// Returns the lines of a page.
pub fn lines(page: &str) -> Vec<Line<'_>> {
    let mut fence: Option<&str> = None;
    let mut out = Vec::new();
    for (n, text) in page.lines().enumerate() {
        let start = text.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| start.starts_with(m));
        let is_code = fence.is_some() || mark.is_some();
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        out.push(Line { number: n + 1, text, is_code });
    }
    out
}

/// Replaces inline code by spaces, so that what is left is prose.
pub fn without_code(line: &str) -> String {
    let mut out = String::new();
    for (n, part) in line.split('`').enumerate() {
        if n % 2 == 0 {
            out.push_str(part);
        } else {
            out.extend(std::iter::repeat_n(' ', part.chars().count() + 2));
        }
    }
    out
}

/// One sentence of a page.
#[derive(Clone, Debug)]
pub struct Sentence {
    /// Line of its paragraph or item, from 1.
    pub line: usize,
    /// Text, with `CODE` for inline code and without the targets of links.
    pub text: String,
}

/// Returns the sentences of a page's paragraphs and items of lists. Tables, headings and fenced blocks have
/// none. A period before a capital letter, emphasis or code ends one, and so does a colon.
pub fn sentences(lines: &[Line<'_>]) -> Vec<Sentence> {
    let mut blocks: Vec<Sentence> = Vec::new();
    let mut is_open = false;
    for line in lines {
        let text = line.text.trim();
        if line.is_code || text.is_empty() || text.starts_with(['|', '#', '<']) {
            is_open = false;
            continue;
        }
        let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_numbered = number.len() < text.len() && number.starts_with(". ");
        let item = text.strip_prefix("- ").or_else(|| is_numbered.then(|| &number[2..]));
        match blocks.last_mut().filter(|_| is_open && item.is_none()) {
            Some(block) => block.text.push_str(&format!(" {text}")),
            None => blocks.push(Sentence { line: line.number, text: item.unwrap_or(text).to_string() }),
        }
        is_open = true;
    }
    blocks.iter().flat_map(|block| split(block.line, &prose(&block.text))).collect()
}

/// Replaces inline code by `CODE` and removes the targets of links.
fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let fence = rest[at..].chars().take_while(|c| *c == '`').count();
        let (before, code) = (&rest[..at], &rest[at + fence..]);
        let Some(end) = code.find(&"`".repeat(fence)) else { break };
        out.push_str(before);
        out.push_str("CODE");
        rest = &code[end + fence..];
    }
    out.push_str(rest);
    let mut parts = out.split("](");
    let first = parts.next().unwrap_or("").to_string();
    parts.fold(first, |text, part| text + "]" + part.split_once(')').map_or("", |(_, after)| after))
}

fn split(line: usize, text: &str) -> Vec<Sentence> {
    let mut out = vec![Sentence { line, text: String::new() }];
    let words: Vec<&str> = text.split_whitespace().collect();
    for (n, word) in words.iter().enumerate() {
        if let Some(last) = out.last_mut() {
            last.text.push_str(&format!("{}{word}", if last.text.is_empty() { "" } else { " " }));
        }
        let end = word.trim_end_matches([')', '"', '*', '_', ']']);
        let is_new = words.get(n + 1).is_some_and(|next| {
            let first = next.chars().find(|c| c.is_alphanumeric());
            next.starts_with('*') || first.is_some_and(|c| !c.is_lowercase())
        });
        if end.ends_with(':') || (end.ends_with(['.', '!', '?', '…']) && is_new) {
            out.push(Sentence { line, text: String::new() });
        }
    }
    out
}

/// Returns the headings of a page with their levels, from 1 to 6.
pub fn headings(page: &str) -> Vec<(usize, &str)> {
    let heads = lines(page).into_iter().filter(|l| !l.is_code).filter_map(|l| {
        let level = l.text.chars().take_while(|c| *c == '#').count();
        let title = l.text.get(level..)?.strip_prefix(' ')?;
        (1..=6).contains(&level).then_some((level, title.trim()))
    });
    heads.collect()
}

/// Returns the anchors of a page's headings, as mdBook and GitHub make them.
pub fn anchors(page: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (_, title) in headings(page) {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let base: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let same = out.iter().filter(|a| **a == base || a.starts_with(&format!("{base}-"))).count();
        let is_taken = out.contains(&base);
        out.push(if is_taken { format!("{base}-{same}") } else { base });
    }
    out
}

/// Returns the targets of the links and images of a page, each with its line.
pub fn links(page: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    // A link's text may continue on the next line, its target does not.
    for line in lines(page).into_iter().filter(|l| !l.is_code) {
        let prose = without_code(line.text);
        for part in prose.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                out.push((line.number, target.trim().to_string()));
            }
        }
    }
    out
}

/// Returns the text of the section with a heading of level 2, without the heading.
pub fn section<'p>(page: &'p str, title: &str) -> Option<&'p str> {
    let head = format!("\n## {title}\n");
    let start = page.find(&head)? + head.len();
    let rest = &page[start..];
    Some(rest.find("\n## ").map_or(rest, |end| &rest[..end]))
}

/// Returns the first sentence of a text: up to a period at the end of a line or before a space.
pub fn first_sentence(text: &str) -> String {
    let paragraph = text.trim_start().split("\n\n").next().unwrap_or("");
    let joined = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = joined.find(". ").map_or(joined.len(), |at| at + 1);
    joined[..end].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_no_prose_and_has_no_links() {
        let page = "a `[x](y)` [b](c.md)\n```\n[d](e.md)\n```\n![f](g.svg)\n";
        assert_eq!(links(page), [(1, "c.md".to_string()), (5, "g.svg".to_string())]);
        assert_eq!(without_code("a `b` c"), "a     c");
    }

    #[test]
    fn anchors_are_those_of_mdbook() {
        let page =
            "# `entail check`\n## What is proved, and what\n## 10. Details\n## What is proved, and what\n";
        let expected = ["entail-check", "what-is-proved-and-what", "10-details", "what-is-proved-and-what-1"];
        assert_eq!(anchors(page), expected);
    }

    #[test]
    fn a_section_ends_at_the_next_one() {
        let page = "# T\n\n## A\n\none. Two.\n\n## B\n\nthree\n";
        assert_eq!(section(page, "A"), Some("\none. Two.\n"));
        assert_eq!(section(page, "C"), None);
        assert_eq!(first_sentence(section(page, "A").unwrap_or("")), "one.");
    }
}
