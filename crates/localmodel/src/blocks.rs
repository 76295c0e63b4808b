//! Number encodings of GGUF files: blocks of quantized weights.
//!
//! Source: the GGUF specification's list of tensor types, and the layouts in
//! `ggml-common.h` that it refers to.

/// An encoding of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
}

impl Encoding {
    /// The encoding of that number in a file, if it is one of ours.
    pub(crate) fn new(number: u32) -> Option<Encoding> {
        Some(match number {
            0 => Encoding::F32,
            1 => Encoding::F16,
            2 => Encoding::Q4_0,
            3 => Encoding::Q4_1,
            6 => Encoding::Q5_0,
            7 => Encoding::Q5_1,
            8 => Encoding::Q8_0,
            12 => Encoding::Q4K,
            13 => Encoding::Q5K,
            14 => Encoding::Q6K,
            30 => Encoding::Bf16,
            _ => return None,
        })
    }

    /// Weights and bytes of a block.
    pub(crate) fn block(self) -> (usize, usize) {
        match self {
            Encoding::F32 => (1, 4),
            Encoding::F16 | Encoding::Bf16 => (1, 2),
            Encoding::Q4_0 => (32, 18),
            Encoding::Q4_1 => (32, 20),
            Encoding::Q5_0 => (32, 22),
            Encoding::Q5_1 => (32, 24),
            Encoding::Q8_0 => (32, 34),
            Encoding::Q4K => (256, 144),
            Encoding::Q5K => (256, 176),
            Encoding::Q6K => (256, 210),
        }
    }

    /// Appends the weights of some blocks.
    ///
    /// Expects a whole number of blocks.
    pub(crate) fn decode(self, bytes: &[u8], out: &mut Vec<f32>) {
        let blocks = bytes.chunks_exact(self.block().1);
        match self {
            Encoding::F32 => out.extend(blocks.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))),
            Encoding::F16 => out.extend(blocks.map(half)),
            Encoding::Bf16 => out.extend(blocks.map(|b| f32::from_bits(u32::from(pair(b)) << 16))),
            Encoding::Q4_0 => blocks.for_each(|b| {
                let (scale, nibbles) = (half(b), &b[2..]);
                out.extend(halves(nibbles).map(|q| (f32::from(q) - 8.0) * scale));
            }),
            Encoding::Q4_1 => blocks.for_each(|b| {
                let (scale, least, nibbles) = (half(b), half(&b[2..]), &b[4..]);
                out.extend(halves(nibbles).map(|q| f32::from(q) * scale + least));
            }),
            Encoding::Q5_0 => blocks.for_each(|b| {
                let (scale, fifth, nibbles) = (half(b), &b[2..6], &b[6..]);
                out.extend(fives(nibbles, fifth).map(|q| (f32::from(q) - 16.0) * scale));
            }),
            Encoding::Q5_1 => blocks.for_each(|b| {
                let (scale, least, fifth, nibbles) = (half(b), half(&b[2..]), &b[4..8], &b[8..]);
                out.extend(fives(nibbles, fifth).map(|q| f32::from(q) * scale + least));
            }),
            Encoding::Q8_0 => blocks.for_each(|b| {
                let scale = half(b);
                out.extend(b[2..].iter().map(|&q| f32::from(q as i8) * scale));
            }),
            Encoding::Q4K => blocks.for_each(|b| {
                for (i, (scale, least)) in group_scales(b).into_iter().enumerate() {
                    let nibbles = &b[16 + i / 2 * 32..][..32];
                    let nibble = |q: u8| q >> (i % 2 * 4) & 15;
                    out.extend(nibbles.iter().map(|&q| f32::from(nibble(q)) * scale - least));
                }
            }),
            Encoding::Q5K => blocks.for_each(|b| {
                let fifth = &b[16..48];
                for (i, (scale, least)) in group_scales(b).into_iter().enumerate() {
                    let nibbles = &b[48 + i / 2 * 32..][..32];
                    out.extend(nibbles.iter().zip(fifth).map(|(&q, &high)| {
                        let q = (q >> (i % 2 * 4) & 15) | (high >> i & 1) << 4;
                        f32::from(q) * scale - least
                    }));
                }
            }),
            Encoding::Q6K => blocks.for_each(|b| {
                let (low, high, scales) = (&b[..128], &b[128..192], &b[192..208]);
                let scale = half(&b[208..]);
                for i in 0..256 {
                    // Two halves of four quarters of thirty-two weights.
                    let (part, quarter, at) = (i / 128, i / 32 % 4, i % 32);
                    let four = low[part * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4) & 15;
                    let two = high[part * 32 + at] >> (quarter * 2) & 3;
                    let q = f32::from(four | two << 4) - 32.0;
                    out.push(q * scale * f32::from(scales[i / 16] as i8));
                }
            }),
        }
    }
}

