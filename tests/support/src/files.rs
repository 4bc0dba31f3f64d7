//! File tests: graphs in text form with a snapshot beside each.
//!
//! Lines `! NAME WORD...` of a file are directives to its test. They are no part of the graph, whose comments begin with
//! `;`. A directive that the test does not know is an error, so that no misspelled one goes unnoticed.

use autobatch_ir::GraphData;
use insta::Settings;
use std::path::Path;

/// A graph of a file, with its directives.
#[derive(Debug)]
pub struct GraphFile {
    /// The graph, which follows the rules.
    pub graph: GraphData,
    /// The words of each directive, first its name.
    directives: Vec<Vec<String>>,
}

impl GraphFile {
    /// Reads a file whose directives have some of the `known` names.
    ///
    /// # Panics
    /// If the file holds no such graph, or a directive with another name.
    #[must_use]
    pub fn read(path: &Path, known: &[&str]) -> Self {
        let text = std::fs::read_to_string(path).expect("the file is readable");
        Self::parse(&text, known).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// If it has a directive with an unknown name, or holds no graph that follows the rules.
    pub fn parse(text: &str, known: &[&str]) -> Result<Self, String> {
        let mut directives: Vec<Vec<String>> = Vec::new();
        for line in text.lines().filter_map(|line| line.strip_prefix('!')) {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            match words.first() {
                Some(name) if known.contains(&name.as_str()) => directives.push(words),
                _ => {
                    return Err(format!("unknown directive `!{line}`: expected one of {}", known.join(", ")));
                }
            }
        }
        // An empty line in place of a directive keeps the numbers of lines.
        let without = |line: &str| if line.starts_with('!') { String::new() } else { line.to_owned() };
        let graph: Vec<String> = text.lines().map(without).collect();
        let graph = GraphData::from_text(graph.join("\n")).map_err(|error| error.to_string())?;
        graph.verify().map_err(|errors| errors.to_string())?;
        Ok(Self { graph, directives })
    }

    /// The words behind the name of each directive with this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [String]> {
        self.directives.iter().filter(move |words| words[0] == name).map(|words| &words[1..])
    }

    /// The words behind the name of the first directive with this name.
    #[must_use]
    pub fn directive<'a>(&'a self, name: &'a str) -> Option<&'a [String]> {
        self.all(name).next()
    }

    /// The first word behind the name of a directive.
    ///
    /// # Panics
    /// If the directive has none.
    #[must_use]
    pub fn word<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.directive(name).map(|words| words.first().expect("the directive has a word").as_str())
    }
}

/// Compares a text with the snapshot beside the input file, which has the name of the file.
///
/// # Panics
/// If the text differs from the snapshot.
pub fn assert_snapshot_beside(path: &Path, shown: &str) {
    let name = path.file_stem().and_then(|name| name.to_str()).expect("text");
    assert_snapshot_in(path.parent().expect("a file has a folder"), name, shown);
}

/// Compares a text with a snapshot of a folder.
///
/// # Panics
/// If the text differs from the snapshot.
pub fn assert_snapshot_in(folder: &Path, name: &str, shown: &str) {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.remove_snapshot_suffix();
    settings.remove_input_file();
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str =
        "autobatch graph 2\nmodule \"m\"\ngraph\n  %0 = input f32[1] (#[1.0])\noutput \"a\" %0\n";

    #[test]
    fn directives_are_no_comments_and_have_known_names() {
        let file = GraphFile::parse(
            &format!("; policy none\n! policy depth\n! want %1 %2\n{GRAPH}"),
            &["policy", "want"],
        );
        let file = file.expect("the file is well formed");
        assert_eq!(
            (file.word("policy"), file.directive("want").map(<[String]>::len)),
            (Some("depth"), Some(2))
        );
        assert!(file.directive("rows").is_none());
        let error = GraphFile::parse(&format!("! polcy depth\n{GRAPH}"), &["policy"]).unwrap_err();
        assert_eq!(error, "unknown directive `! polcy depth`: expected one of policy");
    }
}
