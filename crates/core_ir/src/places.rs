//! Labels by places: of files by their paths, and of pages by their addresses.
//!
//! Entry points: [`Places::label`], and [`Region::has`] for what an argument may lead to.
//!
//! Invariant: a text that may lead elsewhere than it says is at no place: `..` in a path, a user before a
//! host, an encoded slash.
//!
//! Source: `docs/calculus.md` §10, parts of a result.

use crate::{LabelSpec, Name};
use std::fmt;

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

/// A place and what is below it, where untrusted data may choose.
///
/// A text is in it only if nobody who reads it may take it for something elsewhere. So less is in a region
/// than at a [place](Places) of the same name: no percent-encoding of what divides or leads up, no segment of
/// dots and spaces (also before a `;`), no letter that looks like a slash or a dot, no invisible one, and no
/// second slash at the beginning.
///
/// # Examples
/// ```
/// use core_ir::Region;
/// let downloads = Region::new("/downloads/").unwrap();
/// assert!(downloads.has("/downloads/a/bill.pdf"));
/// // The place itself is not below it, and `..` leads elsewhere.
/// assert!(!downloads.has("/downloads") && !downloads.has("/downloads/../etc/passwd"));
/// let site = Region::new("https://shop.example/").unwrap();
/// assert!(site.has("https://shop.example/cart?item=3") && !site.has("https://shop.example.evil.example/"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    text: Name,
    root: Root,
    segments: Vec<Name>,
    /// True for all of a host, its first page included.
    is_site: bool,
}

