//! Policies by name, for command lines and configuration files.
//!
//! `FromStr` and `Display` are inverse to each other. Parsing reads no file; [`Policy::load`] reads the files of a policy.

use super::costs::MAX_WIDTH;
use super::{
    Agenda, Auto, Beam, CostError, CostTable, Depth, Fsm, FsmError, Mean, Ratio, Schedule, Table, Unbatched,
};
use autobatch_ir::files::read_text_at_most;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Largest table file of `fsm`. Tables of large models have some hundred thousand bytes.
const MAX_BYTES: u64 = 1 << 28;

/// The name of a policy, with its argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `none`: every node alone.
    None,
    /// `depth`
    Depth,
    /// `agenda` or `agenda:remaining`
    Agenda(Mean),
    /// `ratio`
    Ratio,
    /// `beam:8`. Plain `beam` has width 8.
    Beam(u32),
    /// `fsm:FILE`, with the path of a table.
    Fsm(PathBuf),
    /// `auto`
    #[default]
    Auto,
}

impl Policy {
    /// All spellings. `beam:8` shows an example of its argument, and `FILE` stands for the path of a table.
    pub const SPELLINGS: [&'static str; 8] =
        ["none", "depth", "agenda", "agenda:remaining", "ratio", "beam:8", "fsm:FILE", "auto"];

    /// The policies that need no file, from the simplest on, for comparisons with [`Auto`](Self::Auto).
    #[must_use]
    pub fn standard() -> [Self; 5] {
        [Self::None, Self::Depth, Self::Agenda(Mean::All), Self::Ratio, Self::Beam(8)]
    }

    /// Makes the policy. Reads the table of `fsm`, and for `auto` the cost table of `AUTOBATCH_COSTS` if that is set.
    ///
    /// # Errors
    /// If a file cannot be read or has the wrong form.
    pub fn load(&self) -> Result<Box<dyn Schedule + Send + Sync>, LoadError> {
        Ok(match self {
            Self::None => Box::new(Unbatched),
            Self::Depth => Box::new(Depth),
            Self::Agenda(mean) => Box::new(Agenda { mean: *mean }),
            Self::Ratio => Box::new(Ratio),
            Self::Beam(width) => Box::new(Beam { width: *width, ..Beam::default() }),
            Self::Fsm(file) => {
                let text = read_text_at_most(file, MAX_BYTES)
                    .map_err(|error| LoadError::Read { file: file.clone(), error })?;
                let table = Table::from_json(&text)
                    .map_err(|error| LoadError::Table { file: file.clone(), error })?;
                Box::new(Fsm { table })
            }
            Self::Auto => {
                let costs = CostTable::from_env().map_err(LoadError::Costs)?;
                Box::new(Auto { costs })
            }
        })
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, ParsePolicyError> {
        let unknown = || ParsePolicyError { found: text.to_owned() };
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        match (name, argument) {
            ("none", None) => Ok(Self::None),
            ("depth", None) => Ok(Self::Depth),
            ("agenda", None) => Ok(Self::Agenda(Mean::All)),
            ("agenda", Some("remaining")) => Ok(Self::Agenda(Mean::Remaining)),
            ("ratio", None) => Ok(Self::Ratio),
            ("beam", None) => Ok(Self::Beam(Beam::default().width)),
            ("beam", Some(width)) => match width.parse() {
                Ok(width @ 1..=MAX_WIDTH) => Ok(Self::Beam(width)),
                _ => Err(unknown()),
            },
            ("fsm", Some(file)) if !file.is_empty() => Ok(Self::Fsm(PathBuf::from(file))),
            ("auto", None) => Ok(Self::Auto),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::Depth => write!(f, "depth"),
            Self::Agenda(Mean::All) => write!(f, "agenda"),
            Self::Agenda(Mean::Remaining) => write!(f, "agenda:remaining"),
            Self::Ratio => write!(f, "ratio"),
            Self::Beam(width) => write!(f, "beam:{width}"),
            Self::Fsm(file) => write!(f, "fsm:{}", file.display()),
            Self::Auto => write!(f, "auto"),
        }
    }
}

/// The error for a text that is not a policy.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown batching policy `{found}`: expected one of {} (beam width 1 to {})",
    Policy::SPELLINGS.join(", "),
    MAX_WIDTH
)]
pub struct ParsePolicyError {
    found: String,
}

autobatch_ir::debug_as_display!(ParsePolicyError);

/// The reason why a policy cannot be made.
#[derive(thiserror::Error)]
pub enum LoadError {
    /// The file of the table cannot be read.
    #[error("policy fsm: cannot read {}: {error}; check the path", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        error: std::io::Error,
    },
    /// The file is not a table.
    #[error("policy fsm: {}: {error}", .file.display())]
    Table {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        error: FsmError,
    },
    /// The cost table is invalid.
    #[error("policy auto: {0}")]
    Costs(#[source] CostError),
}

autobatch_ir::debug_as_display!(LoadError);
