//! Writes tiny llama models with random weights, so that everything but a real
//! model's wits can be tested without one.

use std::path::{Path, PathBuf};

/// A metadata value.
#[derive(Clone)]
pub enum Meta {
    U32(u32),
    F32(f32),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<u32>),
}

/// A model file about to be written.
pub struct Model {
    pub meta: Vec<(String, Meta)>,
    pub tensors: Vec<(String, Vec<u64>, Vec<f32>)>,
}

const DIM: u64 = 64;
const KV: u64 = 32;
const HIDDEN: u64 = 96;
const LAYERS: u64 = 2;

/// A number generator good enough for weights.
pub struct Random(pub u64);

impl Random {
    /// Between -1 and 1.
    pub fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

impl Model {
    /// All bytes, a few merged pairs and the ChatML tokens; weights from `seed`.
    pub fn new(seed: u64) -> Model {
        let mut tokens: Vec<String> =
            ["<|im_start|>", "<|im_end|>", "<|endoftext|>"].map(String::from).to_vec();
        let mut types = vec![3u32; tokens.len()];
        let mut other = 0x100;
        for byte in 0..=255u8 {
            let c = if matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..) {
                char::from(byte)
            } else {
                other += 1;
                char::from_u32(other - 1).unwrap()
            };
            tokens.push(c.to_string());
        }
        let merges = [
            "i m", "e n", "en d", "a s", "s i", "\" :", "\": \"", "\" ,", "\", \"", "1 2", "t r", "tr u",
            "Ġ a", "{ \"", "\" }", "< |", "| >", "_ end",
        ];
        for merge in merges {
            tokens.push(merge.replace(' ', ""));
        }
        types.resize(tokens.len(), 1);
        let vocab = tokens.len() as u64;

        let text = |s: &str| Meta::Text(s.into());
        let meta = vec![
            ("general.architecture", text("llama")),
            ("llama.block_count", Meta::U32(LAYERS as u32)),
            ("llama.context_length", Meta::U32(6000)),
            ("llama.embedding_length", Meta::U32(DIM as u32)),
            ("llama.feed_forward_length", Meta::U32(HIDDEN as u32)),
            ("llama.attention.head_count", Meta::U32(4)),
            ("llama.attention.head_count_kv", Meta::U32(2)),
            ("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5)),
            ("tokenizer.ggml.model", text("gpt2")),
            ("tokenizer.ggml.pre", text("smollm")),
            ("tokenizer.ggml.tokens", Meta::Texts(tokens)),
            ("tokenizer.ggml.token_type", Meta::Numbers(types)),
            ("tokenizer.ggml.merges", Meta::Texts(merges.map(String::from).to_vec())),
            ("tokenizer.ggml.eos_token_id", Meta::U32(1)),
            ("tokenizer.chat_template", text("{{ '<|im_start|>system\nBe kind<|im_end|>\n' }}")),
        ];
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut tensors = Vec::new();
        let mut tensor = |name: String, shape: &[u64], scale: f32| {
            let len: u64 = shape.iter().product();
            let values = match shape.len() {
                1 => vec![1.0; len as usize],
                _ => (0..len).map(|_| random.next() * scale).collect(),
            };
            tensors.push((name, shape.to_vec(), values));
        };
        // Large logits make the model insist on nonsense.
        tensor("token_embd.weight".into(), &[DIM, vocab], 2.0);
        tensor("output_norm.weight".into(), &[DIM], 1.0);
        for i in 0..LAYERS {
            for (part, shape) in [
                ("attn_norm", &[DIM][..]),
                ("attn_q", &[DIM, DIM]),
                ("attn_k", &[DIM, KV]),
                ("attn_v", &[DIM, KV]),
                ("attn_output", &[DIM, DIM]),
                ("ffn_norm", &[DIM]),
                ("ffn_gate", &[DIM, HIDDEN]),
                ("ffn_up", &[DIM, HIDDEN]),
                ("ffn_down", &[HIDDEN, DIM]),
            ] {
                tensor(format!("blk.{i}.{part}.weight"), shape, 0.4);
            }
        }
        Model { meta: meta.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(), tensors }
    }

    /// Sets a metadata value.
    #[allow(dead_code)]
    pub fn set(&mut self, key: &str, value: Meta) {
        self.meta.retain(|(name, _)| name != key);
        self.meta.push((key.into(), value));
    }

    /// The file's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        let text = |out: &mut Vec<u8>, s: &str| {
            out.extend((s.len() as u64).to_le_bytes());
            out.extend(s.as_bytes());
        };
        out.extend(3u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.meta.len() as u64).to_le_bytes());
        for (key, value) in &self.meta {
            text(&mut out, key);
            match value {
                Meta::U32(x) => {
                    out.extend(4u32.to_le_bytes());
                    out.extend(x.to_le_bytes());
                }
                Meta::F32(x) => {
                    out.extend(6u32.to_le_bytes());
                    out.extend(x.to_le_bytes());
                }
                Meta::Text(s) => {
                    out.extend(8u32.to_le_bytes());
                    text(&mut out, s);
                }
                Meta::Texts(all) => {
                    out.extend(9u32.to_le_bytes());
                    out.extend(8u32.to_le_bytes());
                    out.extend((all.len() as u64).to_le_bytes());
                    all.iter().for_each(|s| text(&mut out, s));
                }
                Meta::Numbers(all) => {
                    out.extend(9u32.to_le_bytes());
                    out.extend(4u32.to_le_bytes());
                    out.extend((all.len() as u64).to_le_bytes());
                    all.iter().for_each(|x| out.extend(x.to_le_bytes()));
                }
            }
        }
        let mut offset = 0u64;
        for (name, shape, values) in &self.tensors {
            text(&mut out, name);
            out.extend((shape.len() as u32).to_le_bytes());
            shape.iter().for_each(|x| out.extend(x.to_le_bytes()));
            out.extend(0u32.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += (values.len() as u64 * 4).next_multiple_of(32);
        }
        for (_, _, values) in &self.tensors {
            out.resize(out.len().next_multiple_of(32), 0);
            values.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        out
    }

    /// Writes the file.
    pub fn write(&self, dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }
}

/// A directory that goes away at the end of a test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("localmodel-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
