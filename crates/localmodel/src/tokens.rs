//! Tokens and turns: the tokenizer of a model file and its ChatML template.
//!
//! Invariant: control tokens such as `<|im_end|>` are no part of the
//! vocabulary that text is encoded with, so no text can forge one.

use crate::Error;
use crate::bpe::{Encoder, Splitter};
use crate::gguf::Gguf;
use std::collections::HashMap;
use toktrie::{TokRxInfo, TokTrie, TokenizerEnv};

/// Author of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions; before everything else, if at all.
    System,
    /// The one who asks.
    User,
    /// The model.
    Assistant,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Message {
    /// Author of the message.
    pub role: Role,
    /// Text of the message; any text.
    pub content: String,
}

impl Message {
    /// Instructions for the conversation.
    pub fn system(content: impl Into<String>) -> Message {
        Message { role: Role::System, content: content.into() }
    }

    /// A question.
    pub fn user(content: impl Into<String>) -> Message {
        Message { role: Role::User, content: content.into() }
    }

    /// An earlier answer of the model.
    pub fn assistant(content: impl Into<String>) -> Message {
        Message { role: Role::Assistant, content: content.into() }
    }
}

/// `tokenizer.ggml.token_type` of an ordinary token.
const NORMAL: u64 = 1;
/// `tokenizer.ggml.token_type` of a token that the file's author added.
const USER_DEFINED: u64 = 4;

/// Conversion between text and a model's tokens.
pub(crate) struct Tokenizer {
    encoder: Encoder,
    trie: TokTrie,
    turn_start: u32,
    turn_end: u32,
    stops: Vec<u32>,
    begin: Option<u32>,
    default_system: Option<String>,
}

impl Tokenizer {
    pub(crate) fn read(file: &Gguf) -> Result<Tokenizer, Error> {
        let model = file.str("tokenizer.ggml.model").unwrap_or("unknown");
        if model != "gpt2" {
            return Err(Error::unsupported(format!("tokenizer `{model}`, only `gpt2` is")));
        }
        let missing = |what: &str| Error::unsupported(format!("no `tokenizer.ggml.{what}`"));
        let tokens = file
            .strings("tokenizer.ggml.tokens")
            .filter(|tokens| !tokens.is_empty() && tokens.len() < 1 << 22)
            .ok_or_else(|| missing("tokens"))?;
        let merges = file.strings("tokenizer.ggml.merges").ok_or_else(|| missing("merges"))?;
        let types = file.integers("tokenizer.ggml.token_type").unwrap_or_default();
        let kind = |id: usize| types.get(id).copied().unwrap_or(NORMAL);

        let bytes_of = byte_characters();
        let mut vocabulary: HashMap<&str, u32> = HashMap::new();
        let mut bytes = [None; 256];
        let mut words = Vec::with_capacity(tokens.len());
        for (id, token) in tokens.iter().enumerate() {
            words.push(match kind(id) {
                NORMAL => {
                    vocabulary.insert(token, id as u32);
                    let word: Option<Vec<u8>> = token.chars().map(|c| bytes_of.get(&c).copied()).collect();
                    if let Some([byte]) = word.as_deref() {
                        bytes[usize::from(*byte)] = Some(id as u32);
                    }
                    word.unwrap_or_else(|| token.as_bytes().to_vec())
                }
                USER_DEFINED => token.as_bytes().to_vec(),
                _ => control_word(token),
            });
        }
        let find = |name: &str| {
            tokens
                .iter()
                .position(|token| *token == name)
                .filter(|&id| kind(id) != NORMAL)
                .map(|id| id as u32)
        };
        let (Some(turn_start), Some(turn_end)) = (find("<|im_start|>"), find("<|im_end|>")) else {
            return Err(Error::unsupported("no ChatML tokens `<|im_start|>` and `<|im_end|>`"));
        };
        let id_at = |key: &str| file.usize(key).filter(|&id| id < tokens.len()).map(|id| id as u32);
        let mut stops = vec![turn_end];
        stops.extend(id_at("tokenizer.ggml.eos_token_id"));
        stops.extend(find("<|endoftext|>"));
        stops.sort_unstable();
        stops.dedup();
        let begin = match file.bool("tokenizer.ggml.add_bos_token") {
            Some(true) => id_at("tokenizer.ggml.bos_token_id"),
            _ => None,
        };

        // A merge of or into a token that text can't be is never applied.
        let token = |word: &str| vocabulary.get(word).copied();
        let merges = merges.iter().filter_map(|merge| {
            let (a, b) = merge.split_once(' ')?;
            Some((token(a)?, token(b)?, token(&format!("{a}{b}"))?))
        });
        let splitter = Splitter::named(file.str("tokenizer.ggml.pre").unwrap_or("default"))?;
        let encoder = Encoder::new(bytes, merges, splitter);

        let info = TokRxInfo::new(words.len() as u32, turn_end);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(&stops);
        Ok(Tokenizer {
            encoder,
            trie,
            turn_start,
            turn_end,
            stops,
            begin,
            default_system: file.str("tokenizer.chat_template").and_then(default_system).map(str::to_owned),
        })
    }

