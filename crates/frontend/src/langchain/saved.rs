//! Chains and agents with `_type`, as `save` writes and `load_chain` and `load_agent` read them.
//!
//! | `_type` | term |
//! |---|---|
//! | `llm_chain` | `llm p θ`, asked with its prompt |
//! | `simple_sequential_chain`, `sequential_chain` | one after the other: a text, or named values |
//! | `stuff_documents_chain` | all documents in one question |
//! | `map_reduce_documents_chain` | `each`, then what its `reduce_documents_chain` does |
//! | `refine_documents_chain` | `fix`, a turn per document |
//! | `retrieval_qa`, `vector_db_qa`, … | what `tool[retriever]` finds, then its chain for documents |
//! | `api_chain`, `llm_math_chain`, `llm_bash_chain`, `pal_chain`, `sql_database_chain`, `llm_requests_chain` | a question, what is run of the reply as a tool, perhaps a further question |
//! | `llm_checker_chain` | four questions |
//! | an agent | `fix[max_iterations]` around a model that calls its `allowed_tools` |

use super::dumped::{constant, left_out};
use super::prompt::{Prompt, Said, model};
use super::value::{Flow, Given};
use super::{DEEPEST, Reader, prompt};
use crate::defaults;
use crate::doc::Node;
use crate::emit::{self, LoopBound, Template, Unused, braces, clip, codes, undecided, value_span};
use crate::kit::{Agent, Hand, size};
use crate::shape::why;
use core_ir::{Data, IfSugar, LabelSpec, Name, Num, Prim, Role, Term, TermId, ToolDecl, ToolParam, Type};
use diagnostics::{Diagnostic, Span};

/// Kinds of chains that are compiled.
pub(super) const CHAINS: &[&str] = &[
    "llm_chain",
    "sequential_chain",
    "simple_sequential_chain",
    "stuff_documents_chain",
    "map_reduce_documents_chain",
    "reduce_documents_chain",
    "refine_documents_chain",
    "map_rerank_documents_chain",
    "llm_math_chain",
    "llm_bash_chain",
    "llm_checker_chain",
    "llm_requests_chain",
    "api_chain",
    "pal_chain",
    "sql_database_chain",
    "hyde_chain",
    "retrieval_qa",
    "vector_db_qa",
    "qa_with_sources_chain",
    "vector_db_qa_with_sources_chain",
    "retrieval_qa_with_sources_chain",
    "conversational_retrieval",
    "graph_cypher_chain",
];

/// Kinds of agents.
pub(super) const AGENTS: &[&str] = &[
    "zero-shot-react-description",
    "react-docstore",
    "self-ask-with-search",
    "conversational-react-description",
    "chat-zero-shot-react-description",
    "chat-conversational-react-description",
    "structured-chat-zero-shot-react-description",
    "openai-functions",
    "openai-multi-functions",
];

