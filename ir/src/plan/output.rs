//! The outputs of a plan and their keys.

use super::FieldId;
use crate::graph::text::write::push_text;
use crate::id::ValueId;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::fmt;

/// The key of an output of a plan. It displays as text spells it: `"loss"`, `%12`, `grad %3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputKey {
    /// An output that the graph names.
    Named(SmolStr),
    /// A value that was requested by its id.
    Value(ValueId),
    /// The gradient of a value.
    Gradient(ValueId),
}

impl OutputKey {
    /// The key of an output with a name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::Named(SmolStr::new(name))
    }

    /// The name, if the output has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Value(_) | Self::Gradient(_) => None,
        }
    }

    /// A word or two for tables and file keys: the name without quotes, or `%12`, or `grad %3`.
    #[must_use]
    pub fn label(&self) -> Cow<'_, str> {
        self.name().map_or_else(|| Cow::Owned(self.to_string()), Cow::Borrowed)
    }
}

impl fmt::Display for OutputKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => {
                let mut quoted = String::with_capacity(name.len() + 2);
                push_text(&mut quoted, name);
                f.write_str(&quoted)
            }
            Self::Value(value) => write!(f, "{value}"),
            Self::Gradient(value) => write!(f, "grad {value}"),
        }
    }
}

/// Where an output is found after the plan was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanOutput {
    /// Its kind.
    pub key: OutputKey,
    /// The field that holds it.
    pub field: FieldId,
    /// The row that holds it.
    pub row: u32,
}