    /// Tokens that end the model's turn.
    pub(crate) fn stops(&self) -> &[u32] {
        &self.stops
    }

    pub(crate) fn vocab_size(&self) -> usize {
        self.trie.vocab_size()
    }

    /// The tokens of a text, none of which is a control token.
    pub(crate) fn encode(&self, text: &str) -> Vec<u32> {
        // The encoder fails only on a vocabulary without all the bytes.
        self.encoder.encode(text).unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
    }

    /// The bytes of a token; of a control token none.
    pub(crate) fn bytes(&self, token: u32) -> &[u8] {
        match self.trie.is_special_token(token) {
            true => &[],
            false => self.trie.token(token),
        }
    }

    /// The tokens of a conversation, up to where the model's turn begins.
    pub(crate) fn conversation(&self, messages: &[Message]) -> Vec<u32> {
        let mut out: Vec<u32> = self.begin.into_iter().collect();
        let newline = self.encode("\n");
        let mut turn = |role: Role, content: &str| {
            out.push(self.turn_start);
            out.extend(self.encode(&format!("{}\n{content}", role.name())));
            out.push(self.turn_end);
            out.extend(&newline);
        };
        if let Some(system) = &self.default_system
            && messages.first().is_none_or(|m| m.role != Role::System)
        {
            turn(Role::System, system);
        }
        for message in messages {
            turn(message.role, &message.content);
        }
        out.push(self.turn_start);
        out.extend(self.encode(&format!("{}\n", Role::Assistant.name())));
        out
    }
}

impl TokenizerEnv for Tokenizer {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.encode(text))
    }
}

/// A word for a control token that no text contains.
fn control_word(token: &str) -> Vec<u8> {
    let mut word = vec![TokTrie::SPECIAL_TOKEN_MARKER];
    word.extend(token.as_bytes());
    word
}

/// The system message that a ChatML template puts in front of a conversation
/// that has none, if it is a literal.
fn default_system(template: &str) -> Option<&str> {
    let (_, rest) = template.split_once("<|im_start|>system\n")?;
    let (text, _) = rest.split_once("<|im_end|>")?;
    (!text.contains(['{', '\'', '"'])).then_some(text)
}

/// GPT-2's characters for bytes: printable Latin-1 characters represent themselves, the other bytes follow
/// from U+0100 on.
fn byte_characters() -> HashMap<char, u8> {
    let mut next = 0x100;
    (0..=u8::MAX)
        .map(|byte| {
            let printable = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
            let code = if printable {
                u32::from(byte)
            } else {
                next += 1;
                next - 1
            };
            (char::from_u32(code).unwrap_or('\0'), byte)
        })
        .collect()
}
