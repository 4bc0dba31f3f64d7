//! The errors that verifiers report: all broken rules at once, each with its place.
//!
//! The verifiers of graphs and plans share this format. A rule has a permanent number and a
//! sentence; a finding names a place, the expected and the found content. A hostile file may break
//! a rule in a million places, so the number of findings and the length of names are limited.

use std::fmt;

/// The maximum number of findings. The verifier stops when it reaches this number.
pub const MAX_FINDINGS: usize = 100;

/// The rules of one verifier. The `Display` of a rule is its number, `G12`.
pub trait Rules: Copy + fmt::Debug + fmt::Display {
    /// The first words of a report: `the rules of graphs are broken`.
    const BROKEN: &'static str;
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding<R> {
    /// The rule.
    pub rule: R,
    /// Where it is broken, with the source line if known.
    pub place: String,
    /// The expected and the found content.
    pub message: String,
}

impl<R: Rules> fmt::Display for Finding<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.rule, self.place, self.message)
    }
}

/// The broken rules, at most [`MAX_FINDINGS`], in the order of discovery.
#[derive(Clone, PartialEq, Eq)]
pub struct Findings<R> {
    found: Vec<Finding<R>>,
}

impl<R> Default for Findings<R> {
    fn default() -> Self {
        Self { found: Vec::new() }
    }
}

impl<R> Findings<R> {
    /// The findings.
    #[must_use]
    pub fn findings(&self) -> &[Finding<R>] {
        &self.found
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_FINDINGS
    }

    /// Records a finding unless the list is full.
    #[cold]
    pub(crate) fn report(&mut self, rule: R, place: &dyn fmt::Display, message: impl Into<String>) {
        if !self.is_full() {
            self.found.push(Finding { rule, place: place.to_string(), message: message.into() });
        }
    }

    /// Returns the verified item, or the findings.
    pub(crate) fn verdict<T>(self, verified: T) -> Result<T, Self> {
        if self.is_clean() { Ok(verified) } else { Err(self) }
    }
}

impl<R: Rules> fmt::Display for Findings<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_full() { " or more" } else { "" };
        let s = if self.found.len() == 1 { "" } else { "s" };
        write!(f, "{} in {}{more} place{s}", R::BROKEN, self.found.len())?;
        for (number, finding) in self.found.iter().enumerate() {
            write!(f, "\n{:>4}. {finding}", number + 1)?;
        }
        Ok(())
    }
}

impl<R: Rules> std::error::Error for Findings<R> {}

impl<R: Rules> fmt::Debug for Findings<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::report::write(self, f)
    }
}

/// Declares the rules of a verifier: the letter of their numbers, the first words of a report, and
/// each rule with its number and sentence.
macro_rules! rules {
    ($letter:literal, $broken:literal; $($name:ident = $number:literal, $statement:literal;)*) => {
        /// A rule of the verifier; its `Display` is its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $(#[doc = $statement] $name = $number,)* }

        impl Rule {
            /// Every rule, by number.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The sentence that states the rule.
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
pub(crate) use crate::printable::brief;
pub(crate) use rules;

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macro declares public rules; these are private to the test")]
mod tests;
