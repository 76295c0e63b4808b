//! Repairs that need the text.
//!
//! A rule sees terms, so it can only wish for a repair ([`wish`]): a number in the place of another, one more
//! item of a list, one more entry or argument, something removed. [`settle`] makes a change of the text of
//! each wish, or drops it where the text is not written so that a change keeps all else.
//!
//! Invariant: after a change the file is read without a fault that it did not have before; comments, order
//! and quotes of everything else stay.

use diagnostics::{Applicability, Diagnostic, Fix, Span};
use frontend_kit::doc::{Entry, Limits, Node};
use frontend_kit::{File, Words};
use std::ops::Range;
use std::sync::Arc;

/// Replacement that a rule wants at a place: `text` there, or nothing.
pub(super) fn wish(at: Span, text: &str, applicability: Applicability) -> Fix {
    Fix { span: at, replacement: text.to_string(), applicability }
}

/// Number of conflicting changes that are tried one by one; the others are dropped. Each try parses the file.
const ALONE: usize = 16;

/// Turns the requested changes among a file's findings into fixes. Without a file, there are none.
pub(super) fn settle(file: Option<&File>, words: &Words, found: &mut [Diagnostic]) {
    let mut changes: Vec<(usize, Fix)> = Vec::new();
    for (i, d) in found.iter_mut().enumerate() {
        if !matches!(d.code, "L003" | "L004b" | "L007" | "L008" | "L017") {
            continue;
        }
        let Some(wish) = d.fix.take() else { continue };
        changes.extend(file.and_then(|f| change(f, words, d.code, &wish)).map(|fix| (i, fix)));
    }
    let Some(file) = file else { return };
    // Those that touch different places are tried in one reading of the file, not in one each.
    changes.sort_by_key(|(i, fix)| (fix.span.start, *i));
    let mut end = None;
    let (together, mut alone): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(_, fix)| {
        let apart = end.is_none_or(|end| end < fix.span.start);
        if apart {
            end = Some(fix.span.end);
        }
        apart
    });
    match is_sound(file, &together) {
        true => together.into_iter().for_each(|(i, fix)| found[i].fix = Some(fix)),
        false => alone.splice(0..0, together).for_each(drop),
    }
    for (i, fix) in alone.into_iter().take(ALONE) {
        let one = [(i, fix)];
        if is_sound(file, &one) {
            let [(i, fix)] = one;
            found[i].fix = Some(fix);
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Number of times that a file was parsed again to try changes.
    pub(super) static READINGS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns true if the file has no new error after changes applied in the order of their places.
fn is_sound(file: &File, changes: &[(usize, Fix)]) -> bool {
    if changes.is_empty() {
        return true;
    }
    let text: &str = match (&file.python, file.documents.first()) {
        (Some(module), _) => &module.text,
        (None, Some(document)) => document.source(),
        (None, None) => return false,
    };
    let mut changed = String::with_capacity(text.len() + 32 * changes.len());
    let mut from = 0;
    for (_, fix) in changes {
        let Some(kept) = text.get(from..fix.span.start as usize) else { return false };
        changed.push_str(kept);
        changed.push_str(&fix.replacement);
        from = fix.span.end as usize;
    }
    changed.push_str(text.get(from..).unwrap_or(""));
    #[cfg(test)]
    READINGS.with(|n| n.set(n.get() + 1));
    let again = File::read(file.id, &file.path, &Arc::from(changed), &Limits::default());
    again.diagnostics.len() <= file.diagnostics.len()
        && again.documents.len() == file.documents.len()
        && again.python.is_none_or(|m| m.syntax_error().is_none())
}

fn change(file: &File, words: &Words, code: &str, wish: &Fix) -> Option<Fix> {
    let span = wish.span;
    if span.file != file.id {
        return None;
    }
    let at = span.start as usize..span.end as usize;
    let digit =
        |text: &str| (text.get(at.clone()) == Some("0")).then(|| (at.clone(), wish.replacement.clone()));
    let (range, new) = if let Some(module) = &file.python {
        let text: &str = &module.text;
        match code {
            "L003" => digit(text)?,
            "L017" => argument(text, at.clone(), words.stated?, &wish.replacement)?,
            _ => return None,
        }
    } else {
        let before = |d: &&frontend_kit::doc::Document| d.root().span().start <= span.start;
        let document = file.documents.iter().rev().find(before)?;
        let text: &str = document.source();
        match code {
            // Nothing but the digit: `0x0` and `'0'` are not touched.
            "L003" => digit(text)?,
            "L004b" => one_more(text, document.root(), span, words.ender?.0, &wish.replacement)?,
            "L017" => entry(text, document.root(), span, words.stated?, &wish.replacement)?,
            _ => (removal(text, document.root(), span)?, String::new()),
        }
    };
    // INVARIANT: texts are shorter than 4 GiB.
    let span = Span { start: range.start as u32, end: range.end as u32, ..span };
    Some(Fix { span, replacement: new, applicability: wish.applicability })
}

/// The change that puts one more argument at the end of the call at a place, on a line of its own if the
/// others are.
fn argument(text: &str, call: Range<usize>, keys: &[&str], value: &str) -> Option<(Range<usize>, String)> {
    let [key] = keys else { return None };
    let inside = text.get(call.clone())?.strip_suffix(')')?;
    let (callee, given) = inside.split_once('(')?;
    // Whoever manages a crew is bounded where it is made, not where the crew is.
    if !callee.trim_end().ends_with("Agent") {
        return None;
    }
    let written = inside.trim_end();
    let place = call.start + written.len();
    let last = written.rsplit('\n').next().unwrap_or("");
    // Text after a comment on its line is part of it.
    if last.contains('#') {
        return None;
    }
    let own_line = inside[written.len()..].contains('\n');
    let indent: String = match given.split_once('\n') {
        Some((_, next)) if own_line => next.chars().take_while(|c| matches!(c, ' ' | '\t')).collect(),
        _ => String::new(),
    };
    let new = match (written.ends_with('('), written.ends_with(','), own_line) {
        (true, ..) => format!("{key}={value}"),
        (_, true, true) => format!("\n{indent}{key}={value},"),
        (_, true, false) => format!(" {key}={value}"),
        (_, false, true) => format!(",\n{indent}{key}={value}"),
        (_, false, false) => format!(", {key}={value}"),
    };
    Some((place..place, new))
}

/// The change that puts one more entry into the innermost mapping around a place.
fn entry(text: &str, root: Node<'_>, at: Span, keys: &[&str], value: &str) -> Option<(Range<usize>, String)> {
    let inside = |s: Span| s.start <= at.start && at.end <= s.end;
    let mut around = root.descendants().filter(|n| n.is_mapping() && inside(n.span())).last()?;
    let (last, before) = keys.split_last()?;
    let mut left = before;
    while let [first, rest @ ..] = left {
        let Some(inner) = around.get(first).filter(|n| n.is_mapping() && n.entries().next().is_some()) else {
            break;
        };
        (around, left) = (inner, rest);
    }
    // A key that leads to nothing yet would be written twice.
    if left.first().is_some_and(|k| around.get(k).is_some()) {
        return None;
    }
    let name = left.first().copied().unwrap_or(last);
    let nested = |quote: &str| match left {
        [] => Some(value.to_string()),
        [_] => Some(format!("{{{quote}{last}{quote}: {value}}}")),
        _ => None,
    };
    let start = around.span().start as usize;
    if let Some(rest) = text.get(start..)?.strip_prefix('{') {
        let quote = if rest.trim_start().starts_with('"') { "\"" } else { "" };
        let value = nested(quote)?;
        let line = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let new = match rest[line..].strip_prefix("\r\n").or(rest[line..].strip_prefix('\n')) {
            Some(next) => {
                let indent: String = next.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
                format!("\n{indent}{quote}{name}{quote}: {value},")
            }
            None => format!("{quote}{name}{quote}: {value}, "),
        };
        return Some((start + 1..start + 1, new));
    }
    let value = nested("")?;
    // The text before a key on its line, if it is indentation or the dash of an item.
    let lead = |key: Span| {
        let line = text.get(..key.start as usize)?.rfind('\n').map_or(0, |i| i + 1);
        let lead = text.get(line..key.start as usize)?;
        matches!(lead.trim(), "" | "-").then_some((line, lead))
    };
    let before = |entry: &Entry<'_>| {
        let (line, lead) = lead(entry.key.span()).filter(|(_, lead)| lead.trim().is_empty())?;
        Some((line..line, format!("{lead}{name}: {value}\n")))
    };
    let after = |entry: &Entry<'_>| {
        let (_, lead) = lead(entry.key.span())?;
        let (start, end) = (entry.span().start as usize, entry.span().end as usize);
        let end = start + text.get(start..end)?.trim_end().len();
        let stop = line_end(text, end);
        let rest = text.get(end..stop)?.trim_start();
        let indent = lead.replace('-', " ");
        (rest.is_empty() || rest.starts_with('#')).then(|| (stop..stop, format!("\n{indent}{name}: {value}")))
    };
    // Before the key at the place, or after the entry that holds the place, or at the end of the mapping.
    let own: Vec<Entry<'_>> = around.entries().filter(|e| !e.merged).collect();
    if let Some(entry) = own.iter().find(|e| e.key.span() == at) {
        return before(entry).or_else(|| after(entry));
    }
    own.iter().find(|e| inside(e.value.span())).and_then(after).or_else(|| own.last().and_then(after))
}

