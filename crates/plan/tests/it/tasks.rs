//! Realistic plans of `suite/plans/tasks`: all compile, except for those that say which refusal they have.

use diagnostics::FileId;
use std::sync::Arc;

/// Plans with a construct that is not in the language. Each is refused with a remedy.
const REFUSED: &[&str] =
    &["average_rating", "class_method", "helper_main", "match_status", "star_args", "walrus", "with_open"];

fn tools(folder: &std::path::Path) -> Vec<Arc<core_ir::ToolDecl>> {
    let text: Arc<str> = std::fs::read_to_string(folder.join("tools.agent")).expect("declarations").into();
    let (module, found) = agentlang::check(FileId(1), &text);
    module.unwrap_or_else(|| panic!("{found:?}")).tools()
}

#[test]
fn realistic_plans_compile() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/plans/tasks");
    let world = plan::World { tools: tools(&folder), ..plan::World::default() };
    let (mut compiled, mut refused) = (0, Vec::new());
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let path = entry.expect("a file").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("").to_string();
        let Some(stem) = name.strip_suffix(".plan.py") else { continue };
        let text = std::fs::read_to_string(&path).expect("a plan");
        let (code, found) = plan::compile(FileId(0), &name, text.into(), &world);
        if REFUSED.contains(&stem) {
            assert!(
                code.is_none() && found.iter().any(|d| d.code == plan::codes::SUBSET && !d.help.is_empty())
            );
            refused.push(stem.to_string());
        } else {
            assert!(code.is_some(), "{name}: {found:?}");
            compiled += 1;
        }
    }
    assert_eq!((compiled, refused.len()), (60 - REFUSED.len(), REFUSED.len()));
}
