//! `entail compile --format mermaid|dot|svg`, as somebody sees it.

use assert_cmd::Command;

fn drawn(format: &str, file: &str, more: &[&str]) -> String {
    let mut command = Command::cargo_bin("entail").expect("the binary is built");
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let done = command.args(["compile", "--format", format, file]).args(more).assert().success();
    String::from_utf8(done.get_output().stdout.clone()).expect("pictures are text")
}

#[test]
fn functions_bound_by_let_are_drawn_where_they_are_called() {
    let picture = drawn("mermaid", "examples/writing/review.agent", &[]);
    for node in ["draft", "revise", "{{\"at most 2 times\"}}"] {
        assert!(picture.contains(node), "{node} is not in\n{picture}");
    }
    assert_eq!(picture.matches("review_final").count(), 2, "it is called twice in\n{picture}");
}

#[test]
fn an_agent_with_its_tools_is_one_box_that_says_what_taints_it() {
    let picture = drawn("mermaid", "examples/attacks/url.agent", &[]);
    let agent = picture.lines().find(|l| l.contains("tools: notes, fetch")).expect("the agent is drawn");
    assert!(agent.contains("at most 5 times"), "{agent}");
    assert!(agent.contains("secret: the result of the tool `notes`"), "{agent}");
    assert!(agent.ends_with(":::open"), "{agent}");
}

#[test]
fn a_policy_shows_in_the_picture() {
    let policy = ["--policy", "examples/configs/coder.policy.toml"];
    let without = drawn("dot", "examples/configs/coder.yaml", &[]);
    let with = drawn("dot", "examples/configs/coder.yaml", &policy);
    assert_ne!(without, with);
}

#[test]
fn an_image_names_every_node() {
    let image = drawn("svg", "examples/writing/review.agent", &[]);
    assert!(image.starts_with("<svg "), "{image}");
    for text in [">draft<", ">revise<", ">at most 2 times<", ">input<", ">result<"] {
        assert!(image.contains(text), "{text} is not in\n{image}");
    }
}
