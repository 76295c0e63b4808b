//! Labels by places: of files by their paths, and of pages by their addresses.
//!
//! Entry point: [`Places::label`].
//!
//! Invariant: a text that may lead elsewhere than it says is at no place: `..` in a path, a user before a
//! host, an encoded slash.
//!
//! Source: `docs/calculus.md` §10, parts of a result.

use crate::{LabelSpec, Name};

/// The labels of places.
///
/// # Examples
/// ```
/// use core_ir::{LabelSpec, Places};
/// let secret = LabelSpec::Axes { untrusted: false, secret: true };
/// let mut places = Places::default();
/// places.add("/home/me/**", LabelSpec::BOTTOM).unwrap();
/// places.add("/home/me/keys/**", secret.clone()).unwrap();
/// assert_eq!(places.label("/home/me/a.txt"), Some(&LabelSpec::BOTTOM));
/// assert_eq!(places.label("/home/me/keys/id"), Some(&secret));
/// assert_eq!(places.label("/home/me/../eve/a.txt"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(Vec<(Place, LabelSpec)>);

/// A place, or all that is below it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    root: Root,
    segments: Vec<Name>,
    /// True if all that is below belongs to it.
    below: bool,
}

/// Beginning of a path or address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Root {
    /// `/`.
    Absolute,
    /// The scheme and the host, in lower case.
    Url(Name),
    /// A path that begins nowhere.
    Relative,
}

impl Places {
    /// Adds a place: a path or address, with `/**` at its end also all that is below it; `**` is everywhere.
    ///
    /// # Errors
    /// The text is no place, or is there already.
    pub fn add(&mut self, pattern: &str, label: LabelSpec) -> Result<(), &'static str> {
        let place = if pattern == "**" {
            // Of no root: see `covers`.
            Place { root: Root::Relative, segments: Vec::new(), below: true }
        } else {
            let (path, below) = match pattern.strip_suffix("/**") {
                Some("") => ("/", true),
                Some(path) => (path, true),
                None => (pattern, false),
            };
            let (root, segments) = normalized(path).ok_or("this is no path or address")?;
            if segments.iter().any(|s| s.contains('*')) {
                return Err("`*` is a part of a place only in `/**` at the end");
            }
            Place { root, segments, below }
        };
        if self.0.iter().any(|(p, _)| *p == place) {
            return Err("this place has a label already");
        }
        self.0.push((place, label));
        Ok(())
    }

    /// Returns true if no place has a label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All labels.
    pub fn labels(&self) -> impl Iterator<Item = &LabelSpec> {
        self.0.iter().map(|(_, label)| label)
    }

    /// The label of where a text leads: that of the longest place that it is at. `None` if it is at none.
    pub fn label(&self, text: &str) -> Option<&LabelSpec> {
        let (root, segments) = normalized(text)?;
        let covers = |place: &Place| {
            if place.is_everywhere() {
                return true;
            }
            place.root == root
                && segments.starts_with(&place.segments)
                && (place.below || segments.len() == place.segments.len())
        };
        let length = |place: &Place| (!place.is_everywhere(), place.segments.len(), !place.below);
        let at = self.0.iter().filter(|(place, _)| covers(place)).max_by_key(|(place, _)| length(place))?;
        Some(&at.1)
    }
}

impl Place {
    fn is_everywhere(&self) -> bool {
        self.below && self.root == Root::Relative && self.segments.is_empty()
    }
}

/// A path or address in parts, without those that say nothing; `None` if it may lead elsewhere than it says.
fn normalized(text: &str) -> Option<(Root, Vec<Name>)> {
    let lower = text.to_ascii_lowercase();
    let odd = |c: char| c.is_control() || c == '\\';
    // Of what is encoded, only what would be another segment.
    if text.is_empty() || text.contains(odd) || ["%2e", "%2f", "%5c", "%00"].iter().any(|e| lower.contains(e))
    {
        return None;
    }
    let (root, path) = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (host, path) = rest.split_at(end);
            if host.is_empty() || host.contains(['@', '%']) {
                return None;
            }
            (Root::Url(format!("{scheme}://{host}").to_ascii_lowercase().into()), path)
        }
        _ => match text.strip_prefix('/') {
            Some(path) => (Root::Absolute, path),
            None => (Root::Relative, text),
        },
    };
    // The query and the fragment of an address are parts of its last segment.
    let end =
        if matches!(root, Root::Url(_)) { path.find(['?', '#']).unwrap_or(path.len()) } else { path.len() };
    let (path, rest) = path.split_at(end);
    let mut segments: Vec<Name> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => return None,
            segment => segments.push(segment.into()),
        }
    }
    if !rest.is_empty() {
        segments.push(rest.into());
    }
    Some((root, segments))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of a text among these, by its number.
    fn at(places: &[&str], text: &str) -> Option<usize> {
        let mut all = Places::default();
        for (i, place) in places.iter().enumerate() {
            let number = LabelSpec::Exact(crate::Data::Num(crate::Num::from(i as i64)));
            all.add(place, number).unwrap_or_else(|why| panic!("{place}: {why}"));
        }
        match all.label(text)? {
            LabelSpec::Exact(crate::Data::Num(n)) => n.to_usize(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_longest_place_counts() {
        let places = ["/home/**", "/home/me/**", "/home/me/a.txt", "**", "/home/me"];
        assert_eq!(at(&places, "/home/x"), Some(0));
        assert_eq!(at(&places, "/home/me/b"), Some(1));
        assert_eq!(at(&places, "/home/me/a.txt"), Some(2));
        assert_eq!(at(&places, "/home/me/a.txt/b"), Some(1));
        assert_eq!(at(&places, "/home/me"), Some(4));
        assert_eq!(at(&places, "/homes"), Some(3));
        assert_eq!(at(&places, "elsewhere"), Some(3));
        assert_eq!(at(&["/**"], "/a"), Some(0));
        assert_eq!(at(&["/**"], "a"), None);
    }

    #[test]
    fn nothing_escapes_from_a_place() {
        let places = ["/home/me/**", "https://bank.example/**", "notes/**"];
        for inside in
            ["/home/me", "/home//me/./a", "https://bank.example", "HTTPS://Bank.example/a?b=/../c", "notes/a"]
        {
            assert!(at(&places, inside).is_some(), "{inside}");
        }
        for outside in [
            "/home/me/../eve",
            "/home/me/..",
            "/home/meow",
            "home/me/a",
            "/home/me\\..\\eve",
            "/home/me/%2e%2e/eve",
            "/home/me/%2E./eve",
            "/home/me/..%2feve",
            "/home/me/\u{0}",
            "https://bank.example.evil.example/",
            "https://bank.example@evil.example/",
            "https://evil.example/https://bank.example/",
            "https://bank.example:444/",
            "https:///bank.example/",
            "http://bank.example/",
            "https://bank.example\\.evil.example/",
            "https://bank.example%2eevil.example/",
            " https://bank.example/",
            "https://bank.\nexample/",
            "",
        ] {
            assert_eq!(at(&places, outside), None, "{outside}");
        }
    }

    #[test]
    fn mistakes_are_errors() {
        let mut places = Places::default();
        for wrong in ["", "/a/../b", "/a/*/b", "/a*", "https://me@a.example/"] {
            assert!(places.add(wrong, LabelSpec::BOTTOM).is_err(), "{wrong}");
        }
        places.add("/a/**", LabelSpec::BOTTOM).unwrap();
        assert!(places.add("/a//**", LabelSpec::TOP).is_err());
    }
}
