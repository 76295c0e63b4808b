//! Versions of a project's packages: lock files and requirements, read as text.
//!
//! Entry points: [`Versions::read`], [`Versions::set`]. An exact version (`==1.2`, a lock file) counts; where
//! nothing exact is known, what a range leaves out (`<2`, `^1.2`) bounds the version from above, for an
//! installer takes the newest that fits.
//!
//! Invariant: pure and total. A file that is not understood adds nothing.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Versions by package, names in lower case with `-`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    exact: HashMap<String, String>,
    /// The lower bounds of ranges.
    least: HashMap<String, String>,
    /// Exclusive upper bounds from ranges.
    below: HashMap<String, String>,
    /// Packages from a repository, folder or archive; none of them has an exact version.
    unreleased: HashSet<String>,
    /// Packages that are required, with a version or without.
    names: HashSet<String>,
}

/// Packages that are remembered at most.
const MAX_PACKAGES: usize = 20_000;

impl Versions {
    /// The names of files that say versions; of two that say different ones, the first counts. Further files
    /// are those of [`Versions::is_requirements`].
    pub const FILES: &'static [&'static str] = &[
        "uv.lock",
        "poetry.lock",
        "Pipfile.lock",
        "requirements.txt",
        "requirements.lock",
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "Pipfile",
        "environment.yml",
        "environment.yaml",
        "conda.yml",
        "conda.yaml",
        "package.json",
    ];

    /// Returns true for the name of a list of requirements beside `requirements.txt`: `requirements-dev.txt`,
    /// `requirements_ml.txt`, also if the word is misspelled.
    ///
    /// # Examples
    /// ```
    /// let is = frontend_kit::Versions::is_requirements;
    /// assert!(is("requirements-dev.txt") && is("requirements.prod.txt") && is("dev-requirements.txt"));
    /// assert!(is("requirments.txt") && is("requirement.txt") && is("Requirements.txt"));
    /// assert!(!is("requirements.txt") && !is("notes.txt") && !is("requirementsdoc.txt"));
    /// ```
    pub fn is_requirements(name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        let Some(stem) = lower.strip_suffix(".txt") else { return false };
        // A word with more letters is another one.
        let is_slip = |word: &str| {
            word.starts_with("req")
                && word.len() <= "requirements".len() + 1
                && diagnostics::nearest(word, ["requirements"]).is_some()
        };
        let is_meant = |word: &str| word == "requirements" || is_slip(word);
        name != "requirements.txt" && stem.split(['-', '_', '.', ' ']).any(is_meant)
    }

    /// The text of a file that says versions. PowerShell writes it in UTF-16 with a byte order mark, which
    /// installers read.
    ///
    /// # Examples
    /// ```
    /// let text = frontend_kit::Versions::text;
    /// assert_eq!(text(b"\xff\xfea\0=\0"), "a=");
    /// assert_eq!(text(b"\xef\xbb\xbfa="), "a=");
    /// ```
    pub fn text(bytes: &[u8]) -> Cow<'_, str> {
        let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
            let units: Vec<u16> = rest.as_chunks().0.iter().map(|pair| unit(*pair)).collect();
            Cow::Owned(String::from_utf16_lossy(&units))
        };
        match bytes {
            [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
            [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
            _ => String::from_utf8_lossy(bytes),
        }
    }

    /// Adds what a file says. `path` tells its kind.
    ///
    /// # Examples
    /// ```
    /// let mut versions = frontend_kit::Versions::default();
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
            "setup.cfg" => self.setup_cfg(text),
            // A build without the reader of Python has no modules whose versions matter.
            #[cfg(feature = "python")]
            "setup.py" => {
                let source = python::Source::new(diagnostics::FileId(0), path, text.into());
                let keywords = ["install_requires", "extras_require", "tests_require"];
                source.passed_texts(&keywords).iter().for_each(|line| self.requirement(line));
            }
            "Pipfile" => self.pipfile(text),
            "environment.yml" | "environment.yaml" | "conda.yml" | "conda.yaml" => self.conda(text),
            _ => {}
        }
    }

    /// The version of a package.
    pub fn of(&self, package: &str) -> Option<&str> {
        let key = normal(package);
        self.exact.get(&key).or_else(|| self.least.get(&key)).map(String::as_str)
    }

    /// The version of a package that is known exactly.
    pub fn exact(&self, package: &str) -> Option<&str> {
        self.exact.get(&normal(package)).map(String::as_str)
    }

    /// The version that the package's is below.
    pub fn below(&self, package: &str) -> Option<&str> {
        self.below.get(&normal(package)).map(String::as_str)
    }

    /// Returns true if a package is not installed from a release, but from a repository, folder or archive.
    pub fn is_unreleased(&self, package: &str) -> bool {
        self.unreleased.contains(&normal(package))
    }

    /// Returns true if a package is required, with a version or without.
    pub fn names(&self, package: &str) -> bool {
        self.names.contains(&normal(package))
    }

    /// States the version of a package, over what files say.
    pub fn set(&mut self, package: &str, version: &str) {
        self.unreleased.remove(&normal(package));
        self.names.insert(normal(package));
        self.exact.insert(normal(package), version.to_string());
    }

    /// Adds what another knows and this does not.
    pub fn extend(&mut self, other: &Versions) {
        let fresh = |package: &&String| !self.exact.contains_key(*package);
        let unreleased: Vec<String> = other.unreleased.iter().filter(fresh).cloned().collect();
        let exact: HashMap<String, String> = other
            .exact
            .iter()
            .filter(|(package, _)| !self.unreleased.contains(*package))
            .map(|(package, version)| (package.clone(), version.clone()))
            .collect();
        self.unreleased.extend(unreleased);
        self.names.extend(other.names.iter().cloned());
        let pairs =
            [(&mut self.exact, &exact), (&mut self.least, &other.least), (&mut self.below, &other.below)];
        for (into, from) in pairs {
            for (package, version) in from {
                into.entry(package.clone()).or_insert_with(|| version.clone());
            }
        }
    }

    /// Everything that is known, in a stable order, for a key.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut all: Vec<(&str, &str)> = [&self.exact, &self.least, &self.below]
            .into_iter()
            .flatten()
            .map(|(package, version)| (package.as_str(), version.as_str()))
            .chain(self.names.iter().map(|package| (package.as_str(), "")))
            .chain(self.unreleased.iter().map(|package| (package.as_str(), "@")))
            .collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// `name = "x"`, `version = "1"` and perhaps a source within one `[[package]]`.
    fn lock(&mut self, text: &str) {
        for block in text.split("[[").skip(1) {
            let values = |key: &str| block.lines().find_map(|line| value_of(line.trim(), key));
            let Some(package) = values("name") else { continue };
            let is_source = |line: &str| {
                line.strip_prefix("source = {").is_some_and(is_unreleased_source)
                    || value_of(line, "type")
                        .is_some_and(|t| matches!(t, "git" | "directory" | "file" | "url"))
            };
            if block.lines().any(is_source) {
                self.leave(package);
            } else if let Some(version) = values("version") {
                self.constraint(package, &format!("=={version}"));
            }
        }
    }

    /// Notes that a package is installed from no release.
    fn leave(&mut self, package: &str) {
        let package = normal(package);
        if self.names.len() < MAX_PACKAGES {
            self.names.insert(package.clone());
            if !self.exact.contains_key(&package) {
                self.unreleased.insert(package);
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
        if let Some((_, fragment)) = line.split_once("#egg=") {
            let end = fragment.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')));
            self.leave(&fragment[..end.unwrap_or(fragment.len())]);
            return;
        }
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
        match rest.trim_start().starts_with('@') {
            true => self.leave(name),
            false => self.constraint(name, rest.trim()),
        }
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
                } else if value.strip_prefix('{').is_some_and(is_unreleased_source) {
                    self.leave(name.trim());
                }
            }
        }
    }

    /// Requirements, a line each, of `install_requires` in `[options]` and of all keys in
    /// `[options.extras_require]`.
    fn setup_cfg(&mut self, text: &str) {
        let (mut section, mut key) = ("", "");
        for line in text.lines() {
            let is_indented = line.starts_with([' ', '\t']);
            let line = line.trim();
            if line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                (section, key) = (name.trim(), "");
                continue;
            }
            let mut value = line;
            if !is_indented && let Some((name, rest)) = line.split_once('=') {
                (key, value) = (name.trim(), rest.trim());
            }
            let requires = section == "options" && key == "install_requires";
            if requires || section == "options.extras_require" && !key.is_empty() {
                self.requirement(value);
            }
        }
    }

    /// `name = "==1.2"`, `name = {version = "==1.2"}` and `name = "*"` in the sections of packages.
    fn pipfile(&mut self, text: &str) {
        let mut inside = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                inside = matches!(section.trim_end_matches(']').trim(), "packages" | "dev-packages");
                continue;
            }
            let Some((name, value)) = line.split_once('=').filter(|_| inside && !line.starts_with('#'))
            else {
                continue;
            };
            let (name, value) = (name.trim().trim_matches(['"', '\'']), value.trim());
            match value.strip_prefix('{') {
                Some(entries) if is_unreleased_source(entries) => self.leave(name),
                Some(entries) => {
                    let version =
                        entries.split_once("version").and_then(|(_, v)| v.split(['"', '\'']).nth(1));
                    self.constraint(name, version.unwrap_or("*"));
                }
                None => self.constraint(name, value.split(['"', '\'']).nth(1).unwrap_or("*")),
            }
        }
    }

    /// Items of `dependencies`: `channel::name=1.2`, whose version begins so, `name=1.2.3=build`, and below
    /// `pip` requirements.
    fn conda(&mut self, text: &str) {
        let mut inside = false;
        for line in text.lines() {
            let line = line.split(" #").next().unwrap_or("").trim_end();
            let Some(item) = line.trim_start().strip_prefix("- ") else {
                if !line.is_empty() && !line.starts_with([' ', '#', '-']) {
                    inside = line == "dependencies:";
                }
                continue;
            };
            let item = item.trim().trim_matches(['"', '\'']);
            let item = item.rsplit("::").next().unwrap_or(item);
            if !inside || item.ends_with(':') {
                continue;
            }
            let parts: Vec<&str> = item.split('=').map(str::trim).collect();
            match parts[..] {
                [name, version] if !name.ends_with(['<', '>', '!', '~']) => {
                    self.constraint(name, &format!("=={}.*", version.trim_end_matches(".*")));
                }
                [name, version, build] if !version.is_empty() && !build.is_empty() => {
                    self.constraint(name, &format!("=={version}"));
                }
                _ => self.requirement(item),
            }
        }
    }

    /// `==1.2`, `>=1.2,<2`, `^1.2`; the parts of a range hold together.
    fn constraint(&mut self, package: &str, constraint: &str) {
        let key = normal(package);
        if !key.is_empty() && self.names.len() < MAX_PACKAGES {
            self.names.insert(key.clone());
        }
        if self.unreleased.contains(&key) {
            return;
        }
        for part in constraint.split(',').map(str::trim) {
            if let Some(version) = part.strip_prefix("===").or_else(|| part.strip_prefix("==")) {
                match version.strip_suffix(".*") {
                    None => put(&mut self.exact, package, version),
                    Some(prefix) => {
                        put(&mut self.least, package, prefix);
                        put(&mut self.below, package, &after(prefix, usize::MAX));
                    }
                }
            } else if let Some(version) = part.strip_prefix(">=") {
                put(&mut self.least, package, version);
            } else if let Some(version) = part.strip_prefix("<=") {
                put(&mut self.below, package, &after(version, usize::MAX));
            } else if let Some(version) = part.strip_prefix('<') {
                put(&mut self.below, package, version);
            } else if let Some(version) = part.strip_prefix("~=") {
                put(&mut self.least, package, version);
                put(&mut self.below, package, &after(version, parts(version).len().saturating_sub(2)));
            } else if let Some(version) = part.strip_prefix('^') {
                put(&mut self.least, package, version);
                let first = parts(version).iter().position(|n| *n > 0).unwrap_or(0);
                put(&mut self.below, package, &after(version, first));
            } else if let Some(version) = part.strip_prefix('~') {
                put(&mut self.least, package, version);
                put(&mut self.below, package, &after(version, 1));
            } else {
                put(&mut self.exact, package, part);
            }
        }
    }
}

