//! Which versions of packages a project uses: lock files and requirements, read as text.
//!
//! Entry point: [`Versions::read`]. An exact version (`==1.2`, a lock file) counts; the lower bound of a
//! range (`>=1.2`, `^1.2`) counts where nothing exact is known.
//!
//! Invariant: pure and total. A file that is not understood adds nothing.

use std::collections::HashMap;

/// Versions by package, names in lower case with `-`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    exact: HashMap<String, String>,
    least: HashMap<String, String>,
}

/// Packages that are remembered at most.
const MOST: usize = 20_000;

impl Versions {
    /// The names of files that say versions.
    pub const FILES: &'static [&'static str] = &[
        "uv.lock",
        "poetry.lock",
        "Pipfile.lock",
        "requirements.txt",
        "requirements.lock",
        "pyproject.toml",
        "package.json",
    ];

    /// Adds what a file says. `path` tells its kind.
    ///
    /// # Examples
    /// ```
    /// let mut versions = frontend::Versions::default();
    /// versions.read("requirements.txt", "langgraph==1.0.2  # pinned\ncrewai[tools]>=0.80\n");
    /// assert_eq!(versions.of("langgraph"), Some("1.0.2"));
    /// assert_eq!(versions.of("crewai"), Some("0.80"));
    /// ```
    pub fn read(&mut self, path: &str, text: &str) {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        match name {
            "uv.lock" | "poetry.lock" => self.lock(text),
            "Pipfile.lock" | "package.json" => self.json(text),
            _ if name.ends_with(".txt") || name == "requirements.lock" => {
                text.lines().for_each(|line| self.requirement(line));
            }
            "pyproject.toml" => self.pyproject(text),
            _ => {}
        }
    }

    /// The version of a package.
    pub fn of(&self, package: &str) -> Option<&str> {
        let key = normal(package);
        self.exact.get(&key).or_else(|| self.least.get(&key)).map(String::as_str)
    }

    fn put(&mut self, package: &str, version: &str, exact: bool) {
        let into = if exact { &mut self.exact } else { &mut self.least };
        let version = version.trim().trim_matches(['"', '\'']);
        if version.starts_with(|c: char| c.is_ascii_digit()) && into.len() < MOST {
            into.entry(normal(package)).or_insert_with(|| version.to_string());
        }
    }

    /// `name = "x"` and `version = "1"` within one `[[package]]`.
    fn lock(&mut self, text: &str) {
        let mut name: Option<&str> = None;
        for line in text.lines() {
            let line = line.trim();
            if line.starts_with("[[") {
                name = None;
            } else if let Some(value) = value_of(line, "name") {
                name = Some(value);
            } else if let (Some(value), Some(package)) = (value_of(line, "version"), name) {
                self.put(package, value, true);
                name = None;
            }
        }
    }

    /// `"name": "==1.2"`, or `"name": {"version": "==1.2"}`, a key at a time.
    fn json(&mut self, text: &str) {
        let mut around: Option<&str> = None;
        for line in text.lines() {
            let Some((key, value)) = line.trim().trim_end_matches(',').split_once(':') else { continue };
            let (key, value) = (key.trim().trim_matches('"'), value.trim());
            if value.starts_with('{') {
                around = Some(key);
            } else if key == "version" {
                if let Some(package) = around {
                    self.constraint(package, value.trim_matches('"'));
                }
            } else if value.starts_with('"') {
                self.constraint(key, value.trim_matches('"'));
            }
        }
    }

    /// `name[extra]==1.2 ; marker  # comment`.
    fn requirement(&mut self, line: &str) {
        let line = line.split(['#', ';']).next().unwrap_or("").trim();
        if line.is_empty() || line.starts_with('-') {
            return;
        }
        let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')));
        let (name, rest) = line.split_at(end.unwrap_or(line.len()));
        let rest = rest.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(extras) => extras.split_once(']').map_or("", |(_, r)| r),
            None => rest,
        };
        self.constraint(name, rest.trim());
    }

    /// Quoted requirements in lists, and `name = "^1.2"`.
    fn pyproject(&mut self, text: &str) {
        for line in text.lines() {
            let line = line.trim().trim_end_matches(',');
            if line.starts_with('"') || line.starts_with('\'') {
                self.requirement(line.trim_matches(['"', '\'']));
            } else if let Some((name, value)) = line.split_once('=') {
                let value = value.trim();
                if let Some(list) = value.strip_prefix('[') {
                    list.trim_end_matches(']').split(',').for_each(|item| {
                        self.requirement(item.trim().trim_matches(['"', '\'']));
                    });
                } else if value.starts_with('"') {
                    self.constraint(name.trim(), value.trim_matches('"'));
                }
            }
        }
    }

    fn constraint(&mut self, package: &str, constraint: &str) {
        let first = constraint.split(',').next().unwrap_or("").trim();
        if let Some(version) = first.strip_prefix("===").or_else(|| first.strip_prefix("==")) {
            self.put(package, version.trim_end_matches(".*"), !version.contains('*'));
        } else if let Some(version) = [">=", "~=", "^", "~"].iter().find_map(|p| first.strip_prefix(p)) {
            self.put(package, version, false);
        } else {
            self.put(package, first, true);
        }
    }
}

fn normal(package: &str) -> String {
    package.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// The value of `key = "value"`.
fn value_of<'t>(line: &'t str, key: &str) -> Option<&'t str> {
    let rest = line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim();
    rest.strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, text: &str) -> Versions {
        let mut versions = Versions::default();
        versions.read(path, text);
        versions
    }

    #[test]
    fn each_kind_of_file_says_versions() {
        let lock = "[[package]]\nname = \"langgraph\"\nversion = \"1.0.2\"\n\n[[package]]\nname = \"crewai\"\nversion = \"1.15.0\"\n";
        assert_eq!(read("a/uv.lock", lock).of("langgraph"), Some("1.0.2"));
        assert_eq!(read("poetry.lock", lock).of("CrewAI"), Some("1.15.0"));
        let toml = "[project]\ndependencies = [\n  \"google_adk>=1.2,<2\",\n]\n[tool.poetry.dependencies]\nlangchain = \"^0.3\"\nextra = [\"openai-agents==0.2.1\"]\n";
        let toml = read("pyproject.toml", toml);
        assert_eq!((toml.of("google-adk"), toml.of("langchain")), (Some("1.2"), Some("0.3")));
        assert_eq!(toml.of("openai-agents"), Some("0.2.1"));
        let pip = read(
            "Pipfile.lock",
            "{\n \"default\": {\n  \"langgraph\": {\n   \"version\": \"==0.6.1\"\n  }\n }\n}",
        );
        assert_eq!(pip.of("langgraph"), Some("0.6.1"));
        let node = read("package.json", "{\n \"dependencies\": {\n  \"flowise\": \"^3.0.1\"\n }\n}");
        assert_eq!(node.of("flowise"), Some("3.0.1"));
    }

    #[test]
    fn an_exact_version_outweighs_a_range() {
        let mut versions = read("pyproject.toml", "langgraph = \">=0.2\"");
        assert_eq!(versions.of("langgraph"), Some("0.2"));
        versions.read("uv.lock", "[[package]]\nname = \"langgraph\"\nversion = \"1.1.0\"");
        assert_eq!(versions.of("langgraph"), Some("1.1.0"));
    }
}
