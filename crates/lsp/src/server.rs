//! The answers to a client's messages.

use crate::disk::Disk;
use crate::text::{Lines, apply, path_of, uri_of};
use ide::{
    Completion, CompletionKind, FileEdits, Finding, FoldKind, HintKind, Host, LensAction, QueryError, Repair,
    SymbolKind, TokenKind, Workspace,
};
use lsp_server::{ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{self as note, Notification as _};
use lsp_types::request::{self as ask, Request as _};
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOptions, CodeActionOrCommand, CodeActionParams,
    CodeActionProviderCapability, CodeActionResponse, CodeLens, CodeLensOptions, CodeLensParams, Command,
    CompletionItem, CompletionItemKind, CompletionOptions, CompletionParams, CompletionResponse, Diagnostic,
    DiagnosticRelatedInformation, DiagnosticSeverity, DidChangeTextDocumentParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentFormattingParams, DocumentHighlight,
    DocumentHighlightParams, DocumentSymbol, DocumentSymbolParams, DocumentSymbolResponse, Documentation,
    FoldingRange, FoldingRangeKind, FoldingRangeParams, FoldingRangeProviderCapability, GotoDefinitionParams,
    GotoDefinitionResponse, Hover, HoverContents, HoverParams, HoverProviderCapability, InitializeResult,
    InlayHint, InlayHintKind, InlayHintLabel, InlayHintParams, Location, MarkupContent, MarkupKind,
    NumberOrString, OneOf, ParameterInformation, ParameterLabel, PositionEncodingKind, PrepareRenameResponse,
    PublishDiagnosticsParams, ReferenceParams, RenameOptions, RenameParams, SaveOptions, SemanticToken,
    SemanticTokenModifier, SemanticTokenType, SemanticTokens, SemanticTokensFullOptions,
    SemanticTokensLegend, SemanticTokensOptions, SemanticTokensParams, SemanticTokensResult,
    SemanticTokensServerCapabilities, ServerCapabilities, ServerInfo, SignatureHelp, SignatureHelpOptions,
    SignatureHelpParams, SignatureInformation, SymbolInformation, TextDocumentPositionParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
    TextEdit, Uri, WorkspaceEdit, WorkspaceSymbolParams, WorkspaceSymbolResponse,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Types of semantic tokens, in the order of their numbers.
const TOKEN_TYPES: [SemanticTokenType; 5] = [
    SemanticTokenType::TYPE,
    SemanticTokenType::CLASS,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::VARIABLE,
    SemanticTokenType::COMMENT,
];

/// Commands of lenses, which a client carries out: to run a pipeline (arguments: address of the file, name,
/// whether it takes an input), to run a test (address, name), to show the bounds of a file (address).
const COMMANDS: [&str; 3] = ["entail.runPipeline", "entail.runTest", "entail.showProgram"];

/// Reason why a request gets no result.
struct Failure {
    code: ErrorCode,
    message: String,
}

impl Failure {
    fn new(code: ErrorCode, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }
}

impl From<QueryError> for Failure {
    fn from(e: QueryError) -> Failure {
        match e {
            QueryError::Refused(why) => Failure::new(ErrorCode::RequestFailed, why),
            QueryError::InvalidName(why) => Failure::new(ErrorCode::InvalidParams, why),
        }
    }
}

/// An open document, as the client names it.
struct Open {
    path: String,
    version: i32,
}

/// A session with a client.
pub struct Server {
    workspace: Workspace,
    documents: BTreeMap<Uri, Open>,
    initialized: bool,
    shut_down: bool,
    exited: bool,
    /// True if the client has the commands of [`COMMANDS`], as `"commands": true` in its options says.
    runs_commands: bool,
}

impl Default for Server {
    fn default() -> Server {
        Server::new()
    }
}

impl Server {
    /// Before any message, without settings; files are read from the disk.
    pub fn new() -> Server {
        Server::within(Box::new(Disk))
    }

    /// A session about programs with settings, policies and configurations around them.
    pub fn within(around: Box<dyn Host>) -> Server {
        Server {
            workspace: Workspace::new(around),
            documents: BTreeMap::new(),
            initialized: false,
            shut_down: false,
            exited: false,
            runs_commands: false,
        }
    }

    /// Returns whether the client has said `exit`.
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// Returns whether the client has said `shutdown`.
    pub fn is_shut_down(&self) -> bool {
        self.shut_down
    }

    /// Returns the messages that are sent in return: the response to a request, findings after a change.
    ///
    /// # Examples
    /// ```
    /// use lsp_server::{Message, Notification};
    /// use lsp_types::notification::{DidOpenTextDocument, Notification as _};
    /// use serde_json::json;
    ///
    /// let mut server = lsp::Server::new();
    /// let text = "pipeline p() -> String { return 1; }";
    /// let document = json!({"uri": "file:///p.agent", "languageId": "agent", "version": 1, "text": text});
    /// let open = json!({"textDocument": document});
    /// let opened = Notification::new(DidOpenTextDocument::METHOD.into(), open);
    /// let Message::Notification(said) = &server.handle(opened.into())[0] else { panic!() };
    /// assert_eq!(said.params["diagnostics"][0]["code"], "A050");
    /// ```
    pub fn handle(&mut self, message: Message) -> Vec<Message> {
        match message {
            // The server asks nothing.
            Message::Response(_) => Vec::new(),
            // Parameters of another shape mean nothing.
            Message::Notification(told) => self.notified(told).unwrap_or_default(),
            Message::Request(Request { id, method, params }) => {
                let response = match self.asked(&method, params) {
                    Ok(result) => Response { id, response_result: Ok(result) },
                    Err(e) => Response::new_err(id, e.code as i32, e.message),
                };
                vec![response.into()]
            }
        }
    }

    fn notified(&mut self, told: Notification) -> serde_json::Result<Vec<Message>> {
        let Notification { method, params } = told;
        match &*method {
            note::Exit::METHOD => self.exited = true,
            note::DidOpenTextDocument::METHOD => {
                let DidOpenTextDocumentParams { text_document: opened } = serde_json::from_value(params)?;
                let path = path_of(opened.uri.as_str());
                self.workspace.open(&path, opened.text.into());
                self.documents.insert(opened.uri, Open { path: path.clone(), version: opened.version });
                return Ok(self.published_with_readers(&path));
            }
            note::DidChangeTextDocument::METHOD => {
                let DidChangeTextDocumentParams { text_document: changed, content_changes } =
                    serde_json::from_value(params)?;
                let Some(open) = self.documents.get_mut(&changed.uri) else { return Ok(Vec::new()) };
                open.version = changed.version;
                let path = open.path.clone();
                let mut text = self.workspace.text(&path).map_or_else(String::new, |t| t.to_string());
                apply(&mut text, &content_changes);
                self.workspace.change(&path, text.into());
                return Ok(self.published_with_readers(&path));
            }
            // A file on disk has changed: any open document may import it.
            note::DidSaveTextDocument::METHOD | note::DidChangeWatchedFiles::METHOD => {
                self.workspace.disk_changed();
                let open: Vec<String> = self.documents.values().map(|d| d.path.clone()).collect();
                return Ok(open.iter().filter_map(|path| self.published(path)).collect());
            }
            note::DidCloseTextDocument::METHOD => {
                let DidCloseTextDocumentParams { text_document: closed } = serde_json::from_value(params)?;
                let Some(open) = self.documents.remove(&closed.uri) else { return Ok(Vec::new()) };
                self.workspace.close(&open.path);
                let mut said = vec![publish(closed.uri, None, Vec::new())];
                let readers = self.workspace.readers(&open.path);
                said.extend(readers.iter().filter_map(|path| self.published(path)));
                return Ok(said);
            }
            _ => {}
        }
        Ok(Vec::new())
    }

    fn asked(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        match method {
            ask::Initialize::METHOD => {
                self.initialized = true;
                self.runs_commands = params["initializationOptions"]["commands"] == true;
                return value(initialized());
            }
            ask::Shutdown::METHOD => {
                self.shut_down = true;
                return Ok(Value::Null);
            }
            _ if !self.initialized => {
                return Err(Failure::new(ErrorCode::ServerNotInitialized, "send `initialize` first"));
            }
            _ if self.shut_down => {
                return Err(Failure::new(ErrorCode::InvalidRequest, "the server is shut down"));
            }
            _ => {}
        }
        match method {
            ask::CodeActionRequest::METHOD => {
                answer::<ask::CodeActionRequest>(params, |p| Ok(Some(self.repairs(&p)?)))
            }
            ask::CodeLensRequest::METHOD => {
                answer::<ask::CodeLensRequest>(params, |p| Ok(Some(self.lenses(&p)?)))
            }
            ask::Completion::METHOD => answer::<ask::Completion>(params, |p| Ok(Some(self.completion(&p)?))),
            ask::GotoDefinition::METHOD => answer::<ask::GotoDefinition>(params, |p| self.definition(&p)),
            ask::DocumentHighlightRequest::METHOD => {
                answer::<ask::DocumentHighlightRequest>(params, |p| Ok(Some(self.highlights(&p)?)))
            }
            ask::DocumentSymbolRequest::METHOD => {
                answer::<ask::DocumentSymbolRequest>(params, |p| Ok(Some(self.symbols(&p)?)))
            }
            ask::FoldingRangeRequest::METHOD => {
                answer::<ask::FoldingRangeRequest>(params, |p| Ok(Some(self.folds(&p)?)))
            }
            ask::Formatting::METHOD => answer::<ask::Formatting>(params, |p| self.format(&p)),
            ask::HoverRequest::METHOD => answer::<ask::HoverRequest>(params, |p| self.hover(&p)),
            ask::InlayHintRequest::METHOD => {
                answer::<ask::InlayHintRequest>(params, |p| Ok(Some(self.hints(&p)?)))
            }
            ask::PrepareRenameRequest::METHOD => {
                answer::<ask::PrepareRenameRequest>(params, |p| self.renamable(&p))
            }
            ask::References::METHOD => answer::<ask::References>(params, |p| Ok(Some(self.references(&p)?))),
            ask::Rename::METHOD => answer::<ask::Rename>(params, |p| Ok(Some(self.rename(&p)?))),
            ask::SemanticTokensFullRequest::METHOD => {
                answer::<ask::SemanticTokensFullRequest>(params, |p| Ok(Some(self.tokens(&p)?)))
            }
            ask::SignatureHelpRequest::METHOD => {
                answer::<ask::SignatureHelpRequest>(params, |p| self.signatures(&p))
            }
            ask::WorkspaceSymbolRequest::METHOD => {
                answer::<ask::WorkspaceSymbolRequest>(params, |p| Ok(Some(self.named(&p))))
            }
            _ => Err(Failure::new(ErrorCode::MethodNotFound, format!("unknown method `{method}`"))),
        }
    }

    /// The path and the text of an open document.
    fn document(&self, uri: &Uri) -> Result<(&str, &Arc<str>), Failure> {
        let open = self.documents.get(uri);
        let found = open.and_then(|open| Some((&*open.path, self.workspace.text(&open.path)?)));
        found.ok_or_else(|| Failure::new(ErrorCode::InvalidParams, format!("`{}` is not open", uri.as_str())))
    }

    /// The path of an open document, and the byte of a position in it.
    fn place(&self, at: &TextDocumentPositionParams) -> Result<(&str, Lines<'_>, usize), Failure> {
        let (path, text) = self.document(&at.text_document.uri)?;
        let lines = Lines::new(text);
        let offset = lines.offset(at.position);
        Ok((path, lines, offset))
    }

    /// The address under which the client knows a file.
    fn uri(&self, path: &str) -> Option<Uri> {
        let open = self.documents.iter().find(|(_, d)| d.path == path);
        open.map_or_else(|| uri_of(path), |(uri, _)| Some(uri.clone()))
    }

    fn location(&self, at: &ide::Location) -> Option<Location> {
        Some(Location { uri: self.uri(&at.path)?, range: Lines::new(&at.text).range(&at.range) })
    }

    /// The findings of a document, and those of the other ones that were read together with it.
    fn published_with_readers(&mut self, path: &str) -> Vec<Message> {
        let mut said: Vec<Message> = self.published(path).into_iter().collect();
        for other in self.workspace.readers(path).iter().filter(|other| *other != path) {
            said.extend(self.published(other));
        }
        said
    }

    fn published(&mut self, path: &str) -> Option<Message> {
        let found = self.workspace.findings(path);
        let text = self.workspace.text(path)?;
        let lines = Lines::new(text);
        let found = found.iter().map(|f| self.finding(&lines, f)).collect();
        let (uri, open) = self.documents.iter().find(|(_, d)| d.path == path)?;
        Some(publish(uri.clone(), Some(open.version), found))
    }

    fn finding(&self, lines: &Lines<'_>, f: &Finding) -> Diagnostic {
        let severity = match f.level {
            diagnostics::Level::Error => DiagnosticSeverity::ERROR,
            diagnostics::Level::Warn => DiagnosticSeverity::WARNING,
            _ => DiagnosticSeverity::INFORMATION,
        };
        let mut message = f.message.clone();
        for help in &f.help {
            message.push_str(&format!("\nhelp: {help}"));
        }
        let related = f.related.iter().filter_map(|(at, text)| {
            let location = self.location(at)?;
            Some(DiagnosticRelatedInformation { location, message: text.clone() })
        });
        Diagnostic {
            range: lines.range(&f.range),
            severity: Some(severity),
            code: Some(NumberOrString::String(f.code.into())),
            source: Some("entail".into()),
            message,
            related_information: Some(related.collect()),
            ..Diagnostic::default()
        }
    }

    fn repairs(&self, p: &CodeActionParams) -> Result<CodeActionResponse, Failure> {
        let uri = &p.text_document.uri;
        let (path, text) = self.document(uri)?;
        let lines = Lines::new(text);
        let range = lines.offset(p.range.start)..lines.offset(p.range.end);
        let action = |r: Repair| {
            let edit = TextEdit::new(lines.range(&r.edit.range), r.edit.text);
            CodeActionOrCommand::CodeAction(CodeAction {
                title: r.title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![self.finding(&lines, &r.finding)]),
                edit: Some(WorkspaceEdit::new(HashMap::from([(uri.clone(), vec![edit])]))),
                is_preferred: Some(r.applicability == diagnostics::Applicability::Safe),
                ..CodeAction::default()
            })
        };
        Ok(self.workspace.repairs(path, range).into_iter().map(action).collect())
    }

    fn completion(&self, p: &CompletionParams) -> Result<CompletionResponse, Failure> {
        let (path, _, offset) = self.place(&p.text_document_position)?;
        let item = |c: Completion| CompletionItem {
            label: c.label,
            kind: Some(match c.kind {
                CompletionKind::Type => CompletionItemKind::STRUCT,
                CompletionKind::Agent => CompletionItemKind::CLASS,
                CompletionKind::Function => CompletionItemKind::FUNCTION,
                CompletionKind::Variable => CompletionItemKind::VARIABLE,
                CompletionKind::Field => CompletionItemKind::FIELD,
                CompletionKind::Keyword => CompletionItemKind::KEYWORD,
            }),
            insert_text: c.insert,
            detail: c.detail,
            documentation: c.documentation.map(|text| Documentation::MarkupContent(markdown(text))),
            ..CompletionItem::default()
        };
        let items = self.workspace.completion(path, offset).into_iter().map(item);
        Ok(CompletionResponse::Array(items.collect()))
    }

    fn definition(&self, p: &GotoDefinitionParams) -> Result<Option<GotoDefinitionResponse>, Failure> {
        let (path, _, offset) = self.place(&p.text_document_position_params)?;
        let all = self.workspace.definition(path, offset);
        let mut all: Vec<Location> = all.iter().filter_map(|at| self.location(at)).collect();
        Ok(match all.len() {
            0 => None,
            1 => Some(GotoDefinitionResponse::Scalar(all.remove(0))),
            _ => Some(GotoDefinitionResponse::Array(all)),
        })
    }

    fn highlights(&self, p: &DocumentHighlightParams) -> Result<Vec<DocumentHighlight>, Failure> {
        let (path, lines, offset) = self.place(&p.text_document_position_params)?;
        let all = self.workspace.highlights(path, offset);
        Ok(all.iter().map(|r| DocumentHighlight { range: lines.range(r), kind: None }).collect())
    }

    fn references(&self, p: &ReferenceParams) -> Result<Vec<Location>, Failure> {
        let (path, _, offset) = self.place(&p.text_document_position)?;
        let all = self.workspace.references(path, offset, p.context.include_declaration);
        Ok(all.iter().filter_map(|at| self.location(at)).collect())
    }

    fn renamable(&self, p: &TextDocumentPositionParams) -> Result<Option<PrepareRenameResponse>, Failure> {
        let (path, lines, offset) = self.place(p)?;
        let found = self.workspace.renamable(path, offset);
        Ok(found.map(|(range, placeholder)| PrepareRenameResponse::RangeWithPlaceholder {
            range: lines.range(&range),
            placeholder,
        }))
    }

    fn rename(&self, p: &RenameParams) -> Result<WorkspaceEdit, Failure> {
        let (path, _, offset) = self.place(&p.text_document_position)?;
        let changes = self.workspace.rename(path, offset, &p.new_name)?;
        let of_file = |file: FileEdits| {
            let lines = Lines::new(&file.text);
            let edits = file.edits.into_iter().map(|e| TextEdit::new(lines.range(&e.range), e.text));
            Some((self.uri(&file.path)?, edits.collect()))
        };
        Ok(WorkspaceEdit::new(changes.into_iter().filter_map(of_file).collect()))
    }

    fn symbols(&self, p: &DocumentSymbolParams) -> Result<DocumentSymbolResponse, Failure> {
        let (path, text) = self.document(&p.text_document.uri)?;
        let lines = Lines::new(text);
        let symbol = |s: ide::Symbol| {
            #[allow(deprecated, reason = "the type has no other way to be made")]
            DocumentSymbol {
                name: s.name,
                detail: None,
                kind: kind(s.kind),
                tags: None,
                deprecated: None,
                range: lines.range(&s.range),
                selection_range: lines.range(&s.name_range),
                children: None,
            }
        };
        Ok(DocumentSymbolResponse::Nested(self.workspace.symbols(path).into_iter().map(symbol).collect()))
    }

    fn tokens(&self, p: &SemanticTokensParams) -> Result<SemanticTokensResult, Failure> {
        let (path, text) = self.document(&p.text_document.uri)?;
        let lines = Lines::new(text);
        let (mut data, mut last, mut end) = (Vec::new(), (0, 0), 0);
        for token in self.workspace.tokens(path) {
            // An abbreviation is expanded from one place.
            if token.range.start < end || token.range.end <= token.range.start {
                continue;
            }
            let (from, to) = (lines.position(token.range.start), lines.position(token.range.end));
            if to.line != from.line {
                continue;
            }
            let first = if from.line == last.0 { from.character - last.1 } else { from.character };
            data.push(SemanticToken {
                delta_line: from.line - last.0,
                delta_start: first,
                length: to.character - from.character,
                token_type: match token.kind {
                    TokenKind::Type => 0,
                    TokenKind::Agent => 1,
                    TokenKind::Function => 2,
                    TokenKind::Variable => 3,
                    TokenKind::Comment => 4,
                },
                token_modifiers_bitset: token.declares.into(),
            });
            (last, end) = ((from.line, from.character), token.range.end);
        }
        Ok(SemanticTokensResult::Tokens(SemanticTokens { result_id: None, data }))
    }

    fn hover(&self, p: &HoverParams) -> Result<Option<Hover>, Failure> {
        let (path, lines, offset) = self.place(&p.text_document_position_params)?;
        let hover = self.workspace.hover(path, offset);
        Ok(hover.map(|h| Hover {
            contents: HoverContents::Markup(markdown(h.markdown)),
            range: h.range.map(|r| lines.range(&r)),
        }))
    }

    fn signatures(&self, p: &SignatureHelpParams) -> Result<Option<SignatureHelp>, Failure> {
        let (path, _, offset) = self.place(&p.text_document_position_params)?;
        let one = |signature: ide::Signature| {
            let units = |byte: usize| {
                let before = signature.label.get(..byte).unwrap_or_default();
                u32::try_from(before.encode_utf16().count()).unwrap_or(u32::MAX)
            };
            let param = |range: &ide::Range| ParameterInformation {
                label: ParameterLabel::LabelOffsets([units(range.start), units(range.end)]),
                documentation: None,
            };
            SignatureInformation {
                parameters: Some(signature.params.iter().map(param).collect()),
                active_parameter: signature.active.and_then(|i| u32::try_from(i).ok()),
                label: signature.label,
                documentation: None,
            }
        };
        let signatures: Vec<_> = self.workspace.signatures(path, offset).into_iter().map(one).collect();
        let active_parameter = signatures.first().and_then(|s| s.active_parameter);
        let any = !signatures.is_empty();
        Ok(any.then_some(SignatureHelp { signatures, active_signature: Some(0), active_parameter }))
    }

    fn folds(&self, p: &FoldingRangeParams) -> Result<Vec<FoldingRange>, Failure> {
        let (path, text) = self.document(&p.text_document.uri)?;
        let lines = Lines::new(text);
        let fold = |fold: ide::Fold| {
            let (start, end) = (lines.position(fold.range.start), lines.position(fold.range.end));
            let (end_line, kind) = match fold.kind {
                // The line of the bracket that closes stays in view.
                FoldKind::Block => (end.line.saturating_sub(1), None),
                FoldKind::Comment => (end.line, Some(FoldingRangeKind::Comment)),
            };
            (end_line > start.line).then(|| FoldingRange {
                start_line: start.line,
                end_line,
                kind,
                ..FoldingRange::default()
            })
        };
        Ok(self.workspace.folds(path).into_iter().filter_map(fold).collect())
    }

    fn lenses(&self, p: &CodeLensParams) -> Result<Vec<CodeLens>, Failure> {
        let (path, text) = self.document(&p.text_document.uri)?;
        if !self.runs_commands {
            return Ok(Vec::new());
        }
        let lines = Lines::new(text);
        let lens = |lens: ide::Lens| {
            let [run, test, cost] = COMMANDS;
            let (title, command, arguments) = match lens.action {
                LensAction::Run { pipeline, takes_input } => {
                    ("Run".to_string(), run, vec![pipeline.into(), takes_input.into()])
                }
                LensAction::Test { name } => ("Test".to_string(), test, vec![name.into()]),
                LensAction::Cost { bound } => (bound, cost, Vec::new()),
            };
            let file = Value::String(p.text_document.uri.as_str().into());
            let arguments = [file].into_iter().chain(arguments).collect();
            CodeLens {
                range: lines.range(&lens.range),
                command: Some(Command { title, command: command.into(), arguments: Some(arguments) }),
                data: None,
            }
        };
        Ok(self.workspace.lenses(path).into_iter().map(lens).collect())
    }

    fn named(&self, p: &WorkspaceSymbolParams) -> WorkspaceSymbolResponse {
        let symbol = |(symbol, at): (ide::Symbol, ide::Location)| {
            #[allow(deprecated, reason = "the type has no other way to be made")]
            Some(SymbolInformation {
                name: symbol.name,
                kind: kind(symbol.kind),
                tags: None,
                deprecated: None,
                location: self.location(&at)?,
                container_name: None,
            })
        };
        WorkspaceSymbolResponse::Flat(self.workspace.named(&p.query).into_iter().filter_map(symbol).collect())
    }

    fn hints(&self, p: &InlayHintParams) -> Result<Vec<InlayHint>, Failure> {
        let (path, text) = self.document(&p.text_document.uri)?;
        let lines = Lines::new(text);
        let hint = |h: ide::Hint| InlayHint {
            position: lines.position(h.offset),
            label: InlayHintLabel::String(h.label),
            kind: (h.kind == HintKind::Type).then_some(InlayHintKind::TYPE),
            text_edits: None,
            tooltip: None,
            padding_left: (h.kind == HintKind::Bound).then_some(true),
            padding_right: None,
            data: None,
        };
        Ok(self.workspace.hints(path).into_iter().map(hint).collect())
    }

    fn format(&self, p: &DocumentFormattingParams) -> Result<Option<Vec<TextEdit>>, Failure> {
        let (path, text) = self.document(&p.text_document.uri)?;
        let lines = Lines::new(text);
        let edits = self.workspace.format(path)?;
        Ok(edits.map(|all| all.into_iter().map(|e| TextEdit::new(lines.range(&e.range), e.text)).collect()))
    }
}

