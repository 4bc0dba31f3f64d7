//! Fits costs to measured times: least squares of relative errors, with no negative cost.

/// A measured time and the number of times that each cost occurs in it.
pub(super) struct Sample {
    pub(super) counts: Vec<f64>,
    pub(super) nanos: f64,
}

/// Fits one cost per column, such that the sum over samples of
/// `((counts . costs - nanos) / nanos)^2` is small and no cost is negative.
///
/// If the fit gives negative costs, the most negative one is fixed at zero and the others are
/// fitted again.
pub(super) fn costs(samples: &[Sample]) -> Vec<f64> {
    let columns = samples.first().map_or(0, |sample| sample.counts.len());
    let mut free: Vec<usize> = (0..columns).collect();
    loop {
        let fitted = solve(samples, &free);
        let worst =
            (0..free.len()).filter(|&at| fitted[at] < 0.0).min_by(|&a, &b| fitted[a].total_cmp(&fitted[b]));
        match worst {
            Some(at) => {
                free.remove(at);
            }
            None => {
                let mut costs = vec![0.0; columns];
                free.iter().zip(fitted).for_each(|(&column, cost)| costs[column] = cost);
                return costs;
            }
        }
    }
}

/// Solves the normal equations for some of the columns, by elimination with pivots. The cost of a
/// column that the samples do not determine is zero.
fn solve(samples: &[Sample], columns: &[usize]) -> Vec<f64> {
    let size = columns.len();
    let mut rows = vec![vec![0.0; size + 1]; size];
    for Sample { counts, nanos } in samples {
        let weight = 1.0 / nanos.max(1e-3).powi(2);
        for (row, &i) in rows.iter_mut().zip(columns) {
            for (slot, &j) in row.iter_mut().zip(columns) {
                *slot += weight * counts[i] * counts[j];
            }
            row[size] += weight * counts[i] * nanos;
        }
    }
    let scales: Vec<f64> = (0..size).map(|at| rows[at][at]).collect();
    let mut pivots = vec![None; size];
    let mut used = vec![false; size];
    for column in 0..size {
        let candidates = (0..size).filter(|&row| !used[row]);
        let Some(pivot) = candidates.max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))
        else {
            continue;
        };
        if rows[pivot][column].abs() <= 1e-12 * scales[column] {
            continue;
        }
        used[pivot] = true;
        pivots[column] = Some(pivot);
        let chosen = rows[pivot].clone();
        for (number, row) in rows.iter_mut().enumerate() {
            if number != pivot {
                let factor = row[column] / chosen[column];
                row.iter_mut().zip(&chosen).for_each(|(slot, x)| *slot -= factor * x);
            }
        }
    }
    pivots
        .iter()
        .enumerate()
        .map(|(column, pivot)| pivot.map_or(0.0, |row| rows[row][size] / rows[row][column]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(time: impl Fn(f64, f64) -> f64) -> Vec<Sample> {
        let sizes = [(1.0, 3.0), (4.0, 3.0), (16.0, 9.0), (64.0, 5.0), (256.0, 9.0)];
        sizes
            .map(|(rows, units)| Sample { counts: vec![1.0, rows, rows * units], nanos: time(rows, units) })
            .into()
    }

    #[test]
    fn the_fit_recovers_the_costs_behind_exact_times() {
        let found = costs(&samples(|rows, units| 300.0 + 4.0 * rows + 0.25 * rows * units));
        for (found, expected) in found.iter().zip([300.0, 4.0, 0.25]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn no_cost_is_negative_and_undetermined_costs_are_zero() {
        let found = costs(&samples(|rows, _| 50.0 * rows - 20.0));
        assert!(found[0] == 0.0 && found.iter().all(|cost| *cost >= 0.0), "{found:?}");
        let same: Vec<Sample> = (0..3).map(|_| Sample { counts: vec![1.0, 2.0], nanos: 8.0 }).collect();
        let found = costs(&same);
        assert!((found[0] + 2.0 * found[1] - 8.0).abs() < 1e-9, "{found:?}");
        assert!(costs(&[]).is_empty());
    }
}
