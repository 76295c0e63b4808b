//! Carrying out [`Fix`]es on a text.

use crate::{Applicability, Diagnostic, FileId, Fix};

/// The text with the fixes of the findings carried out that are at least as trustworthy as `least`, and how
/// many those were. A fix that overlaps an earlier one is left for a later round, in which its finding may be
/// gone.
///
/// # Examples
/// ```
/// use diagnostics::{Applicability, Diagnostic, Fix, Sources, fix};
/// let mut sources = Sources::new();
/// let file = sources.add("a.yaml", "maxSteps: 0 # none\n");
/// let d = Diagnostic::error("L003", "never runs", sources.span(file, 10, 11)).fix(Fix {
///     span: sources.span(file, 10, 11),
///     replacement: "10".into(),
///     applicability: Applicability::Unsafe,
/// });
/// let text = "maxSteps: 0 # none\n";
/// assert_eq!(fix::apply(text, file, &[d.clone()], Applicability::Safe), (text.to_string(), 0));
/// assert_eq!(fix::apply(text, file, &[d], Applicability::Unsafe), ("maxSteps: 10 # none\n".into(), 1));
/// ```
pub fn apply(text: &str, file: FileId, found: &[Diagnostic], least: Applicability) -> (String, usize) {
    let mut fixes: Vec<&Fix> = found
        .iter()
        .filter_map(|d| d.fix.as_ref())
        .filter(|f| f.applicability >= least && f.span.file == file)
        .collect();
    fixes.sort_by_key(|f| (f.span.start, f.span.end));
    // Two findings may have one repair in common.
    fixes.dedup();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut applied) = (0usize, 0);
    for f in fixes {
        let (start, end) = (f.span.start as usize, f.span.end as usize);
        // A range that begins before `at` overlaps the fix before; `get` refuses it.
        if let (Some(kept), Some(_)) = (text.get(at..start), text.get(start..end)) {
            out.push_str(kept);
            out.push_str(&f.replacement);
            at = end;
            applied += 1;
        }
    }
    out.push_str(text.get(at..).unwrap_or(""));
    (out, applied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    fn fixed(text: &str, changes: &[(u32, u32, &str)]) -> (String, usize) {
        let found: Vec<Diagnostic> = changes
            .iter()
            .map(|(start, end, to)| {
                let span = Span { file: FileId(0), start: *start, end: *end };
                let fix = Fix { span, replacement: to.to_string(), applicability: Applicability::Safe };
                Diagnostic::warn("X", "m", span).fix(fix)
            })
            .collect();
        apply(text, FileId(0), &found, Applicability::Safe)
    }

    #[test]
    fn fixes_are_carried_out_in_order_of_place() {
        assert_eq!(fixed("abcd", &[(3, 4, "D"), (0, 1, "A")]), ("AbcD".into(), 2));
    }

    #[test]
    fn overlapping_fixes_wait_and_equal_ones_are_applied_once() {
        assert_eq!(fixed("abcd", &[(0, 3, "x"), (2, 4, "y")]), ("xd".into(), 1));
        assert_eq!(fixed("abcd", &[(0, 1, "x"), (0, 1, "x")]), ("xbcd".into(), 1));
    }

    #[test]
    fn places_outside_the_text_or_inside_a_character_are_left_alone() {
        assert_eq!(fixed("ab", &[(1, 9, "x")]), ("ab".into(), 0));
        assert_eq!(fixed("ä", &[(1, 2, "x")]), ("ä".into(), 0));
    }
}
