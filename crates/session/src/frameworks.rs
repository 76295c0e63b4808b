//! Front ends of this build: those of the crate `frontends`, or none without the feature `frameworks`. Lint
//! belongs to that feature, too.

#[cfg(feature = "frameworks")]
pub use frontends::{FRONTENDS, function_tools, recognize};

#[cfg(feature = "frameworks")]
pub use crate::lint::LintSettings;

/// `[lint]` of `entail.toml`, which this build does not read.
#[cfg(not(feature = "frameworks"))]
pub type LintSettings = serde::de::IgnoredAny;

/// All front ends: this build has none.
#[cfg(not(feature = "frameworks"))]
pub const FRONTENDS: &[&dyn frontend_kit::Frontend] = &[];

/// Recognizes no file: this build has no front ends.
#[cfg(not(feature = "frameworks"))]
pub fn recognize(_: &frontend_kit::File) -> frontend_kit::Recognized {
    frontend_kit::Recognized::Unknown
}

/// A build without front ends reads no functions of Python.
#[cfg(not(feature = "frameworks"))]
pub fn function_tools(
    file: diagnostics::FileId,
    _: &str,
    _: std::sync::Arc<str>,
) -> Result<Vec<core_ir::ToolDecl>, Vec<diagnostics::Diagnostic>> {
    let start = diagnostics::Span { file, start: 0, end: 0 };
    let what = ABSENT.unwrap_or("this program was built without front ends");
    Err(vec![diagnostics::Diagnostic::error(frontend_kit::doc::codes::SYNTAX, what, start)])
}

/// The remedy where a configuration is not read because this build has no front ends.
pub const ABSENT: Option<&str> = if cfg!(feature = "frameworks") {
    None
} else {
    Some("this program was built without front ends; build it with `--features frameworks`")
};

#[cfg(all(test, not(feature = "frameworks")))]
mod tests {
    use crate::load::{Options, Problem, load};
    use diagnostics::Sources;

    /// Returns true if the path is refused and the help names the feature.
    fn is_refused(path: &str, feature: &str) -> bool {
        let help = match load(&mut Sources::new(), path, &Options::default()) {
            Err(Problem::Unreadable(_, help)) => help,
            _ => None,
        };
        help.is_some_and(|help| help.contains(&format!("--features {feature}")))
    }

    #[test]
    fn a_configuration_is_refused_with_the_name_of_the_feature() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["crew.yaml", "graph.py", "flow.json"] {
            let path = dir.path().join(name);
            std::fs::write(&path, r#"{"agents": {}}"#).unwrap();
            assert!(is_refused(path.to_str().unwrap(), "frameworks"), "{name}");
        }
        assert!(is_refused(dir.path().to_str().unwrap(), "frameworks"), "a directory");
    }

    #[cfg(not(feature = "plans"))]
    #[test]
    fn a_plan_is_refused_with_the_name_of_the_feature() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pay.plan.py");
        std::fs::write(&path, "print(1)").unwrap();
        assert!(is_refused(path.to_str().unwrap(), "plans"));
    }

    #[test]
    fn settings_of_lint_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("entail.toml");
        std::fs::write(&path, "[lint]\nignore = ['L017']\n").unwrap();
        assert!(crate::Settings::load(&path).is_ok());
    }

    #[test]
    fn programs_are_read_without_front_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.lam");
        std::fs::write(&path, "1 + 1").unwrap();
        assert!(load(&mut Sources::new(), path.to_str().unwrap(), &Options::default()).is_ok());
    }
}
