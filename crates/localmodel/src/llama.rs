//! The llama architecture: weights, key-value cache and forward pass.
//!
//! Weights of every linear layer are held as signed bytes in blocks of
//! [`BLOCK`] with one scale each (GGUF's `Q8_0`), whatever the file has: one
//! kernel then serves every file, and on the default model's `Q4_1` layers it
//! is several times faster than decoding four-bit blocks at each step.
//! The kernel is plain Rust that the compiler vectorizes for any processor.
//!
//! Invariant: a position's cached keys and values depend on the tokens up to
//! it only, so that a cache can be cut back to any shared prefix.
//!
//! Source: Touvron et al., "LLaMA", 2023, §2.2 (pre-normalization, SwiGLU,
//! rotary embeddings); Ainslie et al., "GQA", 2023 (shared key-value heads).

use crate::Error;
use crate::gguf::Gguf;
use rayon::prelude::*;

/// Weights that share a scale.
const BLOCK: usize = 32;

/// Rows of activations that one pass over a matrix serves.
const TILE: usize = 16;

/// Below this many multiplications a loop is not worth other threads.
const PARALLEL: usize = 1 << 15;

/// Dimensions and constants of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    /// Tokens the model was trained to attend to.
    pub(crate) context: usize,
    /// Rows of the token embedding; logits have this length.
    pub(crate) vocab: usize,
    layers: usize,
    dim: usize,
    hidden: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    rope_dim: usize,
    rope_base: f32,
    rope_scale: f32,
    eps: f32,
}

impl Config {
    fn read(file: &Gguf, vocab: usize) -> Result<Config, Error> {
        let architecture = file.str("general.architecture").unwrap_or("unknown");
        if architecture != "llama" {
            return Err(Error::unsupported(format!("architecture `{architecture}`, only `llama` is")));
        }
        if file.usize("llama.expert_count").unwrap_or(0) > 0 {
            return Err(Error::unsupported("a mixture of experts"));
        }
        let rope_scale = match file.str("llama.rope.scaling.type") {
            None | Some("none") => 1.0,
            Some("linear") => file.f32("llama.rope.scaling.factor").unwrap_or(1.0),
            Some(other) => {
                return Err(Error::unsupported(format!("rope scaling of type `{other}`")));
            }
        };
        let dim = file.need("llama.embedding_length")?;
        let heads = file.need("llama.attention.head_count")?;
        let kv_heads = file.usize("llama.attention.head_count_kv").unwrap_or(heads);
        let head_dim = match file.usize("llama.attention.key_length") {
            Some(length) => length,
            None if heads > 0 => dim / heads,
            None => 0,
        };
        let config = Config {
            context: file.need("llama.context_length")?,
            vocab,
            layers: file.need("llama.block_count")?,
            dim,
            hidden: file.need("llama.feed_forward_length")?,
            heads,
            kv_heads,
            head_dim,
            rope_dim: file.usize("llama.rope.dimension_count").unwrap_or(head_dim),
            rope_base: file.f32("llama.rope.freq_base").unwrap_or(10_000.0),
            rope_scale,
            eps: file.f32("llama.attention.layer_norm_rms_epsilon").unwrap_or(1e-5),
        };
        config.check()?;
        Ok(config)
    }

    /// The forward pass relies on these without looking again.
    fn check(&self) -> Result<(), Error> {
        let sound = [self.context, self.vocab, self.dim, self.hidden, self.kv_heads, self.head_dim]
            .iter()
            .all(|&n| (1..=1 << 24).contains(&n))
            && self.heads <= 1 << 16
            && self.heads.is_multiple_of(self.kv_heads)
            && self.rope_dim <= self.head_dim
            && self.rope_dim.is_multiple_of(2);
        if !sound {
            return Err(Error::unsupported(format!("its dimensions don't fit together: {self:?}")));
        }
        for (what, width) in [
            ("embedding", self.dim),
            ("feed-forward", self.hidden),
            ("attention", self.heads * self.head_dim),
        ] {
            if !width.is_multiple_of(BLOCK) {
                return Err(Error::unsupported(format!("{what} width {width} is not a multiple of {BLOCK}")));
            }
        }
        Ok(())
    }

