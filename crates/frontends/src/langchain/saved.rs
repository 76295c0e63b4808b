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
use super::prompt::{MessageContent, Prompt, model};
use super::value::{Flow, StageInput};
use super::{LangChainReader, MAX_DEPTH, prompt};
use crate::defaults;
use core_ir::{LabelSpec, Role, Term, TermId, ToolDecl, ToolParam, Type};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::Node;
use frontend_kit::emit::{self, Template, Unused, clip, codes, undecided, value_span};
use frontend_kit::kit::{Action, Agent, size};
use frontend_kit::shape::why;
use frontend_kit::turn::Carried;

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
    ("strip_outputs", "the output of a chain is passed on unchanged"),
    ("return_all", why::RUNTIME),
    ("return_source_documents", why::RUNTIME),
    ("return_intermediate_steps", why::RUNTIME),
    ("return_map_steps", why::RUNTIME),
    ("collapse_documents_chain", "it is used only if the documents together are too long"),
    ("collapse_document_chain", "it is used only if the documents together are too long"),
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
    ("load_from_llm_and_tools", "its model and tools are set in code"),
    ("ai_prefix", why::NOT_YET),
    ("stop", why::NOT_YET),
    ("verbose", why::RUNTIME),
    ("tags", why::RUNTIME),
    ("metadata", why::RUNTIME),
];