impl Region {
    /// The region below a path or address.
    ///
    /// # Errors
    /// The text is no path or address, or one without a beginning.
    pub fn new(text: &str) -> Result<Region, &'static str> {
        let (root, segments) =
            normalized(text).filter(|_| !is_odd(text)).ok_or("this is no path or address")?;
        if segments.iter().any(|s| s.contains(['*', '?', '#'])) {
            return Err("a place has no `*`, `?` or `#`");
        }
        if root == Root::Relative && segments.is_empty() {
            return Err("this is no path or address");
        }
        let is_site = segments.is_empty() && matches!(root, Root::Url(_));
        Ok(Region { text: text.into(), root, segments, is_site })
    }

    /// Returns true for a path that depends on where whoever reads it stands, such as `downloads/`. An
    /// address without a scheme begins with `www.`.
    pub fn is_rootless(&self) -> bool {
        let is_host = self.segments.first().is_some_and(|s| s.starts_with("www."));
        self.root == Root::Relative && !is_host
    }

    /// The sites that a token of a request names: its scheme and host. A host without a scheme begins with
    /// `www.`, because the name of a file may look like one; it may then be reached by either scheme.
    pub fn sites(token: &str) -> Vec<Region> {
        let (with_scheme, host) = match token.split_once("://") {
            Some((scheme, rest)) if ["http", "https"].iter().any(|s| scheme.eq_ignore_ascii_case(s)) => {
                (vec![scheme], rest)
            }
            None if token.get(..4).is_some_and(|w| w.eq_ignore_ascii_case("www.")) => {
                (vec!["https", "http", ""], token)
            }
            _ => return Vec::new(),
        };
        let host = host.split(['/', '?', '#']).next().unwrap_or("");
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
        let is_name = host.contains('.') && host.split('.').all(|label| !label.is_empty());
        if !is_name || !host.chars().all(plain) {
            return Vec::new();
        }
        let address = |scheme: &str| match scheme {
            "" => host.to_ascii_lowercase(),
            scheme => format!("{scheme}://{host}"),
        };
        let site = |scheme| Some(Region { is_site: true, ..Region::new(&address(scheme)).ok()? });
        with_scheme.into_iter().filter_map(site).collect()
    }

    /// Returns whether a text leads below the place. The place itself is not below it, unless it is a site.
    pub fn has(&self, text: &str) -> bool {
        if is_odd(text) {
            return false;
        }
        let Some((root, mut segments)) = normalized(text) else { return false };
        // The host of a site without a scheme stands as the first segment.
        if self.is_site
            && self.root == Root::Relative
            && let Some(first) = segments.first_mut()
        {
            let end = first.find(['?', '#']).unwrap_or(first.len());
            if end < first.len() && text.contains('@') {
                return false;
            }
            *first = first[..end].to_ascii_lowercase().into();
        }
        self.root == root
            && segments.starts_with(&self.segments)
            && (segments.len() > self.segments.len() || self.is_site)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns true if some reader of a path or address may take it for another one.
fn is_odd(text: &str) -> bool {
    // What is decoded twice, and encodings of a dot or a slash that are none, and that old servers decode.
    encoded(text).any(|byte| matches!(byte, b'%' | 0xc0 | 0xc1))
        || ["%u", "%U"].iter().any(|e| text.contains(e))
        // The beginning of an address with another host.
        || text.starts_with("//")
        // Letters that are a slash, a backslash or a dot once they are folded, and invisible ones.
        || text.contains(|c: char| {
            crate::plain::is_invisible(c) || matches!(
                c,
                '\u{2024}'..='\u{2026}'
                    | '\u{2044}'
                    | '\u{2215}'
                    | '\u{2216}'
                    | '\u{29f5}'
                    | '\u{29f8}'
                    | '\u{fe52}'
                    | '\u{fe68}'
                    | '\u{ff0e}'
                    | '\u{ff0f}'
                    | '\u{ff3c}'
                    | '\u{2028}'
                    | '\u{2029}'
            )
        })
        // `.. ` and `...` lead up where spaces and dots at the end are left out, and `..;` where what follows
        // a `;` is a parameter of the segment.
        || text.split(['/', '?', '#']).filter_map(|segment| segment.split(';').next()).any(|segment| {
            segment.chars().filter(|c| *c == '.').count() > 1 && segment.chars().all(|c| c == '.' || c == ' ')
        })
}

/// Beginning of a path or address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

/// The bytes that are percent-encoded in a text.
fn encoded(text: &str) -> impl Iterator<Item = u8> {
    text.as_bytes().windows(3).filter_map(|w| {
        let digit = |b: u8| char::from(b).to_digit(16);
        let byte = digit(w[1])? * 16 + digit(w[2])?;
        u8::try_from(byte).ok().filter(|_| w[0] == b'%')
    })
}

/// A path or address in parts, without those that say nothing; `None` if it may lead elsewhere than it says.
fn normalized(text: &str) -> Option<(Root, Vec<Name>)> {
    let odd = |c: char| c.is_control() || c == '\\';
    // Of what is encoded, only what would be another segment, and control characters.
    let elsewhere = |byte: u8| byte.is_ascii_control() || b"./\\".contains(&byte);
    if text.is_empty() || text.contains(odd) || encoded(text).any(elsewhere) {
        return None;
    }
    let (root, path) = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (host, path) = rest.split_at(end);
            // To some readers the user before a host may hold a `?` or `#`.
            let names_user = !path.starts_with('/') && path.contains('@');
            if host.is_empty() || host.contains(['@', '%']) || names_user {
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
        for inside in [
            "/home/me",
            "/home//me/./a",
            "https://bank.example?b",
            "HTTPS://Bank.example/a?b=/../c@d",
            "notes/a",
        ] {
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
            "https://bank.example#@evil.example/",
            "https://bank.example?@evil.example/",
            "https://bank.example/%0D%0AHost:evil.example",
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
    fn nothing_escapes_from_a_region() {
        let downloads = Region::new("/downloads/").unwrap();
        for inside in
            ["/downloads/a", "/downloads//a/./b.pdf", "/downloads/a b/ü.txt", "/downloads/.a;1%.txt"]
        {
            assert!(downloads.has(inside), "{inside}");
        }
        for outside in [
            "",
            "/",
            "/downloads",
            "/downloads/",
            "/downloads/.",
            "/downloadsx/a",
            "/Downloads/a",
            "downloads/a",
            " /downloads/a",
            "~/downloads/a",
            "/downloads/../etc/passwd",
            "/downloads/a/../../etc",
            "/downloads/..",
            "/downloads/.. /etc",
            "/downloads/.../etc",
            "/downloads/..;/etc",
            "/downloads/..;a=1/etc",
            "/downloads/.\u{fe0f}./etc",
            "/downloads/%c0%ae%c0%ae/etc",
            "/downloads/%uff0e%uff0e/etc",
            "/downloads/a%0d%0ab",
            "/downloads/a\\..\\..\\etc",
            "/downloads/%2e%2e/etc",
            "/downloads/%2E%2E%2Fetc",
            "/downloads/%252e%252e/etc",
            "/downloads/\u{ff0e}\u{ff0e}/etc",
            "/downloads/\u{2025}/etc",
            "/downloads/a\u{2215}b",
            "/downloads/a\0",
            "/downloads/a\nb",
            "/downloads/\u{202e}a",
            "//downloads/a",
            "file:///downloads/a",
            "https://evil.example/downloads/a",
        ] {
            assert!(!downloads.has(outside), "{outside:?}");
        }
        let notes = Region::new("notes").unwrap();
        assert!(notes.has("notes/a") && notes.has("./notes/a"));
        assert!(!notes.has("notes") && !notes.has("NOTES/a") && !notes.has("/notes/a"));
        for wrong in ["", ".", "/a/../b", "/a/*", "https://me@a.example/", "//a", "/a?b", "https://"] {
            assert!(Region::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_request_names_sites() {
        let has = |token: &str, text: &str| Region::sites(token).iter().any(|site| site.has(text));
        let shop = "https://shop.example/offers?page=2";
        for inside in ["https://shop.example", "https://SHOP.example/cart", "HTTPS://shop.example/a?b=c#d"] {
            assert!(has(shop, inside), "{inside}");
        }
        for outside in [
            "http://shop.example/cart",
            "shop.example/cart",
            "https://ads.example/",
            "https://shop.example.ads.example/",
            "https://shop.example@ads.example/",
            "https://shop.example#@ads.example/",
            "https://ads.example/https://shop.example/",
            "https://ads.example\\@shop.example/",
            "https://shop.example:8080/",
            "https://shop.example\u{ff0f}.ads.example/",
            "//shop.example/cart",
            "https:/shop.example/",
            "https://shop.example/../x",
            "javascript://shop.example/%0aalert(1)",
        ] {
            assert!(!has(shop, outside), "{outside}");
        }
        for inside in ["www.shop.example", "www.shop.example/a", "https://WWW.shop.example/a?b"] {
            assert!(has("www.shop.example/offers", inside), "{inside}");
        }
        assert!(has("www.shop.example", "www.shop.example?a"));
        for outside in [
            "shop.example",
            "www.shop.example.ads",
            "www.shop.example?@ads.example",
            "www.shop.example#/@ads.example",
        ] {
            assert!(!has("www.shop.example", outside), "{outside}");
        }
        // The name of a file may look like a host.
        for none in ["notes.zip", "bob@shop.example", "ftp://shop.example/a", "https://localhost/", "www."] {
            assert_eq!(Region::sites(none), [], "{none}");
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
