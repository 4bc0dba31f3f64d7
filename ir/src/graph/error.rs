//! Errors of emitting, with the source line of the faulty call.

use crate::graph::site::Site;
use std::fmt;

/// The first fault of a graph or module.
///
/// Faults are sticky: the graph stores the first one, and later values are poison and record
/// nothing. Functions that consume the graph return the error, so model code needs no `?`.
#[derive(Clone, PartialEq, Eq)]
pub struct EmitError(Box<Fault>);

/// The content of an [`EmitError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The op or method that failed.
    pub op: String,
    /// The expected and the found thing.
    pub message: String,
    /// The source line of the call.
    pub site: Site,
    /// The operands, as `%3: f32[128]`.
    pub operands: Vec<String>,
    /// How to fix it.
    pub help: Option<String>,
    /// The cell being traced or the instance being emitted.
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
    /// The text of the source line, if its file is readable. The compiler names files relative to the
    /// workspace root, and a program may run in a folder below it, so parent folders are tried too.
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

crate::debug_as_display!(EmitError);