const CHAIN_KEYS: &[&str] = &[
    "_type",
    "name",
    "llm",
    "llm_path",
    "prompt",
    "prompt_path",
    "output_key",
    "input_key",
    "chains",
    "input_variables",
    "output_variables",
    "input_keys",
    "llm_chain",
    "llm_chain_path",
    "document_prompt",
    "document_prompt_path",
    "document_variable_name",
    "document_separator",
    "reduce_documents_chain",
    "reduce_documents_chain_path",
    "combine_documents_chain",
    "combine_documents_chain_path",
    "combine_document_chain",
    "combine_document_chain_path",
    "initial_llm_chain",
    "initial_llm_chain_path",
    "refine_llm_chain",
    "refine_llm_chain_path",
    "initial_response_name",
    "api_request_chain",
    "api_request_chain_path",
    "api_answer_chain",
    "api_answer_chain_path",
    "api_docs",
    "create_draft_answer_prompt",
    "create_draft_answer_prompt_path",
    "list_assertions_prompt",
    "list_assertions_prompt_path",
    "check_assertions_prompt",
    "check_assertions_prompt_path",
    "revised_answer_prompt",
    "revised_answer_prompt_path",
    "question_key",
    "input_docs_key",
    "answer_key",
    "sources_answer_key",
    "requests_key",
    "return_direct",
    "top_k",
    "k",
];
const CHAIN_UNUSED: &[Unused] = &[
    ("memory", why::NOT_YET),
    ("callbacks", why::CODE),
    ("callback_manager", why::CODE),
    ("verbose", why::RUNTIME),
    ("tags", why::RUNTIME),
    ("metadata", why::RUNTIME),
    ("llm_kwargs", why::RUNTIME),
    ("return_final_only", why::RUNTIME),
    ("output_parser", "the reply is the result as it is"),
    ("strip_outputs", "what a chain gives is handed on as it is"),
    ("return_all", why::RUNTIME),
    ("return_source_documents", why::RUNTIME),
    ("return_intermediate_steps", why::RUNTIME),
    ("return_map_steps", why::RUNTIME),
    ("collapse_documents_chain", "it is asked only if the documents are too long together"),
    ("collapse_document_chain", "it is asked only if the documents are too long together"),
    ("collapse_max_retries", why::RUNTIME),
    ("token_max", "it is looked at only if the documents are too long together"),
    ("max_tokens_limit", why::RUNTIME),
    ("reduce_k_below_max_tokens", why::RUNTIME),
    ("search_type", "how the store is searched is decided by the tool"),
    ("search_kwargs", "how the store is searched is decided by the tool"),
    ("limit_to_domains", why::NOT_YET),
    ("requests_wrapper", why::RUNTIME),
    ("text_length", why::RUNTIME),
    ("use_query_checker", why::NOT_YET),
    ("rank_key", why::NOT_YET),
    ("metadata_keys", why::NOT_YET),
    ("sources_answer_key", why::RUNTIME),
    ("get_answer_expr", why::CODE),
    ("python_globals", why::CODE),
    ("python_locals", why::CODE),
    ("stop", why::NOT_YET),
    ("base_embeddings", why::NOT_YET),
    ("graph", why::CODE),
];

const AGENT_KEYS: &[&str] = &[
    "_type",
    "name",
    "llm_chain",
    "llm_chain_path",
    "allowed_tools",
    "max_iterations",
    "prompt",
    "llm",
    "llm_path",
];
const AGENT_UNUSED: &[Unused] = &[
    ("output_parser", "the loader has one of its own for each kind of agent"),
    ("return_values", why::RUNTIME),
    ("load_from_llm_and_tools", "its model and tools are given in code"),
    ("ai_prefix", why::NOT_YET),
    ("stop", why::NOT_YET),
    ("verbose", why::RUNTIME),
    ("tags", why::RUNTIME),
    ("metadata", why::RUNTIME),
];