    fn q_dim(&self) -> usize {
        self.heads * self.head_dim
    }

    fn kv_dim(&self) -> usize {
        self.kv_heads * self.head_dim
    }
}

/// A matrix in blocks of bytes, row by row.
#[derive(Default)]
struct Matrix {
    rows: usize,
    cols: usize,
    weights: Vec<i8>,
    scales: Vec<f32>,
}

impl Matrix {
    /// Reads tensors of `cols` columns and stacks their rows: one product then
    /// serves projections that share their input.
    fn read(file: &mut Gguf, parts: &[(&str, usize)], cols: usize) -> Result<Matrix, Error> {
        let mut matrix = Matrix { cols, ..Matrix::default() };
        for &(name, rows) in parts {
            file.matrix(name, rows, cols, |values| matrix.append(values))?;
            matrix.rows += rows;
        }
        Ok(matrix)
    }

    fn append(&mut self, values: &[f32]) {
        let at = self.weights.len();
        self.weights.resize(at + values.len(), 0);
        let scales_at = self.scales.len();
        self.scales.resize(scales_at + values.len() / BLOCK, 0.0);
        self.weights[at..]
            .par_chunks_mut(BLOCK)
            .zip(&mut self.scales[scales_at..])
            .zip(values.par_chunks(BLOCK))
            .with_min_len(1 << 10)
            .for_each(|((weights, scale), values)| {
                *scale = quantize(values, 127.0, |i, q| weights[i] = q as i8);
            });
    }

    /// The row `index` as floats.
    fn row(&self, index: usize, out: &mut [f32]) {
        let weights = &self.weights[index * self.cols..][..self.cols];
        let scales = &self.scales[index * self.cols / BLOCK..];
        for ((out, weights), scale) in out.chunks_mut(BLOCK).zip(weights.chunks(BLOCK)).zip(scales) {
            for (out, &weight) in out.iter_mut().zip(weights) {
                *out = f32::from(weight) * scale;
            }
        }
    }

    /// `out[t] = self · inputs[t]` for every row `t` of `inputs`.
    fn apply(&self, inputs: &[f32], out: &mut Vec<f32>) {
        let count = inputs.len() / self.cols;
        let inputs = Quantized::new(inputs);
        let blocks = self.cols / BLOCK;
        let weights = |row: usize| &self.weights[row * self.cols..][..self.cols];
        let scales = |row: usize| &self.scales[row * blocks..][..blocks];
        let input =
            |t: usize| (&inputs.values[t * self.cols..][..self.cols], &inputs.scales[t * blocks..][..blocks]);
        let dot = |row: usize, t: usize| dot_blocks(weights(row), scales(row), input(t));
        out.clear();
        out.resize(count * self.rows, 0.0);
        if self.rows * self.cols * count < PARALLEL {
            for (i, out) in out.iter_mut().enumerate() {
                *out = dot(i % self.rows, i / self.rows);
            }
            return;
        }
        let threads = rayon::current_num_threads();
        if count == 1 {
            // A few pieces per thread, so that one that is held up can be relieved.
            let piece = self.rows.div_ceil(threads * 4).max(16);
            out.par_chunks_mut(piece).enumerate().for_each(|(i, out)| {
                for (j, out) in out.iter_mut().enumerate() {
                    *out = dot(i * piece + j, 0);
                }
            });
        } else {
            let tile = count.div_ceil(threads).clamp(1, TILE);
            out.par_chunks_mut(tile * self.rows).enumerate().for_each(|(i, out)| {
                let held = out.len() / self.rows;
                // Widened once for all rows of the tile.
                let mut wide: Vec<i16> = Vec::with_capacity(self.cols);
                for row in 0..self.rows {
                    wide.clear();
                    wide.extend(weights(row).iter().map(|&w| i16::from(w)));
                    for j in 0..held {
                        out[j * self.rows + row] = dot_blocks(&wide, scales(row), input(i * tile + j));
                    }
                }
            });
        }
    }
}

