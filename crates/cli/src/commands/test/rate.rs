//! Confidence intervals of rates.
//!
//! Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927; the
//! tests compare with R. G. Newcombe, "Two-sided confidence intervals for the single proportion", 1998.

/// Quantile of the normal distribution for a two-sided confidence of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// The Wilson score interval of a rate, without continuity correction, at a confidence of 95 %.
pub(super) fn wilson(passed: u32, runs: u32) -> (f64, f64) {
    if runs == 0 {
        // Nothing is known about a rate without runs.
        return (0.0, 1.0);
    }
    let (k, n, square) = (f64::from(passed), f64::from(runs), Z * Z);
    let center = (k + square / 2.0) / (n + square);
    let half = Z / (n + square) * (k * (n - k) / n + square / 4.0).sqrt();
    // The ends are exact where rounding would leave a rest.
    let low = if passed == 0 { 0.0 } else { (center - half).max(0.0) };
    let high = if passed >= runs { 1.0 } else { (center + half).min(1.0) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::wilson;

    #[test]
    fn intervals_are_those_of_newcombe() {
        // Table I, method 3: the score method without continuity correction.
        for (passed, runs, low, high) in [
            (81, 263, "0.2553", "0.3662"),
            (15, 148, "0.0624", "0.1605"),
            (0, 20, "0.0000", "0.1611"),
            (1, 29, "0.0061", "0.1718"),
        ] {
            let (a, b) = wilson(passed, runs);
            assert_eq!((&*format!("{a:.4}"), &*format!("{b:.4}")), (low, high), "{passed} of {runs}");
        }
    }

    #[test]
    fn intervals_hold_the_rate_and_are_symmetric() {
        for runs in 1..200u32 {
            for passed in 0..=runs {
                let (low, high) = wilson(passed, runs);
                let rate = f64::from(passed) / f64::from(runs);
                assert!(0.0 <= low && low <= rate && rate <= high && high <= 1.0, "{passed} of {runs}");
                let (other_low, other_high) = wilson(runs - passed, runs);
                assert!((low + other_high - 1.0).abs() < 1e-12 && (high + other_low - 1.0).abs() < 1e-12);
            }
        }
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }
}
