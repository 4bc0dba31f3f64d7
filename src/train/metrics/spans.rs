//! Labelled spans: precision, recall and F1 over whole spans.

/// A span: its first word, the word after its last, and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first word.
    pub start: usize,
    /// The word after the last.
    pub end: usize,
    /// The kind.
    pub kind: u32,
}

/// Returns the spans of a sequence of tags. A tag is `None` (outside) or a kind with a flag: true begins a
/// span (`B`), false continues one (`I`).
///
/// An `I` that follows another kind, or nothing, begins a span too. So the function reads sequences that
/// use `B` only between touching spans of one kind, and sequences that no grammar made, as the usual
/// scorers do.
#[must_use]
pub fn bio_spans(tags: impl IntoIterator<Item = Option<(u32, bool)>>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut open = false;
    for (place, tag) in tags.into_iter().enumerate() {
        match (tag, spans.last_mut()) {
            (Some((kind, false)), Some(last)) if open && last.kind == kind => last.end = place + 1,
            (Some((kind, _)), _) => spans.push(Span { start: place, end: place + 1, kind }),
            (None, _) => {}
        }
        open = tag.is_some();
    }
    spans
}

/// Counts predicted, true and common spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanScore {
    right: u64,
    gold: u64,
    predicted: u64,
}

impl SpanScore {
    /// Adds the spans of a sequence, each list ascending.
    pub fn observe(&mut self, gold: &[Span], predicted: &[Span]) {
        self.gold += gold.len() as u64;
        self.predicted += predicted.len() as u64;
        self.right += predicted.iter().filter(|span| gold.binary_search(span).is_ok()).count() as u64;
    }

    /// Returns the fraction of predicted spans that are right.
    #[must_use]
    pub fn precision(&self) -> f64 {
        if self.predicted == 0 { 0.0 } else { self.right as f64 / self.predicted as f64 }
    }

    /// Returns the fraction of true spans that were predicted.
    #[must_use]
    pub fn recall(&self) -> f64 {
        if self.gold == 0 { 0.0 } else { self.right as f64 / self.gold as f64 }
    }

    /// Returns the harmonic mean of both.
    #[must_use]
    pub fn f1(&self) -> f64 {
        let both = self.gold + self.predicted;
        if both == 0 { 0.0 } else { 2.0 * self.right as f64 / both as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `O`, `B1`, `I2`, ...
    fn tags(text: &str) -> Vec<Option<(u32, bool)>> {
        let tag = |word: &str| {
            let (letter, kind) = word.split_at(1);
            (letter != "O").then(|| (kind.parse().unwrap(), letter == "B"))
        };
        text.split(' ').map(tag).collect()
    }

    fn spans(text: &str) -> Vec<(usize, usize, u32)> {
        bio_spans(tags(text)).into_iter().map(|span| (span.start, span.end, span.kind)).collect()
    }

    #[test]
    fn spans_begin_where_the_kind_changes_and_at_every_b() {
        assert_eq!(spans("O I1 I1 O I1"), [(1, 3, 1), (4, 5, 1)]);
        assert_eq!(spans("B1 I1 B1 I2 I2"), [(0, 2, 1), (2, 3, 1), (3, 5, 2)]);
        assert_eq!(spans("O O"), []);
    }

    #[test]
    fn only_whole_spans_of_the_right_kind_count() {
        let mut score = SpanScore::default();
        let read = |text| bio_spans(tags(text));
        score.observe(&read("B1 I1 O B2 O B1"), &read("B1 I1 O B1 O B1"));
        assert_eq!((score.precision(), score.recall()), (2.0 / 3.0, 2.0 / 3.0));
        score.observe(&read("O B2 O"), &read("O O O"));
        assert_eq!((score.precision(), score.recall()), (2.0 / 3.0, 0.5));
        assert!((score.f1() - 4.0 / 7.0).abs() < 1e-12);
        assert_eq!(SpanScore::default().f1(), 0.0);
    }
}
