//! Names by language: one file per language, one name per line.
//!
//! The file name without `.txt` is the language. A name may occur in several languages.

use std::path::Path;

use super::error::DataError;
use super::text::{each_filled_line, each_line, read_with};

/// A name and its class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name, with at least one character.
    pub text: String,
    /// The position of the language in [`Names::languages`].
    pub language: u32,
}

/// Names of several languages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// The languages in alphabetical order; positions are class numbers.
    pub languages: Vec<String>,
    /// The names, grouped by language.
    pub names: Vec<Name>,
}

impl Names {
    /// Returns the number of names per language.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.languages.len()];
        for name in &self.names {
            counts[name.language as usize] += 1;
        }
        counts
    }

    /// Adds a language and its names as the next class.
    pub fn add_language(&mut self, language: impl Into<String>, names: impl IntoIterator<Item = String>) {
        let class = self.languages.len() as u32;
        self.languages.push(language.into());
        self.names.extend(names.into_iter().map(|text| Name { text, language: class }));
    }
}

/// Reads the names of one language's file.
pub fn parse(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<String>, DataError> {
    each_line(content.as_ref(), file, |line| match line.text {
        "" => Err(line.error("a name")),
        name => Ok(name.to_owned()),
    })
}

/// Reads names, one per line, and skips blank lines.
///
/// # Errors
/// The bytes are no UTF-8.
pub fn parse_inputs(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<String>, DataError> {
    each_filled_line(content.as_ref(), file, |line| Ok(line.text.to_owned()))
}

/// Reads all `.txt` files of a folder. The languages are in alphabetical order.
pub fn read(folder: impl AsRef<Path>) -> Result<Names, DataError> {
    let folder = folder.as_ref();
    let shown = folder.display().to_string();
    let unreadable =
        |error: std::io::Error| DataError::in_file(&shown, "a readable folder", error.to_string());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "txt")
            && let Some(language) = path.file_stem()
        {
            files.push((language.to_string_lossy().into_owned(), path));
        }
    }
    if files.is_empty() {
        return Err(DataError::in_file(&shown, "files LANGUAGE.txt", "none"));
    }
    files.sort();
    let mut names = Names::default();
    for (language, path) in files {
        names.add_language(language, read_with(&path, |bytes, file| parse(bytes, file))?);
    }
    Ok(names)
}

/// Returns the content of one language's file.
pub fn write(names: &Names, language: u32) -> String {
    names
        .names
        .iter()
        .filter(|name| name.language == language)
        .flat_map(|name| [name.text.as_str(), "\n"])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    #[test]
    fn names_read_back_equal_after_writing() {
        let mut names = Names::default();
        names.add_language("Dutch", parse("Aalst\nvan Dyk\n", "f").unwrap());
        names.add_language("Polish", parse("Żak\n", "f").unwrap());
        assert_eq!(names.counts(), [2, 1]);
        assert_eq!(names.names[2], Name { text: "Żak".to_owned(), language: 1 });
        assert_eq!(write(&names, 0), "Aalst\nvan Dyk\n");
        assert_eq!(write(&names, 1), "Żak\n");
    }

    #[test]
    fn an_empty_line_is_not_a_name() {
        insta::assert_snapshot!(parse("Ab\n\nCd\n", "Dutch.txt").unwrap_err(), @"Dutch.txt:2:1: expected a name, found the end of the line");
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_it() {
        let error = read("no/such/folder").unwrap_err().to_string();
        assert!(error.starts_with("no/such/folder: expected a readable folder, found "), "{error}");
    }

    #[test]
    fn damaged_content_never_panics() {
        survives("Aalst\nŻak\nvan Dyk\n".as_bytes(), |bytes| {
            if let Ok(texts) = parse(bytes, "f") {
                let mut names = Names::default();
                names.add_language("x", texts.clone());
                assert_eq!(parse(write(&names, 0), "f").unwrap(), texts);
            }
        });
    }
}