/// Activations in blocks. The kernel multiplies pairs of sixteen bits whatever
/// they hold, so activations get all of them: eight, as other engines use,
/// change the default model's answers.
struct Quantized {
    values: Vec<i16>,
    scales: Vec<f32>,
}

impl Quantized {
    fn new(inputs: &[f32]) -> Quantized {
        let mut values = vec![0; inputs.len()];
        let scales = inputs
            .chunks(BLOCK)
            .zip(values.chunks_mut(BLOCK))
            .map(|(inputs, values)| quantize(inputs, 32767.0, |i, q| values[i] = q as i16))
            .collect();
        Quantized { values, scales }
    }
}

/// Rounds a block to whole numbers up to `limit` either way and returns its
/// scale. What is not a number becomes zero.
fn quantize(values: &[f32], limit: f32, mut put: impl FnMut(usize, f32)) -> f32 {
    let most = values.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    if most == 0.0 || !most.is_finite() {
        return 0.0;
    }
    let scale = most / limit;
    let inverse = limit / most;
    for (i, &x) in values.iter().enumerate() {
        // Rounds half away from zero like `f32::round`, which is a call on x86-64.
        put(i, (x * inverse + 0.5f32.copysign(x)).trunc());
    }
    scale
}

/// The inner loop of everything.
fn dot_blocks<W: Copy + Into<i32>>(
    weights: &[W],
    weight_scales: &[f32],
    (inputs, input_scales): (&[i16], &[f32]),
) -> f32 {
    let (weights, _) = weights.as_chunks::<BLOCK>();
    let (inputs, _) = inputs.as_chunks::<BLOCK>();
    let mut total = 0.0;
    for (((w, x), ws), xs) in weights.iter().zip(inputs).zip(weight_scales).zip(input_scales) {
        let mut sum = 0i32;
        for i in 0..BLOCK {
            sum += w[i].into() * i32::from(x[i]);
        }
        total += sum as f32 * (ws * xs);
    }
    total
}

/// Product of two float vectors, in lanes that the compiler can vectorize.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for i in 0..LANES {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

struct Layer {
    attention_norm: Vec<f32>,
    qkv: Matrix,
    attention_out: Matrix,
    hidden_norm: Vec<f32>,
    gate_up: Matrix,
    down: Matrix,
}

/// The weights of a model. Immutable; every state is in a [`Cache`].
pub(crate) struct Llama {
    pub(crate) config: Config,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// `None` if the output layer is the embedding.
    output: Option<Matrix>,
    /// Radians per position, for each pair of a head's dimensions.
    rope: Vec<f32>,
}

impl Llama {
    /// Reads the weights of `file`, whose vocabulary has `vocab` tokens.
    pub(crate) fn read(file: &mut Gguf, vocab: usize) -> Result<Llama, Error> {
        let config = Config::read(file, vocab)?;
        let Config { dim, hidden, .. } = config;
        let (q_dim, kv_dim) = (config.q_dim(), config.kv_dim());
        let embedding = Matrix::read(file, &[("token_embd.weight", vocab)], dim)?;
        let mut layers = Vec::new();
        for i in 0..config.layers {
            let name = |part: &str| format!("blk.{i}.{part}.weight");
            for part in ["attn_q", "attn_k", "attn_v", "attn_output"] {
                if file.has(&format!("blk.{i}.{part}.bias")) {
                    return Err(Error::unsupported(format!("a bias in `{part}`")));
                }
            }
            layers.push(Layer {
                attention_norm: file.vector(&name("attn_norm"), dim)?,
                qkv: Matrix::read(
                    file,
                    &[(&name("attn_q"), q_dim), (&name("attn_k"), kv_dim), (&name("attn_v"), kv_dim)],
                    dim,
                )?,
                attention_out: Matrix::read(file, &[(&name("attn_output"), dim)], q_dim)?,
                hidden_norm: file.vector(&name("ffn_norm"), dim)?,
                gate_up: Matrix::read(file, &[(&name("ffn_gate"), hidden), (&name("ffn_up"), hidden)], dim)?,
                down: Matrix::read(file, &[(&name("ffn_down"), dim)], hidden)?,
            });
        }
        let norm = file.vector("output_norm.weight", dim)?;
        let output = match file.has("output.weight") {
            true => Some(Matrix::read(file, &[("output.weight", vocab)], dim)?),
            false => None,
        };
        let pairs = config.rope_dim / 2;
        let factors = match file.has("rope_freqs.weight") {
            true => file.vector("rope_freqs.weight", pairs)?,
            false => vec![1.0; pairs],
        };
        let rope = factors
            .iter()
            .enumerate()
            .map(|(i, factor)| {
                let exponent = -2.0 * i as f32 / config.rope_dim as f32;
                config.rope_base.powf(exponent) / factor / config.rope_scale
            })
            .collect();
        Ok(Llama { config, embedding, layers, norm, output, rope })
    }

