//! Statistics of sizes in the usual form of corpus descriptions: mean, median, 90th and 99th
//! percentile, maximum.

use std::fmt;

/// A summary of many sizes. It displays as `19.1/18/32/43/52`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary {
    /// The number of sizes.
    pub count: usize,
    /// The sum of the sizes.
    pub total: u64,
    /// The median size.
    pub median: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The largest size.
    pub max: u64,
}

impl Summary {
    /// Summarises sizes. Percentile q is the size at position `floor(q · count)` of the sorted
    /// sizes. All fields are 0 if there are no sizes.
    pub fn of(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut sizes: Vec<u64> = sizes.into_iter().map(|size| size as u64).collect();
        sizes.sort_unstable();
        let at = |percent: usize| {
            let position = (sizes.len() * percent / 100).min(sizes.len().saturating_sub(1));
            sizes.get(position).copied().unwrap_or(0)
        };
        Summary {
            count: sizes.len(),
            total: sizes.iter().sum(),
            median: at(50),
            p90: at(90),
            p99: at(99),
            max: at(100),
        }
    }

    /// Returns the mean size, or 0 if there are no sizes.
    pub fn mean(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { median, p90, p99, max, .. } = self;
        write!(f, "{:.1}/{median}/{p90}/{p99}/{max}", self.mean())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_positions_in_the_sorted_sizes() {
        let summary = Summary::of((1..=100).rev());
        assert_eq!(summary.to_string(), "50.5/51/91/100/100");
        assert_eq!(Summary::of([]).to_string(), "0.0/0/0/0/0");
        assert_eq!(Summary::of([7]).to_string(), "7.0/7/7/7/7");
    }
}