/// The answer to a request whose parameters are read and whose result is written by their types.
fn answer<R: lsp_types::request::Request>(
    params: Value,
    answer: impl FnOnce(R::Params) -> Result<R::Result, Failure>,
) -> Result<Value, Failure> {
    let params = serde_json::from_value(params)
        .map_err(|e| Failure::new(ErrorCode::InvalidParams, format!("the parameters are wrong: {e}")))?;
    value(answer(params)?)
}

fn value(result: impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(result).map_err(|e| Failure::new(ErrorCode::InternalError, e.to_string()))
}

fn publish(uri: Uri, version: Option<i32>, diagnostics: Vec<Diagnostic>) -> Message {
    let params = PublishDiagnosticsParams { uri, diagnostics, version };
    Notification::new(note::PublishDiagnostics::METHOD.into(), params).into()
}

fn kind(kind: SymbolKind) -> lsp_types::SymbolKind {
    match kind {
        SymbolKind::Module => lsp_types::SymbolKind::MODULE,
        SymbolKind::Agent => lsp_types::SymbolKind::CLASS,
        SymbolKind::Enum => lsp_types::SymbolKind::ENUM,
        SymbolKind::TypeAlias => lsp_types::SymbolKind::INTERFACE,
        SymbolKind::Constant => lsp_types::SymbolKind::CONSTANT,
        SymbolKind::Function => lsp_types::SymbolKind::FUNCTION,
        SymbolKind::Test => lsp_types::SymbolKind::EVENT,
    }
}

fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

fn initialized() -> InitializeResult {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions::default())),
        ..TextDocumentSyncOptions::default()
    };
    let actions = CodeActionOptions {
        code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
        ..CodeActionOptions::default()
    };
    let tokens = SemanticTokensOptions {
        legend: SemanticTokensLegend {
            token_types: TOKEN_TYPES.to_vec(),
            token_modifiers: vec![SemanticTokenModifier::DECLARATION],
        },
        full: Some(SemanticTokensFullOptions::Bool(true)),
        ..SemanticTokensOptions::default()
    };
    let rename =
        RenameOptions { prepare_provider: Some(true), work_done_progress_options: Default::default() };
    let characters = |all: &[&str]| Some(all.iter().map(ToString::to_string).collect());
    let completion =
        CompletionOptions { trigger_characters: characters(&[".", "{"]), ..CompletionOptions::default() };
    let signatures = SignatureHelpOptions {
        trigger_characters: characters(&["(", "{", ","]),
        retrigger_characters: characters(&[":", ")", "}"]),
        ..SignatureHelpOptions::default()
    };
    InitializeResult {
        capabilities: ServerCapabilities {
            position_encoding: Some(PositionEncodingKind::UTF16),
            text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
            code_action_provider: Some(CodeActionProviderCapability::Options(actions)),
            code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
            completion_provider: Some(completion),
            definition_provider: Some(OneOf::Left(true)),
            document_formatting_provider: Some(OneOf::Left(true)),
            document_highlight_provider: Some(OneOf::Left(true)),
            document_symbol_provider: Some(OneOf::Left(true)),
            folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            inlay_hint_provider: Some(OneOf::Left(true)),
            references_provider: Some(OneOf::Left(true)),
            rename_provider: Some(OneOf::Right(rename)),
            semantic_tokens_provider: Some(SemanticTokensServerCapabilities::SemanticTokensOptions(tokens)),
            signature_help_provider: Some(signatures),
            workspace_symbol_provider: Some(OneOf::Left(true)),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo {
            name: "entail".into(),
            version: Some(env!("CARGO_PKG_VERSION").into()),
        }),
    }
}
