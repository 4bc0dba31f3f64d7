//! Words of commands that reports print.

/// The word, in quotation marks if a shell would split or expand it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_split_are_quoted() {
        assert_eq!(quoted("a/b.abg"), "a/b.abg");
        assert_eq!(quoted("my folder/it's"), r"'my folder/it'\''s'");
    }
}