    /// Appends `tokens` to `cache` and returns the logits after the last one,
    /// or after every one (concatenated) if `all`.
    ///
    /// Expects at least one token, each below the vocabulary's size, and room
    /// for them in the context.
    pub(crate) fn forward(&self, cache: &mut Cache, tokens: &[u32], all: bool) -> Vec<f32> {
        let config = &self.config;
        let (dim, q_dim, kv_dim) = (config.dim, config.q_dim(), config.kv_dim());
        let (count, past) = (tokens.len(), cache.tokens.len());
        let turns = self.turns(past, count);

        let mut stream = vec![0.0; count * dim];
        for (row, &token) in stream.chunks_mut(dim).zip(tokens) {
            self.embedding.row(token as usize, row);
        }
        let (mut normed, mut qkv, mut mixed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut gate_up, mut hidden, mut delta) = (Vec::new(), Vec::new(), Vec::new());
        for (layer, kept) in self.layers.iter().zip(&mut cache.layers) {
            normalize(&stream, &layer.attention_norm, config.eps, &mut normed);
            layer.qkv.apply(&normed, &mut qkv);
            for (row, turns) in qkv.chunks_mut(q_dim + 2 * kv_dim).zip(turns.chunks(self.rope.len().max(1))) {
                for head in row[..q_dim + kv_dim].chunks_mut(config.head_dim) {
                    rotate(head, turns);
                }
                kept.keys.extend_from_slice(&row[q_dim..][..kv_dim]);
                kept.values.extend_from_slice(&row[q_dim + kv_dim..]);
            }
            self.attend(&qkv, kept, past, &mut mixed);
            layer.attention_out.apply(&mixed, &mut delta);
            add(&mut stream, &delta);

            normalize(&stream, &layer.hidden_norm, config.eps, &mut normed);
            layer.gate_up.apply(&normed, &mut gate_up);
            hidden.clear();
            hidden.extend(gate_up.chunks(2 * config.hidden).flat_map(|row| {
                let (gate, up) = row.split_at(config.hidden);
                gate.iter().zip(up).map(|(&g, &u)| g / (1.0 + (-g).exp()) * u)
            }));
            layer.down.apply(&hidden, &mut delta);
            add(&mut stream, &delta);
        }
        cache.tokens.extend_from_slice(tokens);

        let wanted = if all { 0 } else { (count - 1) * dim };
        normalize(&stream[wanted..], &self.norm, config.eps, &mut normed);
        let mut logits = Vec::new();
        let output = self.output.as_ref().unwrap_or(&self.embedding);
        output.apply(&normed, &mut logits);
        logits
    }

    /// Cosine and sine of every position's and pair's angle.
    fn turns(&self, past: usize, count: usize) -> Vec<(f32, f32)> {
        (past..past + count)
            .flat_map(|position| {
                self.rope.iter().map(move |speed| {
                    let (sin, cos) = (position as f32 * speed).sin_cos();
                    (cos, sin)
                })
            })
            .collect()
    }

