//! The language of the project: retired words and retired openings of sentences.
//!
//! Each retired word has a replacement. The rule reads comments, messages, names and pages alike, so an
//! identifier cannot hide a retired word.

use super::Source;

/// A retired word and its replacement. An identifier counts as the words between its underscores.
pub type Retired = (&'static str, &'static str);

/// Returns a complaint for every retired word in the sources. Skips the `exempt` paths.
#[must_use]
pub fn retired_words(sources: &[Source], retired: &[Retired], exempt: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| !exempt.contains(&source.path.as_str())) {
        for (number, line) in source.lines() {
            let words = words_of(line);
            for (word, replacement) in retired {
                if words.contains(&format!(" {word} ")) {
                    let path = &source.path;
                    complaints.push(format!("{path}:{number}: {word:?} is retired; write {replacement}"));
                }
            }
        }
    }
    complaints
}

/// Returns a complaint for every comment or paragraph of a page that opens with one of the `openings`.
#[must_use]
pub fn retired_openings(sources: &[Source], openings: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources {
        let is_page = source.path.ends_with(".md");
        let mut starts = true;
        for (number, line) in source.lines() {
            let comment = comment_of(line);
            let Some(text) = (if is_page { Some(line.trim()) } else { comment }) else {
                starts = true;
                continue;
            };
            if starts && let Some(opening) = openings.iter().find(|&&opening| opens_with(text, opening)) {
                let path = &source.path;
                complaints.push(format!(
                    "{path}:{number}: opens with {opening:?}; begin with the thing or its action"
                ));
            }
            starts = text.is_empty();
        }
    }
    complaints
}

/// Returns the text of a comment line.
fn comment_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["///", "//!", "//"].iter().find_map(|marker| line.strip_prefix(marker)).map(str::trim)
}

fn opens_with(text: &str, opening: &str) -> bool {
    text.strip_prefix(opening).is_some_and(|rest| rest.starts_with(' '))
}

/// Returns the lower-case words of a line, each between two spaces. Camel case and underscores separate words.
/// Punctuation marks count as words, so `bound, number` does not match a phrase.
fn words_of(line: &str) -> String {
    let mut words = String::from(" ");
    let mut previous = ' ';
    for letter in line.chars() {
        let is_word = letter.is_alphanumeric();
        let parts_words = !is_word || (letter.is_uppercase() && previous.is_lowercase());
        if parts_words && !words.ends_with(' ') {
            words.push(' ');
        }
        match letter {
            _ if is_word => words.extend(letter.to_lowercase()),
            '_' | '-' | ' ' => {}
            _ => words.push_str(". "),
        }
        previous = letter;
    }
    words.push(' ');
    words
}
