//! Errors of text: message, place and advice.

use crate::printable::is_printable;
use std::fmt;
use std::ops::Range;

/// The reason why a text is not a valid graph, module or plan.
///
/// [`Display`](fmt::Display) shows the line with a caret. The error contains that line, so it can outlive the text.
#[derive(Clone, PartialEq, Eq)]
pub struct ParseError(Box<Flaw>);

/// The content of a [`ParseError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The faulty bytes of the text.
    pub span: Range<usize>,
    /// The expected and the found thing.
    pub message: String,
    /// The label at the caret.
    pub label: String,
    /// How to fix it.
    pub help: Option<String>,
    /// The name of the file, if [`in_file`](ParseError::in_file) set it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    excerpt: Excerpt,
}

/// A part of one line, with the indent and the length of the caret.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    shown: String,
    indent: usize,
    carets: usize,
}

/// A flaw before its excerpt is cut. The parser returns it; the caller builds the [`ParseError`].
#[derive(Debug)]
pub(crate) struct TextProblem {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) help: Option<String>,
}

/// The result of a grammar rule.
pub(crate) type Parsed<T> = Result<T, Box<TextProblem>>;

impl TextProblem {
    #[cold]
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>, label: impl Into<String>) -> Box<Self> {
        Box::new(Self { span, message: message.into(), label: label.into(), help: None })
    }

    #[cold]
    pub(crate) fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<Self> {
        self.help = Some(help.into());
        self
    }

    /// Adds the help "did you mean", or other help if nothing is near.
    #[cold]
    pub(crate) fn suggest(self: Box<Self>, near: Option<String>, otherwise: impl Into<String>) -> Box<Self> {
        match near {
            Some(near) => self.help(format!("did you mean {near}?")),
            None => self.help(otherwise),
        }
    }
}

impl ParseError {
    #[cold]
    pub(crate) fn new(text: &[u8], problem: TextProblem) -> Self {
        let TextProblem { span, message, label, help } = problem;
        let start = span.start.min(text.len());
        let before = &text[..start];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(&text[line_start..start]).chars().count() + 1;
        let excerpt = Excerpt::cut(text, line_start, start..span.end.max(start));
        Self(Box::new(Flaw { span, message, label, help, file: None, line, column, excerpt }))
    }

    /// The error with the name of the file.
    #[must_use]
    pub fn in_file(mut self, name: impl Into<String>) -> Self {
        self.0.file = Some(name.into());
        self
    }
}

impl Excerpt {
    /// The number of characters of a long line before the caret; twice as many follow it.
    const REACH: usize = 50;

    fn cut(text: &[u8], line_start: usize, span: Range<usize>) -> Self {
        let line_end = text[span.start..].iter().position(|&byte| byte == b'\n');
        let line_end = line_end.map_or(text.len(), |length| span.start + length);
        let from = span.start.saturating_sub(Self::REACH).max(line_start);
        let to = (span.start + 2 * Self::REACH).min(line_end);
        let show = |part: &[u8]| String::from_utf8_lossy(part).replace(|c: char| !is_printable(c), " ");
        let left = show(&text[from..span.start]);
        let marked = show(&text[span.start..span.end.clamp(span.start, to)]);
        let right = show(&text[span.end.clamp(span.start, to)..to]);
        let head = if from > line_start { "..." } else { "" };
        let tail = if to < line_end { "..." } else { "" };
        Self {
            indent: head.len() + left.chars().count(),
            carets: marked.chars().count().max(1),
            shown: format!("{head}{left}{marked}{right}{tail}").trim_end().to_owned(),
        }
    }
}

impl std::ops::Deref for ParseError {
    type Target = Flaw;
    fn deref(&self) -> &Flaw {
        &self.0
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flaw { span: _, message, label, help, file, line, column, excerpt } = &*self.0;
        let Excerpt { shown, indent, carets } = excerpt;
        let margin = line.to_string().len();
        writeln!(f, "error: {message}")?;
        writeln!(f, "{:margin$}--> {}:{line}:{column}", "", file.as_deref().unwrap_or("text"))?;
        writeln!(f, "{:margin$} |", "")?;
        writeln!(f, "{line} |{}{shown}", if shown.is_empty() { "" } else { " " })?;
        write!(f, "{:margin$} | {:indent$}{:^<carets$} {label}", "", "", "")?;
        match help {
            Some(help) => write!(f, "\n{:margin$} = help: {help}", ""),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}

crate::debug_as_display!(ParseError);

/// The candidate closest to a misspelt word, if one is close.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + word.chars().count() / 4;
    let near = candidates.filter_map(|candidate| {
        let apart = distance(word, candidate);
        let alike = apart <= limit && apart < word.len().min(candidate.len());
        alike.then_some((apart, candidate))
    });
    near.min().map(|(_, candidate)| candidate)
}

/// The edit distance of two words; infinite for long words.
fn distance(a: &str, b: &str) -> usize {
    const MAX_LENGTH: usize = 64;
    if a.len() > MAX_LENGTH || b.len() > MAX_LENGTH {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
#[path = "tests/error.rs"]
mod tests;