/// The change that puts one more item at the end of the list that the innermost mapping around a place has
/// under some keys.
fn one_more(
    text: &str,
    root: Node<'_>,
    at: Span,
    keys: &[&str],
    item: &str,
) -> Option<(Range<usize>, String)> {
    let inside = |s: Span| s.start <= at.start && at.end <= s.end;
    let around = root.descendants().filter(|n| n.is_mapping() && inside(n.span()));
    let list = around.filter_map(|n| n.at(keys)).filter(|n| n.is_sequence()).last()?;
    let (start, end) = (list.span().start as usize, list.span().end as usize);
    let written = text.get(start..end)?;
    if written.starts_with('[') && written.ends_with(']') {
        let inside = written[1..written.len() - 1].trim_end();
        let comma = if list.items().len() == 0 || inside.ends_with(',') { "" } else { ", " };
        let place = start + 1 + inside.len();
        return (!inside.contains('#')).then(|| (place..place, format!("{comma}{item}")));
    }
    let last = list.items().next_back()?.span();
    let line = text.get(..last.start as usize)?.rfind('\n').map_or(0, |i| i + 1);
    let dash = text.get(line..last.start as usize)?;
    let indent = dash.strip_suffix("- ").filter(|i| i.trim().is_empty())?;
    let stop = line_end(text, last.end as usize);
    Some((stop..stop, format!("\n{indent}- {item}")))
}

