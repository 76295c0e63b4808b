//! Histograms of measured values.

/// Upper bounds of durations in seconds: those of OpenTelemetry's conventions for generative AI.
pub const TIME_BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// Counts of values by the intervals that they are in.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Upper bounds of all intervals but the last, each within its interval.
    pub bounds: &'static [f64],
    /// Number of values in each interval.
    pub counts: Vec<u64>,
    /// Sum of the values.
    pub sum: f64,
}

impl Histogram {
    /// One without values. The bounds are in ascending order.
    pub fn new(bounds: &'static [f64]) -> Histogram {
        Histogram { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Counts a value.
    pub fn add(&mut self, x: f64) {
        let at = self.bounds.iter().position(|bound| x <= *bound).unwrap_or(self.bounds.len());
        self.counts[at] += 1;
        self.sum += x;
    }
}