impl<'d> LangChainReader<'d> {
    /// Lowers a chain applied to its input. Returns its outputs by name.
    pub fn saved(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: StageInput<'d>,
        depth: usize,
    ) -> StageInput<'d> {
        let head = node.head();
        let kind = node.get("_type").and_then(|t| t.as_str()).unwrap_or("");
        if depth > MAX_DEPTH || !flow.kit.budget.take(size(node.span()), head, flow.kit.out) {
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
        let output = |default: &str, value: StageInput<'d>| {
            StageInput::Named(vec![(key("output_key", default), value)], false)
        };
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
                    given = StageInput::Text(flow.bind("step", text));
                }
                output("output", given)
            }
            "sequential_chain" => {
                let (mut fields, inputs) = given.named();
                let mut last = Vec::new();
                for chain in node.get("chains").into_iter().flat_map(|c| c.items()) {
                    (last, _) =
                        self.saved(flow, chain, StageInput::Named(fields.clone(), inputs), depth + 1).named();
                    fields.extend(last.iter().cloned());
                }
                let wanted: Vec<&str> = node
                    .get("output_variables")
                    .into_iter()
                    .flat_map(|o| o.items())
                    .filter_map(|o| o.as_str())
                    .collect();
                match wanted.is_empty() {
                    true => StageInput::Named(last, false),
                    false => {
                        fields.retain(|(n, _)| wanted.contains(&n.as_str()));
                        StageInput::Named(fields, false)
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
                let given = StageInput::Named(vec![("question".into(), StageInput::Text(question))], true);
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
                StageInput::Named(vec![(key("output_key", "result"), reply)], false)
            }
            "llm_math_chain" => self.run(
                flow,
                node,
                given,
                ReplyHandling { input: "question", tool: "evaluate", argument: "expression" },
                output,
            ),
            "llm_bash_chain" => self.run(
                flow,
                node,
                given,
                ReplyHandling { input: "question", tool: "bash", argument: "command" },
                output,
            ),
            "pal_chain" => self.run(
                flow,
                node,
                given,
                ReplyHandling { input: "question", tool: "python", argument: "code" },
                output,
            ),
            "graph_cypher_chain" => self.run(
                flow,
                node,
                given,
                ReplyHandling { input: "query", tool: "graph_query", argument: "query" },
                output,
            ),
            "sql_database_chain" => self.sql(flow, node, given, output),
            "hyde_chain" => self.run(
                flow,
                node,
                given,
                ReplyHandling { input: "query", tool: "embed", argument: "text" },
                output,
            ),
            "llm_requests_chain" => {
                let url = flow.variable(&given, &key("input_key", "url"), true, head);
                let page = called(flow, "requests_get", "url", url, head);
                let (mut fields, inputs) = given.named();
                fields.push((key("requests_key", "requests_result"), page));
                let reply = self.within(flow, node, "llm_chain", StageInput::Named(fields, inputs), depth);
                output("output", reply)
            }
            "api_chain" => self.api(flow, node, given, depth, output),
            // What is left is `llm_checker_chain`.
            _ => self.checked(flow, node, given, output),
        }
    }

    /// The reply to `prompt` of `llm`.
    fn asked(self, flow: &mut Flow<'_, '_>, node: Node<'d>, given: StageInput<'d>) -> StageInput<'d> {
        let Some(prompt) = self.part(flow.kit, node, "prompt") else {
            return left_out(flow, "a chain without a prompt", node.head());
        };
        self.question(flow, node, prompt, given)
    }

    /// The reply of `llm` to a prompt.
    fn question(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        prompt: Node<'d>,
        given: StageInput<'d>,
    ) -> StageInput<'d> {
        let head = node.head();
        let Some(prompt) = self.prompt(flow, prompt, "prompt") else {
            return left_out(flow, "a prompt", head);
        };
        let asked = StageInput::asked(prompt, given);
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
    pub(super) fn within(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        key: &str,
        given: StageInput<'d>,
        depth: usize,
    ) -> StageInput<'d> {
        match self.part(flow.kit, node, key) {
            Some(chain) => {
                let value = self.saved(flow, chain, given, depth + 1);
                match value {
                    StageInput::Named(fields, _) if fields.len() == 1 => {
                        fields.into_iter().next().map_or(StageInput::Inputs, |(_, v)| v)
                    }
                    other => other,
                }
            }
            None => left_out(flow, &format!("a chain without `{key}`"), node.head()),
        }
    }

    /// A question whose reply is run.
    fn run(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: StageInput<'d>,
        run: ReplyHandling,
        output: impl Fn(&str, StageInput<'d>) -> StageInput<'d>,
    ) -> StageInput<'d> {
        let head = node.head();
        let key = node.get("input_key").and_then(|k| k.as_str()).unwrap_or(run.input);
        let question = flow.variable(&given, key, true, head);
        let question = StageInput::Text(flow.bind("question", question));
        let (mut fields, inputs) = given.named();
        fields.extend([(run.input.to_string(), question.clone()), (key.to_string(), question)]);
        let reply = self.chain_or_prompt(flow, node, StageInput::Named(fields, inputs));
        let text = flow.text(&reply, head);
        let value = called(flow, run.tool, run.argument, text, head);
        output("answer", value)
    }

    /// The reply of `llm_chain`, or to `prompt` of `llm`, as it was written before.
    fn chain_or_prompt(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: StageInput<'d>,
    ) -> StageInput<'d> {
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
        given: StageInput<'d>,
        output: impl Fn(&str, StageInput<'d>) -> StageInput<'d>,
    ) -> StageInput<'d> {
        let head = node.head();
        let key = node.get("input_key").and_then(|k| k.as_str()).unwrap_or("query");
        let question = flow.variable(&given, key, true, head);
        let question = flow.bind("question", question);
        let mut asked = Template::new(head);
        asked.term(flow.kit.b.var(question.clone(), head)).text("\nSQLQuery:");
        let asked = asked.build(&mut flow.kit.b);
        let (mut fields, inputs) = given.named();
        fields.push(("input".into(), StageInput::Text(flow.bind("input", asked))));
        if let Some(k) = node.get("top_k") {
            let value = constant(flow.kit, k);
            fields.push(("top_k".into(), StageInput::Text(flow.bind("top_k", value))));
        }
        let reply = self.chain_or_prompt(flow, node, StageInput::Named(fields.clone(), inputs));
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
        fields.push(("input".into(), StageInput::Text(flow.bind("input", asked))));
        let reply = self.chain_or_prompt(flow, node, StageInput::Named(fields, inputs));
        output("result", reply)
    }

    /// The address that answers a question, what is there, and the answer.
    fn api(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: StageInput<'d>,
        depth: usize,
        output: impl Fn(&str, StageInput<'d>) -> StageInput<'d>,
    ) -> StageInput<'d> {
        let head = node.head();
        let question = flow.variable(
            &given,
            node.get("question_key").and_then(|k| k.as_str()).unwrap_or("question"),
            true,
            head,
        );
        let question = flow.bind("question", question);
        let (mut fields, inputs) = given.named();
        fields.push(("question".into(), StageInput::Text(question)));
        if let Some(docs) = node.get("api_docs") {
            let docs = constant(flow.kit, docs);
            fields.push(("api_docs".into(), StageInput::Text(flow.bind("api_docs", docs))));
        }
        let url =
            self.within(flow, node, "api_request_chain", StageInput::Named(fields.clone(), inputs), depth);
        let address = flow.text(&url, head);
        let page = called(flow, "requests_get", "url", address, head);
        fields.extend([("api_url".into(), url), ("api_response".into(), page)]);
        let reply = self.within(flow, node, "api_answer_chain", StageInput::Named(fields, inputs), depth);
        output("output", reply)
    }

    /// A draft, what it claims, whether that holds, and a revision.
    fn checked(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        given: StageInput<'d>,
        output: impl Fn(&str, StageInput<'d>) -> StageInput<'d>,
    ) -> StageInput<'d> {
        let head = node.head();
        let question = flow.variable(
            &given,
            node.get("input_key").and_then(|k| k.as_str()).unwrap_or("query"),
            true,
            head,
        );
        let question = StageInput::Text(flow.bind("question", question));
        let mut fields = vec![("question".to_string(), question)];
        let mut last = StageInput::Inputs;
        for (key, gives) in [
            ("create_draft_answer_prompt", "statement"),
            ("list_assertions_prompt", "assertions"),
            ("check_assertions_prompt", "checked_assertions"),
            ("revised_answer_prompt", "revised_statement"),
        ] {
            let Some(prompt) = self.part(flow.kit, node, key) else {
                return left_out(flow, &format!("a chain without `{key}`"), head);
            };
            last = self.question(flow, node, prompt, StageInput::Named(fields.clone(), false));
            fields.push((gives.to_string(), last.clone()));
        }
        output("result", last)
    }

    /// An agent with its tools: what they returned joins the scratchpad.
    fn agent(
        self,
        flow: &mut Flow<'_, '_>,
        node: Node<'d>,
        kind: &str,
        given: StageInput<'d>,
    ) -> StageInput<'d> {
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
                said: MessageContent::Template("{input}\n{agent_scratchpad}".into(), prompt::Format::Braces),
                at: head,
            }],
            partial: Vec::new(),
        });
        let model = match self.part(flow.kit, chain, "llm") {
            Some(llm) => model(flow.kit, llm, kind),
            None => prompt::Model { params: core_ir::ModelParams::default(), tools: Vec::new(), at: head },
        };
        let allowed = node.entry("allowed_tools").filter(|e| e.value.is_sequence());
        let actions: Vec<Action> = match &allowed {
            Some(entry) => emit::names(entry, flow.kit.out)
                .into_iter()
                .map(|(n, item)| Action::tool(n, item.span()))
                .collect(),
            None => {
                let message = "the tools of the agent are set in code and are not compiled";
                flow.kit.out.push(undecided(codes::NOT_COMPILED, message, head));
                Vec::new()
            }
        };
        if kind.contains("react") || kind.starts_with("self-ask") {
            let message = "the agent asks for its tools in plain text; here it calls them";
            flow.kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, head));
        }
        let input = match &given {
            StageInput::Inputs => StageInput::Inputs,
            other => {
                let text = flow.text(other, head);
                StageInput::Text(flow.bind("input", text))
            }
        };
        let (mut fields, inputs) = given.named();
        if !matches!(input, StageInput::Inputs) {
            fields.push(("input".into(), input));
        }
        fields.push(("agent_scratchpad".into(), StageInput::Text("x".into())));
        let asked = prompt.variables();
        for name in ["chat_history", "history"].into_iter().filter(|n| asked.iter().any(|a| a == n)) {
            // What was said before is empty at the beginning.
            let nothing = flow.kit.text("", head);
            fields.push((name.into(), StageInput::Text(flow.bind("history", nothing))));
        }
        let mut said = flow.messages(&prompt, &StageInput::Named(fields, inputs));
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
        let carried = if kind == "openai-multi-functions" { Carried::All } else { Carried::First };
        let agent = Agent {
            name: kind,
            head,
            prompt: system,
            params: model.params,
            model_at: Some(model.at),
            actions,
            actions_at: allowed.map(|e| value_span(&e)),
            bound,
        };
        let term = flow.kit.agent_with_request(agent, carried, Some(request));
        let nothing = flow.kit.text("", head);
        let run = flow.kit.b.app(term, nothing, head);
        StageInput::Named(vec![("output".into(), StageInput::Text(flow.bind("output", run)))], false)
    }
}

/// Handling of a reply.
struct ReplyHandling {
    /// The name of the input.
    input: &'static str,
    tool: &'static str,
    argument: &'static str,
}

/// Lowers a call of a tool outside the file with a text.
fn called<'d>(flow: &mut Flow<'_, '_>, tool: &str, argument: &str, text: TermId, at: Span) -> StageInput<'d> {
    let mut decl = ToolDecl::unknown(tool.into(), at);
    decl.params =
        vec![ToolParam { name: argument.into(), ty: Type::Str, bound: LabelSpec::BOTTOM, default: None }];
    let id = flow.kit.declared(decl);
    let tool = flow.kit.b.add(Term::Tool(id), at);
    let args = flow.kit.b.add(Term::Record(vec![(argument.into(), text)]), at);
    let result = flow.kit.b.app(tool, args, at);
    StageInput::Data(flow.bind("found", result))
}
