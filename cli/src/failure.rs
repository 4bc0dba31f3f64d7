//! Results of verbs: an answer with its exit code, or a failure with a remedy.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | success, or the answer is yes |
//! | 1 | the answer is no: graphs differ, a plan is not proven, an order is not valid |
//! | 2 | usage error |
//! | 3 | a file cannot be read or is malformed |
//! | 4 | an output cannot be written |
//! | 130 | training was interrupted |

use autobatch::train::CheckpointError;
use autobatch_inspector::{Cause, Refused};
use autobatch_ir::files::write_remedy;
use autobatch_ir::printable::{printable, shortened};
use std::fmt;

/// The most characters of a message.
const MAX_MESSAGE: usize = 4000;

/// The answer of a verb that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Success, or yes.
    Yes,
    /// No.
    No,
    /// A signal stopped the verb.
    Interrupted,
}

impl Answer {
    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::Interrupted => 130,
        }
    }
}

/// An error that stopped a verb.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure; it determines the exit code.
    pub kind: FailureKind,
    /// The error, with the name of the file.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

/// The kinds of failure, each with an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Usage error: unknown or incompatible options.
    Usage,
    /// A file that cannot be read or is malformed.
    Input,
    /// An output that cannot be written.
    Output,
    /// The reader of standard output closed the pipe. This is not an error.
    Closed,
}

impl Failure {
    /// A usage error: unknown or incompatible options.
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
        Self { kind: FailureKind::Output, message, help: Some(output_help(name, error).to_owned()) }
    }

    /// Adds a remedy.
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

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let kind = match refused.cause {
            Cause::Question => FailureKind::Usage,
            Cause::File => FailureKind::Input,
        };
        Self { kind, message: refused.message, help: refused.help }
    }
}

/// The remedy for an output that cannot be written.
fn output_help(name: &str, error: &std::io::Error) -> &'static str {
    if std::path::Path::new(name).is_dir() {
        "this is a folder; name a file in it"
    } else {
        write_remedy(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Parse errors of text forms contain their own heading, excerpt and remedy.
        let heading = if self.message.starts_with("error: ") { "" } else { "error: " };
        // A message may quote a file, which may hold anything and be long.
        let quoted = |text: &str| shortened(&printable(text), MAX_MESSAGE).into_owned();
        write!(f, "{heading}{}", quoted(self.message.trim_end()))?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "\n  = help: {}", quoted(help)))
    }
}

impl std::error::Error for Failure {}

autobatch_ir::debug_as_display!(Failure);

impl From<autobatch_models::catalogue::OpenError> for Failure {
    fn from(error: autobatch_models::catalogue::OpenError) -> Self {
        use autobatch_models::catalogue::OpenError;
        match &error {
            OpenError::Unknown(_)
            | OpenError::Size { .. }
            | OpenError::NoFile(_)
            | OpenError::NoLesson(_) => Self::usage(error.to_string()),
            OpenError::Corpus { entry, .. } => Self::input(error.to_string()).help(format!(
                "model {} reads a folder with {} ({}); `autobatch models` lists all corpora",
                entry.name, entry.corpus.files, entry.corpus.name
            )),
            OpenError::NoInstances { .. }
            | OpenError::Data(_)
            | OpenError::Emit(_)
            | OpenError::Instance { .. }
            | OpenError::Specification(_) => Self::input(error.to_string()),
        }
    }
}

impl From<autobatch_bench::BenchError> for Failure {
    fn from(error: autobatch_bench::BenchError) -> Self {
        use autobatch::Error;
        use autobatch_bench::BenchError;
        match error {
            BenchError::Open(error) => error.into(),
            BenchError::Step(Error::Io { path, error }) => Self::output(&path.to_string_lossy(), &error),
            BenchError::Step(Error::Checkpoint(error @ CheckpointError::Io { .. })) => {
                Self { kind: FailureKind::Output, ..Self::input(error.to_string()) }
            }
            BenchError::Step(error @ Error::Policy(_)) => Self::usage(error.to_string()),
            BenchError::Step(error) => error.into(),
            BenchError::NoInstances => Self::input(error.to_string()),
            _ => Self::usage(error.to_string()),
        }
    }
}

/// A training step or checkpoint that failed; the message contains the remedy.
impl From<autobatch::Error> for Failure {
    fn from(error: autobatch::Error) -> Self {
        if is_of_options(&error) { Self::usage(error.to_string()) } else { Self::input(error.to_string()) }
    }
}

/// Whether an option of the command line causes an error: a policy, a device, a limit, or an argument of an optimiser.
fn is_of_options(error: &autobatch::Error) -> bool {
    use autobatch::Error;
    use autobatch::runtime_cpu::RunError;
    match error {
        Error::Policy(_) | Error::Device(_) | Error::Run(RunError::Limit(_)) => true,
        #[cfg(feature = "gpu")]
        Error::Gpu(autobatch::runtime_wgpu::GpuError::NoAdapter { .. }) => true,
        _ => false,
    }
}

/// An error of writing to standard output.
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