    /// Causal attention of the rows of `qkv` over everything kept.
    fn attend(&self, qkv: &[f32], kept: &LayerCache, past: usize, out: &mut Vec<f32>) {
        let config = &self.config;
        let (q_dim, kv_dim, head_dim) = (config.q_dim(), config.kv_dim(), config.head_dim);
        let width = q_dim + 2 * kv_dim;
        let count = qkv.len() / width;
        let scale = 1.0 / (head_dim as f32).sqrt();
        let shared = config.heads / config.kv_heads;
        out.clear();
        out.resize(count * q_dim, 0.0);
        let one = |(i, out): (usize, &mut [f32])| {
            let (t, head) = (i / config.heads, i % config.heads);
            let query = &qkv[t * width + head * head_dim..][..head_dim];
            let at = head / shared * head_dim;
            let seen = past + t + 1;
            let mut weights: Vec<f32> = kept
                .keys
                .chunks(kv_dim)
                .take(seen)
                .map(|key| dot(query, &key[at..at + head_dim]) * scale)
                .collect();
            softmax(&mut weights);
            for (weight, value) in weights.iter().zip(kept.values.chunks(kv_dim)) {
                for (out, value) in out.iter_mut().zip(&value[at..at + head_dim]) {
                    *out += weight * value;
                }
            }
        };
        if count * q_dim * (past + count) < PARALLEL {
            out.chunks_mut(head_dim).enumerate().for_each(one);
        } else {
            out.par_chunks_mut(head_dim).enumerate().for_each(one);
        }
    }
}

/// Keys and values of one layer, position by position.
#[derive(Default)]
struct LayerCache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// Keys and values of a sequence of tokens that the model has read. Grows as needed.
pub(crate) struct Cache {
    pub(crate) tokens: Vec<u32>,
    kv_dim: usize,
    layers: Vec<LayerCache>,
}

impl Cache {
    pub(crate) fn new(config: &Config) -> Cache {
        Cache {
            tokens: Vec::new(),
            kv_dim: config.kv_dim(),
            layers: (0..config.layers).map(|_| LayerCache::default()).collect(),
        }
    }

    /// A copy of the first `len` tokens.
    pub(crate) fn beginning(&self, len: usize) -> Cache {
        let floats = len * self.kv_dim;
        let layer = |kept: &LayerCache| LayerCache {
            keys: kept.keys[..floats].to_vec(),
            values: kept.values[..floats].to_vec(),
        };
        Cache {
            tokens: self.tokens[..len].to_vec(),
            kv_dim: self.kv_dim,
            layers: self.layers.iter().map(layer).collect(),
        }
    }

    /// Forgets everything after the first `len` tokens.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        for kept in &mut self.layers {
            kept.keys.truncate(len * self.kv_dim);
            kept.values.truncate(len * self.kv_dim);
        }
    }
}

/// Root-mean-square normalization of each row of `weight`'s length.
fn normalize(inputs: &[f32], weight: &[f32], eps: f32, out: &mut Vec<f32>) {
    out.clear();
    for row in inputs.chunks(weight.len()) {
        let scale = 1.0 / (dot(row, row) / row.len() as f32 + eps).sqrt();
        out.extend(row.iter().zip(weight).map(|(x, w)| x * scale * w));
    }
}

/// Rotary embedding of one head: GGUF files of this architecture hold the two
/// dimensions of a pair side by side.
fn rotate(head: &mut [f32], turns: &[(f32, f32)]) {
    for (pair, (cos, sin)) in head.chunks_exact_mut(2).zip(turns) {
        let (a, b) = (pair[0], pair[1]);
        pair[0] = a * cos - b * sin;
        pair[1] = a * sin + b * cos;
    }
}

fn add(to: &mut [f32], delta: &[f32]) {
    for (to, delta) in to.iter_mut().zip(delta) {
        *to += delta;
    }
}

/// Turns scores into weights that sum to one.
pub(crate) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        total += *score;
    }
    for score in scores {
        *score /= total;
    }
}
