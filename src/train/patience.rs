//! [`Patience`]: decides when to stop and which checkpoint is best.

/// Watches a score per epoch.
///
/// ```
/// use autobatch::train::Patience;
///
/// let mut patience = Patience::new(2);
/// let verdicts: Vec<_> = [0.5, 0.7, 0.6, 0.7].map(|score| patience.observe(score)).into();
/// assert!(verdicts[1].is_best && !verdicts[3].is_best);   // equal is no better
/// assert_eq!(verdicts.iter().position(|verdict| verdict.stop), Some(3));
/// assert_eq!(patience.best(), Some((1, 0.7)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Patience {
    epochs: usize,
    seen: usize,
    best: Option<(usize, f64)>,
}

/// The meaning of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is the best so far; a program saves then.
    pub is_best: bool,
    /// Whether training should stop.
    pub stop: bool,
}

impl Patience {
    /// Stops after this many observations in a row that do not exceed the best; 0 never stops. Larger scores
    /// are better, so pass the negative of a loss.
    #[must_use]
    pub fn new(epochs: usize) -> Self {
        Self { epochs, seen: 0, best: None }
    }

    /// Adds the score of an epoch. NaN is never the best.
    pub fn observe(&mut self, score: f64) -> Verdict {
        let is_best = match self.best {
            None => !score.is_nan(),
            Some((_, best)) => score > best,
        };
        if is_best {
            self.best = Some((self.seen, score));
        }
        self.seen += 1;
        let since = self.best.map_or(self.seen, |(epoch, _)| self.seen - 1 - epoch);
        Verdict { is_best, stop: self.epochs > 0 && since >= self.epochs }
    }

    /// Returns the best observation, from 0, and its score.
    #[must_use]
    pub fn best(&self) -> Option<(usize, f64)> {
        self.best
    }
}
