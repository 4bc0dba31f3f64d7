//! What a verb answers: an answer with its exit code, or a failure with a remedy.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; or the answer is yes |
//! | 1 | the answer is no: graphs differ, a plan is not proven, an order is not valid |
//! | 2 | the command line does not make sense |
//! | 3 | a file cannot be read, or is not what it should be |
//! | 4 | an output cannot be written |

use std::fmt;

/// How a verb that ran to its end answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done, or yes.
    Yes,
    /// No.
    No,
}

impl Answer {
    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
        }
    }
}

/// Why a verb did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What is wrong, with the name of the file.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// The kinds of failure, each with an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Arguments that do not go together.
    Usage,
    /// A file that cannot be read or is malformed.
    Input,
    /// An output that cannot be written.
    Output,
    /// Whoever reads standard output has stopped reading, which is no one's fault.
    Closed,
}

impl Failure {
    /// Arguments that do not go together.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Usage, message: message.into(), help: None }
    }

    /// A file that cannot be read or is malformed.
    pub fn input(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Input, message: message.into(), help: None }
    }

    /// An output that cannot be written.
    pub fn output(name: &str, error: &std::io::Error) -> Self {
        let message = format!("cannot write {name}: {error}");
        Self { kind: FailureKind::Output, message, help: None }
    }

    /// The failure with a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The exit code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self.kind {
            FailureKind::Closed => 0,
            FailureKind::Usage => 2,
            FailureKind::Input => 3,
            FailureKind::Output => 4,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Errors of texts bring their own heading, excerpt and remedy.
        let heading = if self.message.starts_with("error: ") { "" } else { "error: " };
        write!(f, "{heading}{}", self.message.trim_end())?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "\n  = help: {help}"))
    }
}

impl std::error::Error for Failure {}

impl From<autobatch_models::catalogue::OpenError> for Failure {
    fn from(error: autobatch_models::catalogue::OpenError) -> Self {
        use autobatch_models::catalogue::OpenError;
        match &error {
            OpenError::Unknown(_) | OpenError::Size { .. } | OpenError::NoFile(_) => {
                Self::usage(error.to_string())
            }
            OpenError::NoInstances { .. } | OpenError::Data(_) | OpenError::Emit(_) => {
                Self::input(error.to_string())
            }
        }
    }
}

/// A step that was not made, a checkpoint that was not taken: the message says what to do.
impl From<autobatch::Error> for Failure {
    fn from(error: autobatch::Error) -> Self {
        Self::input(error.to_string())
    }
}

/// Writing to standard output.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => {
                Self { kind: FailureKind::Closed, message: error.to_string(), help: None }
            }
            _ => Self::output("standard output", &error),
        }
    }
}