fn pair(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[0], bytes[1]])
}

/// The half-precision number at the start of `bytes`.
fn half(bytes: &[u8]) -> f32 {
    let bits = pair(bytes);
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f32::from(bits & 0x3ff);
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

/// The low four bits of every byte, then the high ones.
fn halves(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let low = bytes.iter().map(|b| b & 15);
    low.chain(bytes.iter().map(|b| b >> 4))
}

/// [`halves`] with a fifth bit each.
fn fives(bytes: &[u8], fifth: &[u8]) -> impl Iterator<Item = u8> {
    let bit = |i: usize| fifth[i / 8] >> (i % 8) & 1;
    halves(bytes).enumerate().map(move |(i, q)| q | bit(i) << 4)
}

/// Scale and offset of each of a large block's eight groups: two halves, then
/// sixteen numbers of six bits packed into twelve bytes.
fn group_scales(block: &[u8]) -> [(f32, f32); 8] {
    let (scale, least, packed) = (half(block), half(&block[2..]), &block[4..16]);
    std::array::from_fn(|i| {
        let (s, m) = if i < 4 {
            (packed[i] & 63, packed[i + 4] & 63)
        } else {
            let both = packed[i + 4];
            ((both & 15) | packed[i - 4] >> 6 << 4, both >> 4 | packed[i] >> 6 << 4)
        };
        (scale * f32::from(s), least * f32::from(m))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(number: u32, bytes: &[u8]) -> Vec<f32> {
        let mut out = Vec::new();
        Encoding::new(number).unwrap().decode(bytes, &mut out);
        out
    }

    #[test]
    fn floats_of_every_width() {
        assert_eq!(decoded(0, &1.5f32.to_le_bytes()), [1.5]);
        assert_eq!(decoded(30, &[0xc0, 0x3f, 0x20, 0xc1]), [1.5, -10.0]);
        let halves = [0x3c00u16, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x7c00, 0x3555];
        let bytes: Vec<u8> = halves.iter().flat_map(|h| h.to_le_bytes()).collect();
        let expected =
            [1.0, -2.0, 65504.0, 6.103_515_6e-5, 5.960_464_5e-8, -0.0, f32::INFINITY, 0.333_251_95];
        assert_eq!(decoded(1, &bytes), expected);
    }

    #[test]
    fn small_blocks() {
        let two = [0x00, 0x40];
        let one = [0x00, 0x3c];
        let nibbles: Vec<u8> = (0..16).map(|i| i | (15 - i) << 4).collect();
        let rising = |i: usize| if i < 16 { i as f32 } else { 31.0 - i as f32 };

        let q4_0 = decoded(2, &[&two[..], &nibbles].concat());
        let q4_1 = decoded(3, &[&two[..], &one, &nibbles].concat());
        // The fifth bit of the first and the last weight.
        let fifth = [1, 0, 0, 0x80];
        let q5_0 = decoded(6, &[&two[..], &fifth, &nibbles].concat());
        let q5_1 = decoded(7, &[&two[..], &one, &fifth, &nibbles].concat());
        let bytes: Vec<u8> = (0..32).map(|i| (i as i8 - 16) as u8).collect();
        let q8_0 = decoded(8, &[&two[..], &bytes].concat());
        for i in 0..32 {
            let five = rising(i) + if i == 0 || i == 31 { 16.0 } else { 0.0 };
            assert_eq!(q4_0[i], 2.0 * (rising(i) - 8.0));
            assert_eq!(q4_1[i], 2.0 * rising(i) + 1.0);
            assert_eq!(q5_0[i], 2.0 * (five - 16.0));
            assert_eq!(q5_1[i], 2.0 * five + 1.0);
            assert_eq!(q8_0[i], 2.0 * (i as f32 - 16.0));
        }
    }

    #[test]
    fn every_block_has_its_size() {
        for number in [0, 1, 2, 3, 6, 7, 8, 12, 13, 14, 30] {
            let (weights, bytes) = Encoding::new(number).unwrap().block();
            for fill in [0, 0x55, 0xff] {
                assert_eq!(decoded(number, &vec![fill; 3 * bytes]).len(), 3 * weights);
            }
        }
        assert_eq!(Encoding::new(10), None);
    }
}