/// The end of the line of a place, without the line break.
fn line_end(text: &str, at: usize) -> usize {
    let end = text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |i| at + i);
    if text.get(..end).is_some_and(|t| t.ends_with('\r')) { end - 1 } else { end }
}

/// Range to remove so that the item at a place is gone: the innermost item of a list that is a mapping, or
/// the innermost entry whose key stands there.
fn removal(text: &str, root: Node<'_>, at: Span) -> Option<Range<usize>> {
    let inside = |s: Span| s.start <= at.start && at.end <= s.end;
    let mut found: Option<Range<usize>> = None;
    let mut node = root;
    for _ in 0..100 {
        let mut next = None;
        if node.is_sequence() {
            let few = node.items().len() < 2;
            next = node.items().find(|n| inside(n.span()));
            if let Some(item) = next.filter(|n| n.is_mapping()) {
                found = if few { None } else { widened(text, item.span(), true) };
            }
        } else {
            let few = node.entries().count() < 2;
            if let Some(entry) = node.entries().find(|e| !e.merged && inside(e.span())) {
                if entry.key.span() == at && entry.value.is_mapping() {
                    found = if few { None } else { widened(text, entry.span(), false) };
                }
                next = Some(entry.value);
            }
        }
        match next {
            Some(n) => node = n,
            None => break,
        }
    }
    found
}

/// An item or entry with what sets it apart: its dash and its lines, or its comma.
fn widened(text: &str, span: Span, item: bool) -> Option<Range<usize>> {
    let (start, end) = (span.start as usize, span.end as usize);
    let end = start + text.get(start..end)?.trim_end().len();
    let before = text.get(..start)?;
    let line = before.rfind('\n').map_or(0, |i| i + 1);
    let lead = before.get(line..)?;
    let alone = if item { lead.strip_suffix("- ").map(str::trim_end) } else { Some(lead) };
    if alone.is_some_and(|l| l.trim().is_empty()) {
        let stop = line_end(text, end);
        let rest = text.get(end..stop)?.trim_start();
        let next = text.get(stop..)?.find('\n').map_or(text.len(), |i| stop + i + 1);
        if rest.is_empty() || rest.starts_with('#') {
            return Some(line..next);
        }
    }
    let after = text.get(end..)?;
    let gap = after.len() - after.trim_start().len();
    if after.trim_start().starts_with(',') {
        let comma = end + gap + 1;
        let space = text.get(comma..)?;
        let space = space.len() - space.trim_start().len();
        return Some(start..comma + space);
    }
    let trimmed = before.trim_end();
    trimmed.ends_with(',').then(|| trimmed.len() - 1..end)
}
