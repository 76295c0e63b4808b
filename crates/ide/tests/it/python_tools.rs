//! Names of functions of Python: definitions, hover, completion and findings.

use crate::files::{self, at};
use ide::{QueryError, Workspace};

const MODELS: &str = "from typing import TypedDict\n\nclass Order(TypedDict):\n    id: str\n";
const SHOP: &str = "from models import Order\n\ndef refund(order: Order, times: int = 1) -> bool:\n    \
    \"\"\"Refunds an order.\"\"\"\n    return True\n\ndef log(text):\n    return text\n";
const MAIN: &str = "use python \"shop.py\" as shop;\nuse python \"shop.py\" { refund as again };\n\
    pipeline p(id: String) -> Bool {\n    let order: shop.Order = { id };\n    \
    let done = shop.refund(order);\n    let twice = again(order, 2);\n    return done && twice;\n}\n";

fn workspace(main: &str) -> Workspace {
    files::workspace(&[("shop.py", SHOP), ("models.py", MODELS)], main)
}

#[test]
fn findings_are_those_of_the_check() {
    assert_eq!(workspace(MAIN).findings("main.agent"), []);
    let found = workspace(&MAIN.replace("shop.refund", "shop.log")).findings("main.agent");
    let codes: Vec<_> = found.iter().map(|f| f.code).collect();
    assert_eq!(codes, ["A116"], "{found:?}");
    let reason = &found[0].related[0].0;
    assert_eq!((reason.path.as_str(), &reason.text[reason.range.clone()]), ("shop.py", "text"));
    // What the editor has of the module counts.
    let mut w = workspace(MAIN);
    w.open("shop.py", SHOP.replace("times: int", "times: str").into());
    let codes: Vec<_> = w.findings("main.agent").iter().map(|f| f.code).collect();
    assert_eq!(codes, ["A050"]);
    assert_eq!(w.readers("shop.py"), ["main.agent"]);
}

#[test]
fn definitions_are_in_the_module() {
    let w = workspace(MAIN);
    let cases = [
        (at(MAIN, "refund(", 0), "shop.py", "refund"),
        (at(MAIN, "refund as", 0), "shop.py", "refund"),
        (at(MAIN, "again(", 0), "shop.py", "refund"),
        (at(MAIN, "Order =", 0), "models.py", "Order"),
    ];
    for (offset, path, name) in cases {
        let found = w.definition("main.agent", offset);
        let shown: Vec<_> = found.iter().map(|l| (l.path.as_str(), &l.text[l.range.clone()])).collect();
        assert_eq!(shown, [(path, name)], "{name} at {offset}");
        let refused = w.rename("main.agent", offset, "other");
        assert!(matches!(refused, Err(QueryError::Refused(_))), "{name}");
    }
    let file = w.definition("main.agent", at(MAIN, "shop.py", 0));
    assert_eq!(file.iter().map(|l| l.path.as_str()).collect::<Vec<_>>(), ["shop.py"]);
}

#[test]
fn hover_and_completion_know_the_functions() {
    let w = workspace(MAIN);
    let hover = w.hover("main.agent", at(MAIN, "refund(", 0)).unwrap();
    let expected = "```agent\ntool refund(order: Order, times: Option[Int] = null) -> Bool as \"shop__refund\" \
        writes untrusted\n```\n\nFrom `shop.py`.";
    assert_eq!(hover.markdown, expected);
    let text = MAIN.replace("shop.refund(order)", "shop.");
    let offset = text.find("shop.;").unwrap() + "shop.".len();
    let labels: Vec<String> =
        workspace(&text).completion("main.agent", offset).into_iter().map(|c| c.label).collect();
    assert_eq!(labels, ["Order", "refund"]);
}
