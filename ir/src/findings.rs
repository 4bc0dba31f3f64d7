//! What verifiers find: the broken ones of numbered rules, all at once and with their places.
//!
//! Graphs and plans are verified by rules of the same make: a number that never changes, a sentence,
//! and findings that name a place, what was expected and what was found. A hostile file may break a
//! rule in a million places, so the findings are capped, and names in them are cut.

use std::fmt;

/// How many findings are kept; the search stops there.
pub const MAX_FINDINGS: usize = 100;

/// The rules of one verifier; the `Display` of one is its number, `G12`.
pub trait Rules: Copy + fmt::Debug + fmt::Display {
    /// How a list of findings begins: `the rules of graphs are broken`.
    const BROKEN: &'static str;
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding<R> {
    /// The rule.
    pub rule: R,
    /// Where it is broken, in words, with the line of source where one is known.
    pub place: String,
    /// What was expected and found.
    pub message: String,
}

impl<R: Rules> fmt::Display for Finding<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.rule, self.place, self.message)
    }
}

/// The broken rules, at most [`MAX_FINDINGS`], in the order they were met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings<R> {
    kept: Vec<Finding<R>>,
}

impl<R> Default for Findings<R> {
    fn default() -> Self {
        Self { kept: Vec::new() }
    }
}

impl<R> Findings<R> {
    /// The findings.
    #[must_use]
    pub fn findings(&self) -> &[Finding<R>] {
        &self.kept
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.kept.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() >= MAX_FINDINGS
    }

    /// Keeps a finding while there is room.
    #[cold]
    pub(crate) fn report(&mut self, rule: R, place: &dyn fmt::Display, message: impl Into<String>) {
        if !self.is_full() {
            self.kept.push(Finding { rule, place: place.to_string(), message: message.into() });
        }
    }

    /// The verdict on what was verified.
    pub(crate) fn verdict<T>(self, verified: T) -> Result<T, Self> {
        if self.is_clean() { Ok(verified) } else { Err(self) }
    }
}

impl<R: Rules> fmt::Display for Findings<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_full() { " or more" } else { "" };
        let s = if self.kept.len() == 1 { "" } else { "s" };
        write!(f, "{} in {}{more} place{s}", R::BROKEN, self.kept.len())?;
        for (number, finding) in self.kept.iter().enumerate() {
            write!(f, "\n{:>4}. {finding}", number + 1)?;
        }
        Ok(())
    }
}

impl<R: Rules> std::error::Error for Findings<R> {}

/// Declares the rules of a verifier: the letter of their numbers, how findings begin, and each rule
/// with its number and sentence.
macro_rules! rules {
    ($letter:literal, $broken:literal; $($name:ident = $number:literal, $statement:literal;)*) => {
        /// A rule of the verifier; its `Display` is its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $(#[doc = $statement] $name = $number,)* }

        impl Rule {
            /// Every rule, by number.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What the rule demands.
            #[must_use]
            pub const fn statement(self) -> &'static str {
                match self { $(Self::$name => $statement,)* }
            }
        }

        impl std::fmt::Display for Rule {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($letter, "{}"), *self as u8)
            }
        }

        impl $crate::findings::Rules for Rule {
            const BROKEN: &'static str = $broken;
        }
    };
}
pub(crate) use rules;

/// A name as a message shows it: a hostile one may be long and may hold anything.
pub(crate) fn brief(name: &str) -> String {
    const SHOWN: usize = 80;
    let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let shown: String = name.chars().take(SHOWN).map(printable).collect();
    if name.chars().nth(SHOWN).is_some() { shown + ".." } else { shown }
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the rules of verifiers are public, those of the toy are not")]
mod tests {
    use super::*;

    rules! {
        "T", "the toy is broken";
        Wheel = 1, "wheels turn";
        Paint = 7, "paint is dry";
    }

    #[test]
    fn findings_are_listed_with_their_numbers_and_capped() {
        let mut findings = Findings::default();
        assert_eq!(findings.clone().verdict(5), Ok(5));
        findings.report(Rule::Paint, &"the door", "expected dry, found wet");
        assert_eq!(
            findings.to_string(),
            "the toy is broken in 1 place\n   1. T7 the door: expected dry, found wet"
        );
        for _ in 0..2 * MAX_FINDINGS {
            findings.report(Rule::Wheel, &"a wheel", "it does not turn");
        }
        assert_eq!(findings.findings().len(), MAX_FINDINGS);
        assert!(findings.to_string().starts_with("the toy is broken in 100 or more places\n"));
        let statements: Vec<&str> = Rule::ALL.iter().map(|rule| rule.statement()).collect();
        assert_eq!(statements, ["wheels turn", "paint is dry"]);
    }

    #[test]
    fn long_and_unprintable_names_are_cut() {
        assert_eq!(brief("a\nb"), "a\u{fffd}b");
        assert_eq!(brief(&"é".repeat(81)), "é".repeat(80) + "..");
        assert_eq!(brief(&"x".repeat(80)), "x".repeat(80));
    }
}
