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
fn edges_say_which_labels_reach_a_call_and_the_result() {
    let picture = drawn("mermaid", "examples/policies/invoice.agent", &[]);
    let number = |text: &str| {
        let line = picture.lines().find(|l| l.contains(text)).expect("it is drawn");
        line.trim().split(['(', '[']).next().unwrap_or_default().to_string()
    };
    let (read, extract, pay) = (number("\"read"), number("\"extract"), number("\"pay"));
    for edge in
        [format!("{read} -->|\"untrusted\"| {extract}\n"), format!("{extract} -->|\"untrusted\"| {pay}\n")]
    {
        assert!(picture.contains(&edge), "{edge} is not in\n{picture}");
    }
    assert!(picture.contains(&format!(" --> {read}\n")), "{picture}");
    let url = drawn("mermaid", "examples/attacks/url.agent", &[]);
    let result = url.lines().find(|l| l.contains("([\"result\"])")).expect("it is drawn");
    let result = result.trim().split('(').next().unwrap_or_default();
    assert!(url.contains(&format!("-->|\"final; untrusted, secret\"| {result}\n")), "{url}");
    // What the agent's own tools bring in does not come from the input.
    assert!(url.contains("  n0 --> n1\n") && url.contains("-->|\"stopped\"|"), "{url}");
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

/// A graph whose edges go back and forth, as LangGraph has them: from step to step, not through a hub.
#[test]
fn a_graph_with_cycles_is_drawn_from_step_to_step() {
    let names = ["plan", "search", "read", "write"];
    let mut module = String::from(
        "from typing import TypedDict\nfrom langchain_openai import ChatOpenAI\nfrom langgraph.graph import StateGraph, START, END\n\
         llm = ChatOpenAI(model=\"m\")\nclass State(TypedDict):\n    text: str\ng = StateGraph(State)\n",
    );
    for name in names {
        module += &format!(
            "def {name}(s):\n    return {{\"text\": llm.invoke(\"{name} \" + s[\"text\"]).content}}\ng.add_node(\"{name}\", {name})\n"
        );
    }
    // Two cycles that cross: neither is within the other.
    for (name, back, on) in [("read", "search", "write"), ("write", "plan", "__end__")] {
        module += &format!(
            "def after_{name}(s):\n    if \"again\" in s[\"text\"]:\n        return \"{back}\"\n    if \"skip\" in s[\"text\"]:\n        return \"read\"\n    return \"{on}\"\n\
             g.add_conditional_edges(\"{name}\", after_{name})\n"
        );
    }
    module += "g.add_edge(START, \"plan\")\ng.add_edge(\"plan\", \"search\")\ng.add_edge(\"search\", \"read\")\napp = g.compile()\n";
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("graph.py");
    std::fs::write(&file, module).expect("it is written");
    let picture = drawn("mermaid", &file.display().to_string(), &[]);
    let node = |name: &str| {
        let line = picture.lines().find(|l| l.contains(&format!("[\"{name}<br/>"))).expect("it is drawn");
        line.trim().split('[').next().unwrap_or_default().to_string()
    };
    let edge = |from: &str, to: &str| picture.contains(&format!("  {} --> {}\n", node(from), node(to)));
    assert!(edge("plan", "search") && edge("search", "read"), "{picture}");
    for name in names {
        assert_eq!(picture.matches(&format!("[\"{name}<br/>")).count(), 1, "{picture}");
    }
    // What is decided after a step leads to the next ones by their names, and the bound stands where the
    // graph is entered.
    let bound = picture.lines().find(|l| l.contains("{{\"at most ")).expect("the bound is drawn");
    let loop_node = bound.trim().split('{').next().unwrap_or_default();
    assert_eq!(picture.matches(&format!(" {loop_node}\n")).count(), 1, "nothing leads back to it: {picture}");
    assert!(picture.contains(&format!("  {loop_node} --> {}\n", node("plan"))), "{picture}");
    assert_eq!(picture.matches(&format!("| {}\n", node("plan"))).count(), 1, "{picture}");
    assert!(!picture.contains("{\"which\"}"), "{picture}");
}
