//! Byte-pair encoding: the tokens of a text.
//!
//! A text is split into pieces. Each byte of a piece is a token, and neighboring tokens are merged in the
//! order of the model's list of merges until no pair of them is in the list.
//!
//! Invariant: the pieces and the tokens of a piece together are the text, byte for byte.

use crate::Error;
use regex::Regex;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A merge of two neighboring tokens.
#[derive(Clone, Copy)]
struct Merge {
    /// Place in the model's list: lower ranks are merged first.
    rank: u32,
    token: u32,
}

/// Encoder of texts.
pub(crate) struct Encoder {
    /// Token of each byte.
    bytes: [Option<u32>; 256],
    merges: HashMap<(u32, u32), Merge>,
    splitter: Splitter,
}

/// A token of a piece, in a list in which merged neighbors are skipped.
struct Symbol {
    token: u32,
    before: usize,
    after: usize,
}

/// No symbol.
const NONE: usize = usize::MAX;
/// Token of a symbol that was merged into the one before it. No vocabulary is that large.
const MERGED: u32 = u32::MAX;

impl Encoder {
    /// Creates an encoder of single bytes and of the merges in their order: left, right and result.
    pub(crate) fn new(
        bytes: [Option<u32>; 256],
        merges: impl IntoIterator<Item = (u32, u32, u32)>,
        splitter: Splitter,
    ) -> Encoder {
        let mut ranks = HashMap::new();
        for (rank, (left, right, token)) in (0..).zip(merges) {
            // The later of two equal pairs counts.
            ranks.insert((left, right), Merge { rank, token });
        }
        Encoder { bytes, merges: ranks, splitter }
    }

    /// Returns the tokens of a text, or `None` if one of its bytes is no token.
    pub(crate) fn encode(&self, text: &str) -> Option<Vec<u32>> {
        let mut out = Vec::with_capacity(text.len() / 3);
        for piece in self.splitter.pieces(text) {
            self.piece(piece.as_bytes(), &mut out)?;
        }
        Some(out)
    }

    /// Adds the tokens of a piece.
    fn piece(&self, piece: &[u8], out: &mut Vec<u32>) -> Option<()> {
        let mut symbols = Vec::with_capacity(piece.len());
        for (i, byte) in piece.iter().enumerate() {
            let after = if i + 1 < piece.len() { i + 1 } else { NONE };
            symbols.push(Symbol {
                token: self.bytes[usize::from(*byte)]?,
                before: i.checked_sub(1).unwrap_or(NONE),
                after,
            });
        }
        // Pairs that may be merged: by rank, then from left to right. A pair of which a part was merged
        // meanwhile is skipped.
        let mut pairs = BinaryHeap::new();
        let offer = |symbols: &[Symbol], pairs: &mut BinaryHeap<_>, left: usize| {
            let Some(a) = symbols.get(left) else { return };
            let Some(b) = symbols.get(a.after) else { return };
            if let Some(merge) = self.merges.get(&(a.token, b.token)) {
                pairs.push(Reverse((merge.rank, left, merge.token, a.token, b.token)));
            }
        };
        for left in 0..symbols.len() {
            offer(&symbols, &mut pairs, left);
        }
        while let Some(Reverse((_, left, merged, a, b))) = pairs.pop() {
            let right = symbols[left].after;
            if symbols[left].token != a || symbols.get(right).is_none_or(|s| s.token != b) {
                continue;
            }
            let after = symbols[right].after;
            symbols[right].token = MERGED;
            symbols[left].token = merged;
            symbols[left].after = after;
            if let Some(next) = symbols.get_mut(after) {
                next.before = left;
            }
            offer(&symbols, &mut pairs, symbols[left].before);
            offer(&symbols, &mut pairs, left);
        }
        out.extend(symbols.iter().map(|s| s.token).filter(|t| *t != MERGED));
        Some(())
    }
}

/// Division of a text into pieces, over whose borders nothing is merged.
pub(crate) struct Splitter {
    /// Each character that is a number is a piece of its own.
    digits: bool,
    /// The alternatives of a piece; the first group is white space that no other alternative takes.
    words: Regex,
}

/// GPT-2's words.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|(\s+)";
/// Llama 3's words.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|(\s+)";

impl Splitter {
    /// Returns the splitter of a name.
    ///
    /// Source: `llama.cpp`'s names for the pre-tokenizers of published models.
    pub(crate) fn named(name: &str) -> Result<Splitter, Error> {
        let (digits, words) = match name {
            "default" | "gpt-2" => (false, GPT2),
            "smollm" | "starcoder" | "refact" | "command-r" => (true, GPT2),
            "llama-bpe" | "llama3" | "llama-v3" => (false, LLAMA3),
            other => return Err(Error::unsupported(format!("pre-tokenizer `{other}`"))),
        };
        let words = Regex::new(words).map_err(|e| Error::unsupported(format!("tokenizer: {e}")))?;
        Ok(Splitter { digits, words })
    }

    fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut out = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = match self.digits {
                true if first.is_numeric() => first.len_utf8(),
                true => rest.find(char::is_numeric).unwrap_or(rest.len()),
                false => rest.len(),
            };
            let (run, after) = rest.split_at(end);
            self.words_of(run, &mut out);
            rest = after;
        }
        out
    }

    fn words_of<'t>(&self, text: &'t str, out: &mut Vec<&'t str>) {
        let mut at = 0;
        while let Some(found) = self.words.captures_at(text, at) {
            // INVARIANT: the first group of a match is the match itself.
            let Some(whole) = found.get(0) else { break };
            let mut end = whole.end();
            // The last of several spaces belongs to the word that follows.
            if let Some(space) = found.get(1)
                && end < text.len()
                && let Some((last, _)) = space.as_str().char_indices().next_back()
                && last > 0
            {
                end = space.start() + last;
            }
            // Every character is part of a piece, also one that no alternative takes.
            out.extend(text.get(at..whole.start()).filter(|gap| !gap.is_empty()));
            out.extend(text.get(whole.start()..end));
            at = end;
        }
        out.extend(text.get(at..).filter(|rest| !rest.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoder, Splitter};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn pieces<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        Splitter::named(name).unwrap().pieces(text)
    }

    #[test]
    fn gpt2_pieces_take_one_space_before_a_word() {
        assert_eq!(pieces("gpt-2", "Hello  big world"), ["Hello", " ", " big", " world"]);
        assert_eq!(pieces("gpt-2", "it's 12, \n\n no"), ["it", "'s", " 12", ",", " \n\n", " no"]);
        assert_eq!(pieces("gpt-2", "a\n\nb  "), ["a", "\n", "\n", "b", "  "]);
        assert_eq!(pieces("gpt-2", "é—ß ٣٤"), ["é", "—", "ß", " ٣٤"]);
        assert!(pieces("gpt-2", "").is_empty());
    }

    #[test]
    fn digits_are_pieces_of_their_own() {
        assert_eq!(pieces("smollm", "in 2024!"), ["in", " ", "2", "0", "2", "4", "!"]);
        assert_eq!(pieces("smollm", "½x  ²"), ["½", "x", "  ", "²"]);
    }

    #[test]
    fn llama3_pieces_have_three_digits_and_lines() {
        assert_eq!(pieces("llama3", "It'LL be 12345"), ["It", "'LL", " be", " ", "123", "45"]);
        assert_eq!(pieces("llama3", "x = 1;\r\n  y"), ["x", " =", " ", "1", ";\r\n", " ", " y"]);
        assert_eq!(pieces("llama3", "(a)\n \n b"), ["(a", ")\n", " \n", " b"]);
    }

    #[test]
    fn unknown_splitters_are_refused() {
        assert!(Splitter::named("deepseek").is_err());
    }

    /// The letters `a` to `d` and merges of them; other bytes are no tokens.
    fn letters() -> (Encoder, Vec<(u32, u32, u32)>) {
        let mut bytes = [None; 256];
        for letter in b'a'..=b'd' {
            bytes[usize::from(letter)] = Some(u32::from(letter - b'a'));
        }
        let merges = vec![(1, 2, 4), (0, 0, 5), (4, 3, 6), (5, 5, 7), (0, 1, 8), (5, 0, 9), (8, 8, 10)];
        (Encoder::new(bytes, merges.clone(), Splitter::named("gpt-2").unwrap()), merges)
    }

    /// Merges the first pair of the lowest rank until there is none.
    fn by_definition(text: &str, merges: &[(u32, u32, u32)]) -> Vec<u32> {
        let mut tokens: Vec<u32> = text.bytes().map(|b| u32::from(b - b'a')).collect();
        while let Some((i, token)) = merges.iter().find_map(|(a, b, token)| {
            tokens.windows(2).position(|pair| pair == [*a, *b]).map(|i| (i, *token))
        }) {
            tokens.splice(i..i + 2, [token]);
        }
        tokens
    }

    #[test]
    fn bytes_without_a_token_are_no_tokens() {
        assert_eq!(letters().0.encode("abe"), None);
        assert_eq!(letters().0.encode("ab").as_deref(), Some(&[8][..]));
    }

    proptest! {
        #[test]
        fn tokens_are_merged_by_rank(text in "[a-d]{0,40}") {
            let (encoder, merges) = letters();
            prop_assert_eq!(encoder.encode(&text), Some(by_definition(&text, &merges)));
        }

        #[test]
        fn pieces_are_the_text(text in "(\\PC|[ \\n\\r\\t']){0,60}", name in 0..3usize) {
            let name = ["gpt-2", "smollm", "llama3"][name];
            prop_assert_eq!(pieces(name, &text).concat(), text);
        }
    }

    #[test]
    fn long_pieces_take_time_in_proportion() {
        let (encoder, _) = letters();
        let counts: HashMap<u32, usize> =
            encoder.encode(&"a".repeat(1_000_001)).unwrap().into_iter().fold(HashMap::new(), |mut all, t| {
                *all.entry(t).or_default() += 1;
                all
            });
        assert_eq!(counts, HashMap::from([(7, 250_000), (0, 1)]));
    }
}
