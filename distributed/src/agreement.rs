//! The comparison of programs, options and data between ranks, before they work together.

use crate::group::{Group, GroupError};

/// A fact that must be equal on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The subject, for messages: `the seed`.
    pub subject: String,
    /// The fact: a number, a name, or a hash.
    pub fact: String,
}

impl Statement {
    /// Makes a statement.
    #[must_use]
    pub fn new(subject: &str, fact: impl ToString) -> Self {
        Self { subject: subject.to_owned(), fact: fact.to_string() }
    }
}

/// Compares statements between all ranks.
///
/// # Errors
/// Every rank gets the same error: the first statement on which a rank differs from rank 0.
pub fn agree(group: &mut dyn Group, statements: &[Statement]) -> Result<(), GroupError> {
    // A null byte separates facts, so no fact may hold one.
    let facts: Vec<String> = statements.iter().map(|statement| statement.fact.replace('\0', " ")).collect();
    let all = group.all_gather(facts.join("\0").as_bytes())?;
    let read = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).split('\0').map(str::to_owned).collect()
    };
    let expected = read(&all[0]);
    for (rank, bytes) in all.iter().enumerate().skip(1) {
        let found = read(bytes);
        if found.len() != expected.len() {
            return Err(GroupError::Malformed { rank });
        }
        let mut pairs = expected.iter().zip(&found).enumerate();
        if let Some((number, (expected, found))) = pairs.find(|(_, (expected, found))| expected != found) {
            let subject = statements.get(number).map_or_else(String::new, |own| own.subject.clone());
            let (expected, found) = (expected.clone(), found.clone());
            return Err(GroupError::Disagreement { rank, subject, expected, found });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threads;

    #[test]
    fn all_ranks_report_the_same_first_difference() {
        let results: Vec<Result<(), GroupError>> = std::thread::scope(|scope| {
            let compare = |mut rank: Threads| {
                scope.spawn(move || {
                    let seed = if rank.rank() == 2 { 8 } else { 7 };
                    let statements = [Statement::new("the version", "1"), Statement::new("the seed", seed)];
                    agree(&mut rank, &statements)
                })
            };
            let ranks: Vec<_> = Threads::group(3).into_iter().map(compare).collect();
            ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
        });
        let message = "rank 2 disagrees with rank 0 on the seed: rank 0 has 7, rank 2 has 8; start all ranks with equal programs, options and data";
        assert!(
            results.iter().all(|result| result.as_ref().is_err_and(|error| error.to_string() == message))
        );
    }
}
