//! Policies by name: what a command line or a configuration file says.
//!
//! `FromStr` and `Display` are inverse to each other. Parsing touches no file; [`Policy::load`] does, where a policy needs one.

use super::{
    Agenda, Auto, Beam, CostError, CostTable, Depth, Fsm, FsmError, Mean, Ratio, Schedule, Table, Unbatched,
};
use autobatch_ir::files::read_text_at_most;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The largest beam width that a name may ask for.
pub(super) const WIDEST: u32 = 4096;
/// The longest table of `fsm`; those of large models have some hundred thousand bytes.
const MOST_BYTES: u64 = 1 << 28;

/// A policy as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `none`
    Unbatched,
    /// `depth`
    Depth,
    /// `agenda` or `agenda:remaining`
    Agenda(Mean),
    /// `ratio`
    Ratio,
    /// `beam:8`; `beam` alone means width 8.
    Beam(u32),
    /// `fsm:table.json`
    Fsm(PathBuf),
    /// `auto`
    #[default]
    Auto,
}

impl Policy {
    /// The spellings that are understood, with examples for the parts that vary.
    pub const SPELLINGS: [&'static str; 8] =
        ["none", "depth", "agenda", "agenda:remaining", "ratio", "beam:8", "fsm:table.json", "auto"];

    /// Makes the policy; reads the table of `fsm`, and for `auto` the cost table that `AUTOBATCH_COSTS` names, if it is set.
    pub fn load(&self) -> Result<Box<dyn Schedule + Send + Sync>, LoadError> {
        Ok(match self {
            Self::Unbatched => Box::new(Unbatched),
            Self::Depth => Box::new(Depth),
            Self::Agenda(mean) => Box::new(Agenda { mean: *mean }),
            Self::Ratio => Box::new(Ratio),
            Self::Beam(width) => Box::new(Beam { width: *width, ..Beam::default() }),
            Self::Fsm(file) => {
                let text = read_text_at_most(file, MOST_BYTES)
                    .map_err(|error| LoadError::Read { file: file.clone(), error })?;
                let table = Table::from_json(&text)
                    .map_err(|error| LoadError::Table { file: file.clone(), error })?;
                Box::new(Fsm { table })
            }
            Self::Auto => {
                let costs = CostTable::from_env().map_err(LoadError::Costs)?;
                Box::new(Auto { costs, ..Auto::default() })
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
            ("none", None) => Ok(Self::Unbatched),
            ("depth", None) => Ok(Self::Depth),
            ("agenda", None) => Ok(Self::Agenda(Mean::All)),
            ("agenda", Some("remaining")) => Ok(Self::Agenda(Mean::Remaining)),
            ("ratio", None) => Ok(Self::Ratio),
            ("beam", None) => Ok(Self::Beam(Beam::default().width)),
            ("beam", Some(width)) => match width.parse() {
                Ok(width @ 1..=WIDEST) => Ok(Self::Beam(width)),
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
            Self::Unbatched => write!(f, "none"),
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

/// A text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePolicyError {
    found: String,
}

impl fmt::Display for ParsePolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spellings = Policy::SPELLINGS.join(", ");
        write!(
            f,
            "unknown batching policy `{}`: expected one of {spellings} (beam width 1 to {WIDEST})",
            self.found
        )
    }
}

impl std::error::Error for ParsePolicyError {}

/// Why a policy cannot be made.
#[derive(Debug)]
pub enum LoadError {
    /// The table's file cannot be read.
    Read {
        /// The file.
        file: PathBuf,
        /// What went wrong.
        error: std::io::Error,
    },
    /// The file holds no table.
    Table {
        /// The file.
        file: PathBuf,
        /// What went wrong.
        error: FsmError,
    },
    /// The cost table is none.
    Costs(CostError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { file, error } => {
                write!(f, "policy fsm: cannot read {}: {error}; check the path", file.display())
            }
            Self::Table { file, error } => write!(f, "policy fsm: {}: {error}", file.display()),
            Self::Costs(error) => write!(f, "policy auto: {error}"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { error, .. } => Some(error),
            Self::Table { error, .. } => Some(error),
            Self::Costs(error) => Some(error),
        }
    }
}