impl<'d> Reader<'d> {
    /// What a chain makes of what it is given: its outputs under their names.
    pub fn saved(self, flow: &mut Flow<'_, '_>, node: Node<'d>, given: Given<'d>, depth: usize) -> Given<'d> {
        let head = node.head();
        let kind = node.get("_type").and_then(|t| t.as_str()).unwrap_or("");
        if depth > DEEPEST || !flow.kit.budget.take(size(node.span()), head, flow.kit.out) {
            return left_out(flow, "a chain beyond the limit", head);
        }
        if AGENTS.contains(&kind) {
            return self.agent(flow, node, kind, given);
        }
        if !CHAINS.contains(&kind) {
            return left_out(flow, &format!("a chain of the type `{}`", clip(kind)), head);
        }
        emit::report_keys(node, CHAIN_KEYS, CHAIN_UNUSED, "a chain", flow.kit.out);
        let key = |name: &str, default: &str| {
            node.get(name).and_then(|k| k.as_str()).unwrap_or(default).to_string()
        };
        let output =
            |default: &str, value: Given<'d>| Given::Named(vec![(key("output_key", default), value)], false);
        match kind {
            "llm_chain" => {
                let reply = self.asked(flow, node, given);
                output("text", reply)
            }
            "simple_sequential_chain" => {
                let mut given = given;
                for chain in node.get("chains").into_iter().flat_map(|c| c.items()) {
                    let value = self.saved(flow, chain, given, depth + 1);
                    let text = flow.text(&value, chain.head());
                    given = Given::Text(flow.bind("step", text));
                }
                output("output", given)
            }
            "sequential_chain" => {
                let (mut fields, inputs) = given.named();
                let mut last = Vec::new();
                for chain in node.get("chains").into_iter().flat_map(|c| c.items()) {
                    (last, _) =
                        self.saved(flow, chain, Given::Named(fields.clone(), inputs), depth + 1).named();
                    fields.extend(last.iter().cloned());
                }
                let wanted: Vec<&str> = node
                    .get("output_variables")
                    .into_iter()
                    .flat_map(|o| o.items())
                    .filter_map(|o| o.as_str())
                    .collect();
                match wanted.is_empty() {
                    true => Given::Named(last, false),
                    false => {
                        fields.retain(|(n, _)| wanted.contains(&n.as_str()));
                        Given::Named(fields, false)
                    }
                }
            }
            "stuff_documents_chain"
            | "map_reduce_documents_chain"
            | "reduce_documents_chain"
            | "refine_documents_chain"
            | "map_rerank_documents_chain" => {
                let documents = self.documents(flow, &given, &key("input_key", "input_documents"), head);
                let reply = self.combined(flow, node, documents, given, depth);
                output("output_text", reply)
            }
            "retrieval_qa"
            | "vector_db_qa"
            | "retrieval_qa_with_sources_chain"
            | "vector_db_qa_with_sources_chain"
            | "qa_with_sources_chain"
            | "conversational_retrieval" => {
                let asked = match kind {
                    "retrieval_qa" | "vector_db_qa" => key("input_key", "query"),
                    _ => key("question_key", "question"),
                };
                let question = flow.variable(&given, &asked, true, head);
                let question = flow.bind("question", question);
                let documents = match kind {
                    "qa_with_sources_chain" => {
                        self.documents(flow, &given, &key("input_docs_key", "docs"), head)
                    }
                    _ => self.retrieved(flow, &question, head),
                };
                let given = Given::Named(vec![("question".into(), Given::Text(question))], true);
                let inner = ["combine_documents_chain", "combine_document_chain"]
                    .iter()
                    .find_map(|k| self.part(flow.kit, node, k));
                let reply = match inner {
                    Some(chain) => self.combined(flow, chain, documents, given, depth + 1),
                    None => left_out(flow, "the chain for documents", head),
                };
                if kind.contains("sources") {
                    let names = [key("answer_key", "answer"), key("sources_answer_key", "sources")];
                    return self.sourced(flow, &reply, names, head);
                }
                Given::Named(vec![(key("output_key", "result"), reply)], false)
            }
            "llm_math_chain" => self.run(
                flow,
                node,
                given,
                Run { input: "question", tool: "evaluate", argument: "expression" },
                output,
            ),
            "llm_bash_chain" => self.run(
                flow,
                node,
                given,
                Run { input: "question", tool: "bash", argument: "command" },
                output,
            ),
            "pal_chain" => self.run(
                flow,
                node,
                given,
                Run { input: "question", tool: "python", argument: "code" },
                output,
            ),
            "graph_cypher_chain" => self.run(
                flow,
                node,
                given,
                Run { input: "query", tool: "graph_query", argument: "query" },
                output,
            ),
            "sql_database_chain" => self.sql(flow, node, given, output),
            "hyde_chain" => {
                self.run(flow, node, given, Run { input: "query", tool: "embed", argument: "text" }, output)
            }
            "llm_requests_chain" => {
                let url = flow.variable(&given, &key("input_key", "url"), true, head);
                let page = called(flow, "requests_get", "url", url, head);
                let (mut fields, inputs) = given.named();
                fields.push((key("requests_key", "requests_result"), page));
                let reply = self.within(flow, node, "llm_chain", Given::Named(fields, inputs), depth);
                output("output", reply)
            }
            "api_chain" => self.api(flow, node, given, depth, output),
            // What is left is `llm_checker_chain`.
            _ => self.checked(flow, node, given, output),
        }
    }

    /// The reply to `prompt` of `llm`.
    fn asked(self, flow: &mut Flow<'_, '_>, node: Node<'d>, given: Given<'d>) -> Given<'d> {
        let Some(prompt) = self.part(flow.kit, node, "prompt") else {
            return left_out(flow, "a chain without a prompt", node.head());
        };
        self.question(flow, node, prompt, given)
    }

    /// An answer, and the line of its sources that stands behind the word for them.
    fn sourced(self, flow: &mut Flow<'_, '_>, reply: &Given<'d>, names: [String; 2], at: Span) -> Given<'d> {
        /// How the word is found, beside its usual form.
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
        // A question that the model goes on with ends the sources, too.
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
        Given::Named(vec![(first, Given::Text(answer)), (second, Given::Text(sources))], false)
    }

    /// The reply of `llm` to a prompt.
    fn question(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        prompt: Node<'d>,
        given: Given<'d>,
    ) -> Given<'d> {
        let head = node.head();
        let Some(prompt) = self.prompt(flow, prompt, "prompt") else {
            return left_out(flow, "a prompt", head);
        };
        let asked = Given::asked(prompt, given);
        match self.part(flow.kit, node, "llm") {
            Some(llm) => {
                let model = model(flow.kit, llm, "chain");
                flow.ask(asked, model, head)
            }
            // The model is given in code.
            None => flow.answered(asked, head),
        }
    }

    /// The text that the chain under a key gives.
    fn within(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        key: &str,
        given: Given<'d>,
        depth: usize,
    ) -> Given<'d> {
        match self.part(flow.kit, node, key) {
            Some(chain) => {
                let value = self.saved(flow, chain, given, depth + 1);
                match value {
                    Given::Named(fields, _) if fields.len() == 1 => {
                        fields.into_iter().next().map_or(Given::Inputs, |(_, v)| v)
                    }
                    other => other,
                }
            }
            None => left_out(flow, &format!("a chain without `{key}`"), node.head()),
        }
    }

    /// The documents that are given under a name: a list, in a variable.
    fn documents(self, flow: &mut Flow<'_, '_>, given: &Given<'d>, key: &str, at: Span) -> Name {
        if let Given::Named(fields, _) = given
            && let Some((_, Given::Data(list))) = fields.iter().rev().find(|(n, _)| n == key)
        {
            return list.clone();
        }
        flow.kit.typed_input(key, Type::list(document()));
        let list = flow.kit.input(key, at);
        flow.bind("documents", list)
    }

    /// The documents that are found for a question.
    fn retrieved(self, flow: &mut Flow<'_, '_>, question: &Name, at: Span) -> Name {
        let query = flow.kit.b.var(question.clone(), at);
        let mut decl = ToolDecl::unknown("retriever".into(), at);
        decl.params = vec![ToolParam { name: "query".into(), ty: Type::Str, bound: LabelSpec::BOTTOM }];
        decl.result = Type::list(document());
        let id = flow.kit.declared(decl);
        let tool = flow.kit.b.add(Term::Tool(id), at);
        let args = flow.kit.b.add(Term::Record(vec![("query".into(), query)]), at);
        let found = flow.kit.b.app(tool, args, at);
        flow.bind("documents", found)
    }

    /// The answer of a chain for documents.
    fn combined(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        documents: Name,
        given: Given<'d>,
        depth: usize,
    ) -> Given<'d> {
        let head = node.head();
        if depth > DEEPEST {
            return left_out(flow, "a chain beyond the limit", head);
        }
        let variable =
            node.get("document_variable_name").and_then(|v| v.as_str()).unwrap_or("text").to_string();
        let with = |given: &Given<'d>, more: Vec<(String, Given<'d>)>| {
            let (mut fields, inputs) = given.clone().named();
            fields.extend(more);
            Given::Named(fields, inputs)
        };
        match node.get("_type").and_then(|t| t.as_str()).unwrap_or("") {
            "stuff_documents_chain" => {
                let list = self.formatted(flow, node, &documents);
                let separator = node.get("document_separator").and_then(|s| s.as_str()).unwrap_or("\n\n");
                let separator = flow.kit.text(separator, head);
                let text = flow.kit.b.add(Term::Prim(Prim::Join, vec![list, separator]), head);
                let text = Given::Text(flow.bind("context", text));
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
                    let page = Given::Text(flow.bind("page", page));
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
                        None => left_out(flow, "what is done with the results for the documents", head),
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
            let Said::Template(text, format) = &message.said else { continue };
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
        given: &Given<'d>,
        depth: usize,
    ) -> Given<'d> {
        let at = node.head();
        let answer = node
            .get("initial_response_name")
            .and_then(|n| n.as_str())
            .unwrap_or("existing_answer")
            .to_string();
        let with = |more: Vec<(String, Given<'d>)>| {
            let (mut fields, inputs) = given.clone().named();
            fields.extend(more);
            Given::Named(fields, inputs)
        };
        let list = flow.kit.b.var(documents.clone(), at);
        let zero = flow.kit.b.lit(Num::from(0), at);
        let first = flow.kit.b.add(Term::Index(list, zero), at);
        let first = flow.bind("document", first);
        let text = self.shown(flow, node, &first);
        let page = Given::Text(flow.bind("page", text));
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
            let page = Given::Text(flow.bind("page", text));
            let so_far = field(flow, "text");
            let so_far = Given::Text(flow.bind("answer", so_far));
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
        let LoopBound { bound, origin, .. } = LoopBound::unknown("a turn for each further document");
        let fix = b.add(Term::Fix { bound, origin, body }, at);
        let one = b.lit(Num::from(1), at);
        let begin = b.add(Term::Record(vec![("at".into(), one), ("text".into(), initial)]), at);
        let all = b.app(fix, begin, at);
        Given::Text(flow.bind("refined", all))
    }

    /// A question whose reply is run.
    fn run(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: Given<'d>,
        run: Run,
        output: impl Fn(&str, Given<'d>) -> Given<'d>,
    ) -> Given<'d> {
        let head = node.head();
        let key = node.get("input_key").and_then(|k| k.as_str()).unwrap_or(run.input);
        let question = flow.variable(&given, key, true, head);
        let question = Given::Text(flow.bind("question", question));
        let (mut fields, inputs) = given.named();
        fields.extend([(run.input.to_string(), question.clone()), (key.to_string(), question)]);
        let reply = self.chain_or_prompt(flow, node, Given::Named(fields, inputs));
        let text = flow.text(&reply, head);
        let value = called(flow, run.tool, run.argument, text, head);
        output("answer", value)
    }

    /// The reply of `llm_chain`, or to `prompt` of `llm`, as it was written before.
    fn chain_or_prompt(self, flow: &mut Flow<'_, '_>, node: Node<'d>, given: Given<'d>) -> Given<'d> {
        match self.part(flow.kit, node, "llm_chain") {
            Some(chain) => self.asked(flow, chain, given),
            None => self.asked(flow, node, given),
        }
    }

    /// A question, the query that the reply is, and a question about what it found.
    fn sql(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: Given<'d>,
        output: impl Fn(&str, Given<'d>) -> Given<'d>,
    ) -> Given<'d> {
        let head = node.head();
        let key = node.get("input_key").and_then(|k| k.as_str()).unwrap_or("query");
        let question = flow.variable(&given, key, true, head);
        let question = flow.bind("question", question);
        let mut asked = Template::new(head);
        asked.term(flow.kit.b.var(question.clone(), head)).text("\nSQLQuery:");
        let asked = asked.build(&mut flow.kit.b);
        let (mut fields, inputs) = given.named();
        fields.push(("input".into(), Given::Text(flow.bind("input", asked))));
        if let Some(k) = node.get("top_k") {
            let value = constant(flow.kit, k);
            fields.push(("top_k".into(), Given::Text(flow.bind("top_k", value))));
        }
        let reply = self.chain_or_prompt(flow, node, Given::Named(fields.clone(), inputs));
        let query = flow.text(&reply, head);
        let query = flow.bind("sql", query);
        let text = flow.kit.b.var(query.clone(), head);
        let found = called(flow, "sql_db_query", "query", text, head);
        if node.get("return_direct").and_then(|r| r.as_bool()) == Some(true) {
            return output("result", found);
        }
        let mut asked = Template::new(head);
        asked.term(flow.kit.b.var(question, head)).text("\nSQLQuery:").term(flow.kit.b.var(query, head));
        let shown = flow.text(&found, head);
        asked.text("\nSQLResult: ").term(shown).text("\nAnswer:");
        let asked = asked.build(&mut flow.kit.b);
        fields.retain(|(n, _)| n != "input");
        fields.push(("input".into(), Given::Text(flow.bind("input", asked))));
        let reply = self.chain_or_prompt(flow, node, Given::Named(fields, inputs));
        output("result", reply)
    }

    /// The address that answers a question, what is there, and the answer.
    fn api(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: Given<'d>,
        depth: usize,
        output: impl Fn(&str, Given<'d>) -> Given<'d>,
    ) -> Given<'d> {
        let head = node.head();
        let question = flow.variable(
            &given,
            node.get("question_key").and_then(|k| k.as_str()).unwrap_or("question"),
            true,
            head,
        );
        let question = flow.bind("question", question);
        let (mut fields, inputs) = given.named();
        fields.push(("question".into(), Given::Text(question)));
        if let Some(docs) = node.get("api_docs") {
            let docs = constant(flow.kit, docs);
            fields.push(("api_docs".into(), Given::Text(flow.bind("api_docs", docs))));
        }
        let url = self.within(flow, node, "api_request_chain", Given::Named(fields.clone(), inputs), depth);
        let address = flow.text(&url, head);
        let page = called(flow, "requests_get", "url", address, head);
        fields.extend([("api_url".into(), url), ("api_response".into(), page)]);
        let reply = self.within(flow, node, "api_answer_chain", Given::Named(fields, inputs), depth);
        output("output", reply)
    }

    /// A draft, what it claims, whether that holds, and a revision.
    fn checked(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: Given<'d>,
        output: impl Fn(&str, Given<'d>) -> Given<'d>,
    ) -> Given<'d> {
        let head = node.head();
        let question = flow.variable(
            &given,
            node.get("input_key").and_then(|k| k.as_str()).unwrap_or("query"),
            true,
            head,
        );
        let question = Given::Text(flow.bind("question", question));
        let mut fields = vec![("question".to_string(), question)];
        let mut last = Given::Inputs;
        for (key, gives) in [
            ("create_draft_answer_prompt", "statement"),
            ("list_assertions_prompt", "assertions"),
            ("check_assertions_prompt", "checked_assertions"),
            ("revised_answer_prompt", "revised_statement"),
        ] {
            let Some(prompt) = self.part(flow.kit, node, key) else {
                return left_out(flow, &format!("a chain without `{key}`"), head);
            };
            last = self.question(flow, node, prompt, Given::Named(fields.clone(), false));
            fields.push((gives.to_string(), last.clone()));
        }
        output("result", last)
    }

    /// An agent with its tools: what they returned joins the scratchpad.
    fn agent(self, flow: &mut Flow<'_, '_>, node: Node<'d>, kind: &str, given: Given<'d>) -> Given<'d> {
        let head = node.head();
        emit::report_keys(node, AGENT_KEYS, AGENT_UNUSED, "an agent", flow.kit.out);
        let chain = self.part(flow.kit, node, "llm_chain").unwrap_or(node);
        let prompt = match self.part(flow.kit, chain, "prompt") {
            Some(found) => self.prompt(flow, found, "prompt of an agent"),
            None => {
                let message = format!("the prompt of `{kind}` is the framework's, which is not compiled");
                flow.kit.out.push(undecided(codes::NOT_COMPILED, message, head));
                None
            }
        };
        let prompt = prompt.unwrap_or_else(|| Prompt {
            messages: vec![prompt::Message {
                role: Role::User,
                said: Said::Template("{input}\n{agent_scratchpad}".into(), prompt::Format::Braces),
                at: head,
            }],
            partial: Vec::new(),
        });
        let model = match self.part(flow.kit, chain, "llm") {
            Some(llm) => model(flow.kit, llm, kind),
            None => prompt::Model { params: core_ir::ModelParams::default(), tools: Vec::new(), at: head },
        };
        let allowed = node.entry("allowed_tools").filter(|e| e.value.is_sequence());
        let hands: Vec<Hand> = match &allowed {
            Some(entry) => emit::names(entry, flow.kit.out)
                .into_iter()
                .map(|(n, item)| Hand::tool(n, item.span()))
                .collect(),
            None => {
                let message = "the tools of the agent are given in code: none are compiled";
                flow.kit.out.push(undecided(codes::NOT_COMPILED, message, head));
                Vec::new()
            }
        };
        if kind.contains("react") || kind.starts_with("self-ask") {
            let message = "the agent asks for its tools in plain text; here it calls them";
            flow.kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, head));
        }
        let input = match &given {
            Given::Inputs => Given::Inputs,
            other => {
                let text = flow.text(other, head);
                Given::Text(flow.bind("input", text))
            }
        };
        let (mut fields, inputs) = given.named();
        if !matches!(input, Given::Inputs) {
            fields.push(("input".into(), input));
        }
        fields.push(("agent_scratchpad".into(), Given::Text("x".into())));
        let asked = prompt.variables();
        for name in ["chat_history", "history"].into_iter().filter(|n| asked.iter().any(|a| a == n)) {
            // What was said before is empty at the beginning.
            let nothing = flow.kit.text("", head);
            fields.push((name.into(), Given::Text(flow.bind("history", nothing))));
        }
        let mut said = flow.messages(&prompt, &Given::Named(fields, inputs));
        let system = match said.first() {
            Some((Role::System, term, _)) if said.len() > 1 => {
                let term = *term;
                said.remove(0);
                term
            }
            _ => flow.kit.text("", head),
        };
        let mut request = Template::new(head);
        for (i, (_, term, _)) in said.into_iter().enumerate() {
            if i > 0 {
                request.text("\n\n");
            }
            request.term(term);
        }
        let request = request.build(&mut flow.kit.b);
        let bound = defaults::bound(&defaults::LANGCHAIN_ITERATIONS, flow.kit.versions)
            .or_written(node.entry("max_iterations"), flow.kit.out);
        let agent = Agent {
            name: kind,
            head,
            prompt: system,
            params: model.params,
            model_at: Some(model.at),
            hands,
            hands_at: allowed.map(|e| value_span(&e)),
            bound,
        };
        let term = flow.kit.agent_asked(agent, Some(request));
        let nothing = flow.kit.text("", head);
        let run = flow.kit.b.app(term, nothing, head);
        Given::Named(vec![("output".into(), Given::Text(flow.bind("output", run)))], false)
    }
}

/// What is done with a reply.
struct Run {
    /// The name of what is asked.
    input: &'static str,
    tool: &'static str,
    argument: &'static str,
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

/// What a tool outside the file gives for a text.
fn called<'d>(flow: &mut Flow<'_, '_>, tool: &str, argument: &str, text: TermId, at: Span) -> Given<'d> {
    let mut decl = ToolDecl::unknown(tool.into(), at);
    decl.params = vec![ToolParam { name: argument.into(), ty: Type::Str, bound: LabelSpec::BOTTOM }];
    let id = flow.kit.declared(decl);
    let tool = flow.kit.b.add(Term::Tool(id), at);
    let args = flow.kit.b.add(Term::Record(vec![(argument.into(), text)]), at);
    let result = flow.kit.b.app(tool, args, at);
    Given::Data(flow.bind("found", result))
}
