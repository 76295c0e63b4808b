//! Texts with holes `{parameter}`; `{{` and `}}` are braces.

use super::as_text;
use core_ir::{Data, Name};
use diagnostics::clip_to as clip;

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The index of a parameter.
    Hole(usize),
}

/// A text with holes, understood. Filling it never looks at what is filled in again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

impl Template {
    /// Reads a text with holes for these parameters.
    pub(super) fn read(text: &str, params: &[&str]) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let Some((name, after)) = rest.split_once('}').filter(|_| brace == "{") else {
                return Err(format!("`{}` has a single `{brace}`; double it if it is text", clip(text, 80)));
            };
            let Some(index) = params.iter().position(|p| *p == name.trim()) else {
                return Err(format!(
                    "`{{{}}}` is not a parameter of the tool; expected {}; double a literal brace",
                    clip(name, 40),
                    if params.is_empty() { "none".into() } else { format!("`{}`", params.join("`, `")) }
                ));
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Hole(index));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template(parts))
    }

    /// Returns true if the template has a placeholder for parameter `index`.
    pub(super) fn uses(&self, index: usize) -> bool {
        self.0.contains(&Part::Hole(index))
    }

    /// The text up to the first hole.
    pub(super) fn before_holes(&self) -> &str {
        match self.0.first() {
            Some(Part::Text(t)) => t,
            _ => "",
        }
    }

    pub(super) fn has_holes(&self) -> bool {
        self.0.iter().any(|p| matches!(p, Part::Hole(_)))
    }

    /// The text with the arguments in the holes, each passed through `as_part`.
    pub(super) fn fill(
        &self,
        args: &[(Name, Data)],
        as_part: impl Fn(String) -> Result<String, String>,
    ) -> Result<String, String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(t) => out.push_str(t),
                // An argument that is missing is an optional one.
                Part::Hole(i) => {
                    out.push_str(&as_part(args.get(*i).map_or(String::new(), |(_, d)| as_text(d)))?);
                }
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_once() {
        let t = Template::read("a{x}{{x}}-{ y }", &["x", "y"]).unwrap();
        let args = [("x".into(), Data::str("{y}")), ("y".into(), Data::Bool(true))];
        assert_eq!(t.fill(&args, Ok), Ok("a{y}{x}-true".into()));
        assert!(t.uses(0) && t.has_holes());
        assert_eq!(t.before_holes(), "a");
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            Template::read("{z}", &["x"]),
            Err("`{z}` is not a parameter of the tool; expected `x`; double a literal brace".into())
        );
        assert!(Template::read("a{", &[]).is_err());
        assert!(Template::read("a}b", &[]).is_err());
        assert!(Template::read("{", &[]).is_err());
    }
}