/// Adds a version, unless it is none or the package has one.
fn put(into: &mut HashMap<String, String>, package: &str, version: &str) {
    let version = version.trim().trim_matches(['"', '\'']);
    if version.starts_with(|c: char| c.is_ascii_digit()) && into.len() < MAX_PACKAGES {
        into.entry(normal(package)).or_insert_with(|| version.to_string());
    }
}

/// The numbers of a version: `1.0.0rc2` is 1, 0, 0.
pub fn parts(version: &str) -> Vec<u64> {
    let mut out: Vec<u64> = Vec::new();
    for part in version.trim_start_matches(['v', '=', '^', '~', '>', ' ']).split('.') {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        let Ok(n) = digits.parse() else { break };
        out.push(n);
        if digits.len() < part.len() {
            break;
        }
    }
    out
}

/// The first version whose number at a place (or the last before it) is greater.
fn after(version: &str, place: usize) -> String {
    let mut numbers = parts(version);
    numbers.truncate(place.saturating_add(1));
    if let Some(last) = numbers.last_mut() {
        *last = last.saturating_add(1);
    }
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

fn normal(package: &str) -> String {
    package.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// Returns true if the entries of a table say that a package is from a repository, folder or archive.
fn is_unreleased_source(entries: &str) -> bool {
    let keys = ["git", "path", "url", "directory", "editable", "virtual", "workspace"];
    entries.split([',', '{']).filter_map(|e| e.split_once('=')).any(|(key, _)| keys.contains(&key.trim()))
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
    fn a_package_from_no_release_has_no_exact_version() {
        for (path, text) in [
            (
                "requirements.txt",
                "google_adk[eval] @ git+https://example.com/adk.git@rich\ngoogle-adk==1.0.0\n",
            ),
            ("requirements.txt", "-e git+https://example.com/adk.git#egg=google-adk\n"),
            ("pyproject.toml", "dependencies = [\"google-adk @ git+https://example.com/adk.git@rich\"]\n"),
            (
                "pyproject.toml",
                "dependencies = [\n  \"google-adk\",\n]\n[tool.uv.sources]\ngoogle-adk = { git = \"x\" }\n",
            ),
            ("uv.lock", "[[package]]\nname = \"google-adk\"\nversion = \"1.0\"\nsource = { git = \"x\" }\n"),
            (
                "poetry.lock",
                "[[package]]\nname = \"google-adk\"\nversion = \"1.0\"\n[package.source]\ntype = \"git\"\n",
            ),
        ] {
            let mut found = read(path, text);
            let known =
                (found.exact("google-adk"), found.is_unreleased("google-adk"), found.names("google-adk"));
            assert_eq!(known, (None, true, true), "{text}");
            // What is farther away, or comes after, counts less.
            found.extend(&read("requirements.txt", "google-adk==1.0.0\n"));
            assert_eq!(found.exact("google-adk"), None);
            let mut near = read("requirements.txt", "google-adk==1.0.0\n");
            near.extend(&read(path, text));
            assert_eq!((near.exact("google-adk"), near.is_unreleased("google-adk")), (Some("1.0.0"), false));
        }
        let lock = "[[package]]\nname = \"crewai\"\nversion = \"1.0\"\nsource = { registry = \"https://pypi.org/simple\" }\n";
        assert_eq!(read("uv.lock", lock).exact("crewai"), Some("1.0"));
        let bare = read("requirements.txt", "crewai\n");
        assert!(bare.names("crewai") && !bare.names("langchain") && bare.of("crewai").is_none());
    }

    #[test]
    fn requirements_of_setup_cfg() {
        let text = "[metadata]\nname = app\nversion = 0.1\n\n[options]\npackages = find:\ninstall_requires =\n    \
                    crewai==1.6.1  # pinned\n    langgraph>=0.6,<1.0; python_version > '3.9'\n\n\
                    [options.extras_require]\nagents = openai-agents==0.2.1\ndev =\n    pytest==8.0\n\
                    [tool:pytest]\nlangchain = 0.1\n";
        let versions = read("setup.cfg", text);
        assert_eq!((versions.exact("crewai"), versions.below("langgraph")), (Some("1.6.1"), Some("1.0")));
        assert_eq!((versions.exact("openai-agents"), versions.exact("pytest")), (Some("0.2.1"), Some("8.0")));
        assert_eq!((versions.of("app"), versions.of("langchain")), (None, None));
    }

    #[test]
    fn requirements_of_setup_py() {
        let setup = "from setuptools import setup\nMORE = ['langgraph==1.0.2']\nsetup(\n    name='x==9',\n    install_requires=['crewai>=0.80', *MORE],\n    extras_require={'dev': ['google-adk<2']},\n)\n";
        let found = read("a/setup.py", setup);
        assert_eq!((found.exact("langgraph"), found.of("crewai")), (Some("1.0.2"), Some("0.80")));
        assert_eq!((found.below("google-adk"), found.names("x")), (Some("2"), false));
    }

    #[test]
    fn requirements_of_pipfile() {
        let pipfile = "[[source]]\nurl = \"https://pypi.org/simple\"\n\n[packages]\nlanggraph = \"==1.0.2\"\ncrewai = {extras = [\"tools\"], version = \">=0.80\"}\nopenai-agents = \"*\"\nours = {git = \"x\"}\n\n[requires]\npython_version = \"3.12\"\n";
        let found = read("Pipfile", pipfile);
        assert_eq!((found.exact("langgraph"), found.of("crewai")), (Some("1.0.2"), Some("0.80")));
        assert_eq!((found.of("openai-agents"), found.names("openai-agents")), (None, true));
        assert_eq!((found.is_unreleased("ours"), found.names("python-version")), (true, false));
    }

    #[test]
    fn dependencies_of_conda() {
        let text = "name: app\nchannels:\n  - conda-forge=1\ndependencies:\n  - python=3.11\n  - \
                    conda-forge::langgraph=0.6.7=pyhd8ed1ab_0\n  - langchain=0.3\n  - 'pydantic-ai>=1,<2'\n  - pip\n  - pip:\n    \
                    - crewai==1.6.1  # pinned\n    - google-adk~=1.2.0\nprefix: /opt\n";
        let versions = read("environment.yml", text);
        assert_eq!((versions.exact("langgraph"), versions.exact("crewai")), (Some("0.6.7"), Some("1.6.1")));
        assert_eq!((versions.exact("langchain"), versions.below("langchain")), (None, Some("0.4")));
        assert_eq!((versions.below("pydantic-ai"), versions.below("google-adk")), (Some("2"), Some("1.3")));
        assert_eq!(versions.of("conda-forge"), None);
    }

    #[test]
    fn a_range_bounds_the_version_from_above() {
        let below = |requirement: &str| {
            let versions = read("requirements.txt", &format!("crewai{requirement}\n"));
            assert_eq!(versions.exact("crewai"), None, "{requirement}");
            versions.below("crewai").map(String::from)
        };
        for (requirement, expected) in [
            ("[tools]>=0.86.0,<1.0.0", Some("1.0.0")),
            (">=0.152.0", None),
            ("~=0.86.1", Some("0.87")),
            ("~=0.86", Some("1")),
            ("==0.86.*", Some("0.87")),
            ("<=0.86.0", Some("0.86.1")),
            ("", None),
        ] {
            assert_eq!(below(requirement).as_deref(), expected, "{requirement}");
        }
        let poetry = read("pyproject.toml", "crewai = \"^0.28.8\"\n");
        assert_eq!(poetry.below("crewai"), Some("0.29"));
        assert_eq!(read("pyproject.toml", "crewai = \"^1.2\"\n").below("crewai"), Some("2"));
    }

    #[test]
    fn an_exact_version_outweighs_a_range() {
        let mut versions = read("pyproject.toml", "langgraph = \">=0.2\"");
        assert_eq!(versions.of("langgraph"), Some("0.2"));
        versions.read("uv.lock", "[[package]]\nname = \"langgraph\"\nversion = \"1.1.0\"");
        assert_eq!(versions.of("langgraph"), Some("1.1.0"));
    }
}
