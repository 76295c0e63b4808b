//! Outcome of a run, in a form in which the machine and the naive evaluator can be compared.

use crate::world::{Call, Message};
use core_ir::{Data, Name, Num};

/// A value with all its labels, each as the data that denotes it. Functions are opaque.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The label.
    pub label: Data,
    /// Labeled node.
    pub node: TreeNode,
}

/// See [`Tree`].
#[derive(Clone, Debug, PartialEq)]
pub enum TreeNode {
    /// A scalar: null, a truth value, a number or text.
    Scalar(Data),
    /// A list.
    List(Vec<Tree>),
    /// A record.
    Record(Vec<(Name, Tree)>),
    /// The arguments of a planned call of the tool of this name.
    Args(Name, Vec<(Name, Tree)>),
    /// A pair.
    Pair(Box<(Tree, Tree)>),
    /// A tag with its payload.
    Tag(Name, Box<Tree>),
    /// Some function, with the join of the labels of what it captured.
    Function(Data),
}

/// `["U"]:[1,["S"]:2]`; the label ⊥ of the bit lattices is not written.
impl std::fmt::Display for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.label != Data::list([]) {
            write!(f, "{}:", self.label.to_json())?;
        }
        match &self.node {
            TreeNode::Scalar(d) => write!(f, "{}", d.to_json()),
            TreeNode::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            TreeNode::Record(fields) | TreeNode::Args(_, fields) => {
                if let TreeNode::Args(tool, _) = &self.node {
                    write!(f, "args[{tool}]")?;
                }
                f.write_str("{")?;
                for (i, (name, item)) in fields.iter().enumerate() {
                    write!(f, "{}{name}:{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("}")
            }
            TreeNode::Pair(p) => write!(f, "({}, {})", p.0, p.1),
            TreeNode::Tag(name, payload) => write!(f, "`{name} {payload}"),
            TreeNode::Function(_) => f.write_str("<function>"),
        }
    }
}

/// An error that ended a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The kind of error as §10 names it.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// Its label.
    pub label: Data,
}

/// Outcome of a run, with its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The value, or the error.
    pub result: Result<Tree, Failure>,
    /// The label of the conversation at the end.
    pub conversation_label: Data,
    /// The conversation at the end.
    pub conversation: Vec<Message>,
    /// Requests in order, each with its channel label.
    pub requests: Vec<(Call, Data)>,
    /// The time limits of each request, in seconds, innermost first.
    pub limits: Vec<Vec<Num>>,
}
