//! The library: declarations by name, and the transitive closure of the ones in a text.

use crate::{EXACT, FUNCTIONS, Joins, LANE, NATIVE, Numbers, THREAD, Template};
use std::collections::BTreeMap;

/// Declarations by name: functions, structs and variables in group memory.
#[derive(Clone, Debug)]
pub struct Library {
    items: BTreeMap<&'static str, &'static str>,
    joins: Joins,
    numbers: Numbers,
}

impl Library {
    /// The library with native or exact arithmetic.
    #[must_use]
    pub fn new(exact: bool, joins: Joins) -> Self {
        let arithmetic = if exact { EXACT } else { NATIVE };
        let files = FUNCTIONS.into_iter().chain([arithmetic]).chain(joins.files().iter().copied());
        Self { items: files.flat_map(declarations).collect(), joins, numbers: Numbers::Uniform }
    }

    /// The same, with arguments of dispatches that arrive in this way.
    #[must_use]
    pub fn with(self, numbers: Numbers) -> Self {
        Self { numbers, ..self }
    }

    /// A module: the head, the library functions that it uses, sorted by name, and the template with its holes filled.
    #[must_use]
    pub fn module(&self, template: Template, memory: &str, holes: &[(&str, &str)]) -> String {
        let thread = fill(&fill(template.text, "lane", LANE), "thread", THREAD);
        let main = holes.iter().fold(thread, |text, (hole, with)| fill(&text, hole, with));
        // The head accesses memory. A template without a head does so itself.
        let main = fill(&main, "memory", memory);
        let main = fill(&main, "thread_of_group", self.joins.builtins());
        let main = fill(&main, "number_of_thread", self.joins.number());
        let access = fill(template.access.text(), "numbers", self.numbers.declaration());
        let mut module = fill(&access, "memory", memory);
        for text in self.closure(&main).values() {
            module.push('\n');
            module.push_str(text);
            module.push('\n');
        }
        module.push('\n');
        module.push_str(&main);
        module
    }

    /// The names of all declarations.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.items.keys().copied()
    }

    fn closure(&self, text: &str) -> BTreeMap<&'static str, &'static str> {
        let mut found = BTreeMap::new();
        let mut open: Vec<(&'static str, &'static str)> = Vec::new();
        let mention = |text: &str, open: &mut Vec<(&'static str, &'static str)>| {
            let names = words(text).filter_map(|word| self.items.get_key_value(word));
            open.extend(names.map(|(&name, &text)| (name, text)));
        };
        mention(text, &mut open);
        while let Some((name, text)) = open.pop() {
            if found.insert(name, text).is_none() {
                mention(text, &mut open);
            }
        }
        found
    }
}

/// The words of a text that may be names, without comments.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or(""));
    code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .filter(|word| !word.is_empty())
}

/// A text with a hole filled.
fn fill(text: &str, hole: &str, with: &str) -> String {
    let mark = format!("//~ {hole}\n");
    text.replace(&mark, with)
}

/// A part of a body: holes are filled, and `{name}` is replaced by a word.
#[must_use]
pub fn fragment(text: &str, words: &[(&str, String)], holes: &[(&str, String)]) -> String {
    let filled = holes.iter().fold(text.to_owned(), |text, (hole, with)| fill(&text, hole, with));
    words.iter().fold(filled, |text, (name, word)| text.replace(&format!("{{{name}}}"), word))
}

/// The top-level declarations of a file by name. Each starts at the margin with `fn`, `struct` or `var` and ends there
/// with `}` or `;`.
fn declarations(file: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut open: Option<(&'static str, usize)> = None;
    for line in file.split_inclusive('\n') {
        let end = at + line.len();
        if open.is_none() {
            open = name_of(line).map(|name| (name, at));
        }
        let closes = line.starts_with('}') || (line.starts_with("var") && line.trim_end().ends_with(';'));
        if closes && let Some((name, start)) = open.take() {
            found.push((name, file[start..end].trim_end()));
        }
        at = end;
    }
    found
}

/// The name that a line at the margin declares.
fn name_of(line: &'static str) -> Option<&'static str> {
    let rest = line
        .strip_prefix("fn ")
        .or_else(|| line.strip_prefix("struct "))
        .or_else(|| line.strip_prefix("var<workgroup> "))?;
    rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests;
