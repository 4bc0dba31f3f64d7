//! [`Refused`]: a question without an answer.

use std::fmt;

/// A question that has no answer, with the reason and a remedy.
#[derive(Clone, PartialEq, Eq)]
pub struct Refused {
    /// The cause.
    pub cause: Cause,
    /// The reason.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

/// The cause of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The question is wrong.
    Question,
    /// The graph, the plan or a file of the policy is wrong.
    File,
}

impl Refused {
    /// A wrong question.
    pub fn question(message: impl Into<String>) -> Self {
        Self { cause: Cause::Question, message: message.into(), help: None }
    }

    /// A wrong graph, plan or file.
    pub fn file(message: impl Into<String>) -> Self {
        Self { cause: Cause::File, message: message.into(), help: None }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "\n= help: {help}"))
    }
}

impl std::error::Error for Refused {}

autobatch_ir::debug_as_display!(Refused);
