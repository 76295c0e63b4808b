//! Chains that read documents, as `save` writes them: all at once, each by itself, one after the other; and
//! what names its sources.

use super::dumped::left_out;
use super::prompt::{MessageContent, Prompt};
use super::value::{Flow, StageInput};
use super::{LangChainReader, MAX_DEPTH};
use core_ir::{Data, IfSugar, LabelSpec, Name, Num, Prim, Term, TermId, ToolDecl, ToolParam, Type};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Template, braces, clip};

impl<'d> LangChainReader<'d> {
    /// An answer, and the line of its sources that stands behind the word for them.
    pub(super) fn sourced(
        self,
        flow: &mut Flow<'_, '_>,
        reply: &StageInput<'d>,
        names: [String; 2],
        at: Span,
    ) -> StageInput<'d> {
        /// Alternative spellings of the marker before the sources.
        const WORDS: [&str; 4] = ["Sources:", "sources:", "SOURCE:", "Source:"];
        const WORD: &str = "SOURCES:";
        let reply = flow.text(reply, at);
        let reply = flow.bind("reply", reply);
        let b = &mut flow.kit.b;
        let replaced = |b: &mut core_ir::Builder, text: TermId, word: &str| {
            let (word, usual) = (b.lit(Data::str(word), at), b.lit(Data::str(WORD), at));
            let parts = b.add(Term::Prim(Prim::Split, vec![text, word]), at);
            b.add(Term::Prim(Prim::Join, vec![parts, usual]), at)
        };
        let mut text = b.var(reply.clone(), at);
        for word in WORDS {
            text = replaced(b, text, word);
        }
        let text = flow.bind("text", text);
        let b = &mut flow.kit.b;
        // A question that the model writes after the sources ends them, too.
        let whole = b.var(text.clone(), at);
        let whole = replaced(b, whole, "QUESTION: ");
        let word = b.lit(Data::str(WORD), at);
        let parts = b.add(Term::Prim(Prim::Split, vec![whole, word]), at);
        let parts = flow.bind("parts", parts);
        let b = &mut flow.kit.b;
        let part = |b: &mut core_ir::Builder, list: TermId, n: i64| {
            let n = b.lit(Num::from(n), at);
            b.add(Term::Index(list, n), at)
        };
        let found = |b: &mut core_ir::Builder| {
            let (text, word) = (b.var(text.clone(), at), b.lit(Data::str(WORD), at));
            b.add(Term::Prim(Prim::Contains, vec![text, word]), at)
        };
        let (all, test, otherwise) = (b.var(parts.clone(), at), found(b), b.var(reply, at));
        let first = part(b, all, 0);
        let answer = b.add(Term::If(test, first, otherwise, IfSugar::Plain), at);
        let (all, test, line) = (b.var(parts, at), found(b), b.lit(Data::str("\n"), at));
        let second = part(b, all, 1);
        let lines = b.add(Term::Prim(Prim::Split, vec![second, line]), at);
        let first = part(b, lines, 0);
        let (trimmed, nothing) = (b.add(Term::Prim(Prim::Trim, vec![first]), at), b.lit(Data::str(""), at));
        let sources = b.add(Term::If(test, trimmed, nothing, IfSugar::Plain), at);
        let [answer, sources] = [("answer", answer), ("sources", sources)].map(|(n, t)| flow.bind(n, t));
        let [first, second] = names;
        StageInput::Named(vec![(first, StageInput::Text(answer)), (second, StageInput::Text(sources))], false)
    }

    /// The documents that are given under a name: a list, in a variable.
    pub(super) fn documents(
        self,
        flow: &mut Flow<'_, '_>,
        given: &StageInput<'d>,
        key: &str,
        at: Span,
    ) -> Name {
        if let StageInput::Named(fields, _) = given
            && let Some((_, StageInput::Data(list))) = fields.iter().rev().find(|(n, _)| n == key)
        {
            return list.clone();
        }
        flow.kit.typed_input(key, Type::list(document()));
        let list = flow.kit.input(key, at);
        flow.bind("documents", list)
    }

    /// The documents that are found for a question.
    pub(super) fn retrieved(self, flow: &mut Flow<'_, '_>, question: &Name, at: Span) -> Name {
        let query = flow.kit.b.var(question.clone(), at);
        let mut decl = ToolDecl::unknown("retriever".into(), at);
        decl.params =
            vec![ToolParam { name: "query".into(), ty: Type::Str, bound: LabelSpec::BOTTOM, default: None }];
        decl.result = Type::list(document());
        let id = flow.kit.declared(decl);
        let tool = flow.kit.b.add(Term::Tool(id), at);
        let args = flow.kit.b.add(Term::Record(vec![("query".into(), query)]), at);
        let found = flow.kit.b.app(tool, args, at);
        flow.bind("documents", found)
    }

    /// The answer of a chain for documents.
    pub(super) fn combined(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        documents: Name,
        given: StageInput<'d>,
        depth: usize,
    ) -> StageInput<'d> {
        let head = node.head();
        if depth > MAX_DEPTH {
            return left_out(flow, "a chain beyond the limit", head);
        }
        let variable =
            node.get("document_variable_name").and_then(|v| v.as_str()).unwrap_or("text").to_string();
        let with = |given: &StageInput<'d>, more: Vec<(String, StageInput<'d>)>| {
            let (mut fields, inputs) = given.clone().named();
            fields.extend(more);
            StageInput::Named(fields, inputs)
        };
        match node.get("_type").and_then(|t| t.as_str()).unwrap_or("") {
            "stuff_documents_chain" => {
                let list = self.formatted(flow, node, &documents);
                let separator = node.get("document_separator").and_then(|s| s.as_str()).unwrap_or("\n\n");
                let separator = flow.kit.text(separator, head);
                let text = flow.kit.b.add(Term::Prim(Prim::Join, vec![list, separator]), head);
                let text = StageInput::Text(flow.bind("context", text));
                self.within(flow, node, "llm_chain", with(&given, vec![(variable, text)]), depth)
            }
            "reduce_documents_chain" => {
                let inner = ["combine_documents_chain", "combine_document_chain"]
                    .iter()
                    .find_map(|k| self.part(flow.kit, node, k));
                match inner {
                    Some(chain) => self.combined(flow, chain, documents, given, depth + 1),
                    None => left_out(flow, "the chain for documents", head),
                }
            }
            "map_reduce_documents_chain" => {
                let (value, lets) = flow.aside(|flow| {
                    let page = content(flow, "$document", head);
                    let page = StageInput::Text(flow.bind("page", page));
                    self.within(flow, node, "llm_chain", with(&given, vec![(variable, page)]), depth)
                });
                let text = flow.text(&value, head);
                let document = flow.kit.b.var("$document", head);
                let about = flow.kit.b.add(Term::Field(document, "metadata".into()), head);
                let fields = vec![("page_content".into(), text), ("metadata".into(), about)];
                let record = flow.kit.b.add(Term::Record(fields), head);
                let body = flow.within(lets, record);
                let function = flow.kit.b.abs("$document", None, body, head);
                let list = flow.kit.b.var(documents, head);
                let mapped = flow.kit.b.add(Term::Each(None, function, list), head);
                let mapped = flow.bind("mapped", mapped);
                match self.part(flow.kit, node, "reduce_documents_chain") {
                    Some(chain) => self.combined(flow, chain, mapped, given, depth + 1),
                    // Written before there were such chains.
                    None => match self.part(flow.kit, node, "combine_document_chain") {
                        Some(chain) => self.combined(flow, chain, mapped, given, depth + 1),
                        None => left_out(flow, "the reduction of the results for the documents", head),
                    },
                }
            }
            "refine_documents_chain" => self.refined(flow, node, &documents, &variable, &given, depth),
            kind => left_out(flow, &format!("a chain for documents of the type `{}`", clip(kind)), head),
        }
    }

    /// Each document as its prompt shows it: a list of texts.
    fn formatted(self, flow: &mut Flow<'_, '_>, node: Node<'d>, documents: &Name) -> TermId {
        let at = node.head();
        let text = self.shown(flow, node, "$document");
        let function = flow.kit.b.abs("$document", None, text, at);
        let list = flow.kit.b.var(documents.clone(), at);
        flow.kit.b.add(Term::Each(None, function, list), at)
    }

    /// A document, in a variable, as its prompt shows it.
    fn shown(self, flow: &mut Flow<'_, '_>, node: Node<'d>, document: &str) -> TermId {
        let at = node.head();
        let prompt = self
            .part(flow.kit, node, "document_prompt")
            .and_then(|p| self.prompt(flow, p, "prompt of a document"));
        let Some(Prompt { messages, .. }) = prompt else { return content(flow, document, at) };
        let mut template = Template::new(at);
        for message in &messages {
            let MessageContent::Template(text, format) = &message.said else { continue };
            for piece in format.split(text) {
                match piece {
                    braces::Piece::Text(text) => {
                        template.text(&text);
                    }
                    braces::Piece::Name(name) if name == "page_content" => {
                        let page = content(flow, document, message.at);
                        template.term(page);
                    }
                    braces::Piece::Name(name) => {
                        let value = flow.kit.b.var(document, message.at);
                        let meta = flow.kit.b.add(Term::Field(value, "metadata".into()), message.at);
                        template.term(flow.kit.b.add(Term::Field(meta, name.as_str().into()), message.at));
                    }
                }
            }
        }
        template.build(&mut flow.kit.b)
    }

    /// The first document, then each further one with the answer so far.
    fn refined(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        documents: &Name,
        variable: &str,
        given: &StageInput<'d>,
        depth: usize,
    ) -> StageInput<'d> {
        let at = node.head();
        let answer = node
            .get("initial_response_name")
            .and_then(|n| n.as_str())
            .unwrap_or("existing_answer")
            .to_string();
        let with = |more: Vec<(String, StageInput<'d>)>| {
            let (mut fields, inputs) = given.clone().named();
            fields.extend(more);
            StageInput::Named(fields, inputs)
        };
        let list = flow.kit.b.var(documents.clone(), at);
        let zero = flow.kit.b.lit(Num::from(0), at);
        let first = flow.kit.b.add(Term::Index(list, zero), at);
        let first = flow.bind("document", first);
        let text = self.shown(flow, node, &first);
        let page = StageInput::Text(flow.bind("page", text));
        let initial =
            self.within(flow, node, "initial_llm_chain", with(vec![(variable.to_string(), page)]), depth);
        let initial = flow.text(&initial, at);
        let (value, lets) = flow.aside(|flow| {
            let field = |flow: &mut Flow<'_, '_>, name: &str| {
                let state = flow.kit.b.var("$s", at);
                flow.kit.b.add(Term::Field(state, name.into()), at)
            };
            let (list, index) = (flow.kit.b.var(documents.clone(), at), field(flow, "at"));
            let document = flow.kit.b.add(Term::Index(list, index), at);
            let document = flow.bind("document", document);
            let text = self.shown(flow, node, &document);
            let page = StageInput::Text(flow.bind("page", text));
            let so_far = field(flow, "text");
            let so_far = StageInput::Text(flow.bind("answer", so_far));
            self.within(
                flow,
                node,
                "refine_llm_chain",
                with(vec![(variable.to_string(), page), (answer.clone(), so_far)]),
                depth,
            )
        });
        let refined = flow.text(&value, at);
        let b = &mut flow.kit.b;
        let state = |b: &mut core_ir::Builder, name: &str| {
            let s = b.var("$s", at);
            b.add(Term::Field(s, name.into()), at)
        };
        let one = b.lit(Num::from(1), at);
        let index = state(b, "at");
        let next = b.add(Term::Prim(Prim::Add, vec![index, one]), at);
        let turn = b.add(Term::Record(vec![("at".into(), next), ("text".into(), refined)]), at);
        let this = b.var("self", at);
        let again = b.app(this, turn, at);
        let again = flow.within(lets, again);
        let b = &mut flow.kit.b;
        let list = b.var(documents.clone(), at);
        let length = b.add(Term::Prim(Prim::Length, vec![list]), at);
        let index = state(b, "at");
        let more = b.add(Term::Prim(Prim::Lt, vec![index, length]), at);
        let result = state(b, "text");
        let body = b.add(Term::If(more, again, result, IfSugar::Plain), at);
        let step = b.abs("$s", None, body, at);
        let body = b.abs("self", None, step, at);
        let fix = flow.kit.fix(LoopBound::unknown("one iteration for each further document"), body, at);
        let b = &mut flow.kit.b;
        let one = b.lit(Num::from(1), at);
        let begin = b.add(Term::Record(vec![("at".into(), one), ("text".into(), initial)]), at);
        let all = b.app(fix, begin, at);
        StageInput::Text(flow.bind("refined", all))
    }
}

/// A document: its text and what is known of it.
fn document() -> Type {
    Type::record([(Name::from("page_content"), Type::Str), (Name::from("metadata"), Type::Dyn)])
}

/// The text of a document in a variable.
fn content(flow: &mut Flow<'_, '_>, document: &str, at: Span) -> TermId {
    let value = flow.kit.b.var(document, at);
    flow.kit.b.add(Term::Field(value, "page_content".into()), at)
}
