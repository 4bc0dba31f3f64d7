//! What went wrong while a model emitted, at the line where it did.

use crate::graph::site::Site;
use std::fmt;

/// The first fault of a graph or module.
///
/// Faults are sticky: the first is kept, later values are poison and record nothing, and whatever
/// consumes the graph returns the error. So model code needs no `?` after every `+`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmitError(Box<Fault>);

/// What an [`EmitError`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The op or method that refused.
    pub op: String,
    /// What was expected and found.
    pub message: String,
    /// The user's line.
    pub site: Site,
    /// The operands, as `%3: f32[128]`.
    pub operands: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
    /// Where in the model: the cell being traced, or the instance being emitted.
    pub context: String,
}

impl From<Fault> for EmitError {
    fn from(fault: Fault) -> Self {
        Self(Box::new(fault))
    }
}

impl std::ops::Deref for EmitError {
    type Target = Fault;
    fn deref(&self) -> &Fault {
        &self.0
    }
}

impl Fault {
    /// The line of source the error speaks of, if its file can be read here. Compilers name files
    /// from the root of a workspace, programs run below it: so folders above are tried too.
    fn source_line(&self) -> Option<String> {
        let here = std::env::current_dir().ok()?;
        let mut candidates = here.ancestors().take(4).map(|folder| folder.join(&self.site.file));
        let text = candidates.find_map(|path| std::fs::read_to_string(path).ok())?;
        let line = text.lines().nth(self.site.line.checked_sub(1)? as usize)?;
        Some(line.to_owned())
    }
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.op, self.message)?;
        writeln!(f, "  --> {}", self.site)?;
        if let Some(line) = self.source_line() {
            let column = (self.site.column as usize).saturating_sub(1);
            let indent = line.len() - line.trim_start().len();
            let caret = column.saturating_sub(indent);
            writeln!(f, "   |   {}", line.trim())?;
            writeln!(f, "   |   {:caret$}^", "")?;
        }
        if !self.operands.is_empty() {
            writeln!(f, "   = operands: {}", self.operands.join(", "))?;
        }
        if let Some(help) = &self.help {
            writeln!(f, "   = help: {help}")?;
        }
        write!(f, "   = {}", self.context)
    }
}

impl std::error::Error for EmitError {}
