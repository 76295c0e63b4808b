//! Samples and pseudo-random numbers: SplitMix64 (Steele, Lea, Flood 2014). Not for secrets.

use core_ir::Num;

/// A generator. Equal seeds give equal sequences, on every machine and in every version.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A generator of this seed.
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The finalizer of SplitMix64: a bijection that spreads every bit over the result.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number that depends on all of `parts` and nothing else.
pub fn hash(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |h, p| SplitMix::new(h ^ mix(*p)).next_u64())
}

/// A sample that depends on the seed and the number of the draw alone: true with exactly the given
/// probability, up to 2⁻⁶².
pub fn sample(seed: u64, draw: u64, probability: &Num) -> bool {
    let drawn = hash(&[seed, draw]) >> 2;
    let drawn = Num::from(i64::try_from(drawn).unwrap_or(i64::MAX));
    // `drawn` is uniform below 2⁶². A probability whose product with that is too large to compute is far
    // above 1.
    probability.mul(&Num::from(1i64 << 62)).is_ok_and(|limit| drawn < limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_the_probability_and_the_seed() {
        let third = Num::from(1).div(&Num::from(3)).unwrap();
        let hits = (0..30_000).filter(|n| sample(1, *n, &third)).count();
        // Four standard deviations of a binomial distribution are 327.
        assert!((9_670..=10_330).contains(&hits), "{hits}");
        assert!((0..64).any(|n| sample(1, n, &third) != sample(2, n, &third)));
        assert!((0..64).all(|n| sample(n, 0, &Num::ONE)));
        assert!((0..64).all(|n| !sample(n, 0, &Num::ZERO)));
    }

    #[test]
    fn it_is_the_published_generator() {
        // The first outputs for seed 1234567, as in the reference implementation's test vector.
        let mut g = SplitMix::new(1_234_567);
        assert_eq!([g.next_u64(), g.next_u64()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn hashes_depend_on_every_part_and_their_order() {
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_ne!(hash(&[0]), hash(&[0, 0]));
    }
}
