//! The lexer: it reads one token at a time and does not allocate. A token is a kind and a span.
//!
//! Line breaks have no meaning. White space and comments (`;` or `//` to the end of the line) separate
//! tokens. Invalid input becomes a token of a *bad* kind, which no grammar rule accepts, so the parser
//! reports it at its place. Graphs and plans use the same tokens.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword, an op, an attribute, an element type.
    Word,
    /// `%name`
    Value,
    /// `@name`
    At,
    /// `!7`
    Site,
    /// `#`
    Hash,
    /// A word that begins like a number. The grammar rule that reads it checks it.
    Number,
    /// `"..."`
    Text,
    /// One of `= , : ( ) [ ] { } | + * .`, or [`TO`], [`FROM`], [`THROUGH`].
    Mark(u8),
    /// After the last byte.
    End,
    /// A string without a closing quote on its line.
    OpenText,
    /// A sigil without a name.
    Nameless,
    /// A character that begins no token.
    Stray,
}

/// The mark `->`.
pub(crate) const TO: u8 = b'>';
/// The mark `<-`.
pub(crate) const FROM: u8 = b'<';
/// The mark `..`.
pub(crate) const THROUGH: u8 = b'~';

/// The spelling of a mark.
pub(crate) fn mark_spelling(mark: u8) -> String {
    match mark {
        TO => "->".to_owned(),
        FROM => "<-".to_owned(),
        THROUGH => "..".to_owned(),
        single => char::from(single).to_string(),
    }
}

/// A kind with the range of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Whether names may contain a byte.
#[inline]
pub(crate) const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The end of the run of bytes that `belongs` accepts.
#[inline]
fn run(text: &[u8], from: usize, belongs: impl Fn(u8) -> bool) -> usize {
    text[from..].iter().position(|&byte| !belongs(byte)).map_or(text.len(), |length| from + length)
}

/// The token at or after `from`. The text must be shorter than 4 GiB.
#[inline]
pub(crate) fn token(text: &[u8], from: usize) -> Token {
    let start = skip(text, from);
    let Some(&first) = text.get(start) else { return spanned(Kind::End, start, start) };
    match first {
        b'%' => named(text, start, Kind::Value),
        b'@' => named(text, start, Kind::At),
        b'!' => named(text, start, Kind::Site),
        b'=' | b',' | b':' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'|' | b'*' => {
            spanned(Kind::Mark(first), start, start + 1)
        }
        b'-' | b'<' | b'.' | b'+' => match (first, text.get(start + 1)) {
            (b'-', Some(b'>')) => spanned(Kind::Mark(TO), start, start + 2),
            (b'<', Some(b'-')) => spanned(Kind::Mark(FROM), start, start + 2),
            (b'.', Some(b'.')) => spanned(Kind::Mark(THROUGH), start, start + 2),
            (b'<', _) => spanned(Kind::Stray, start, start + 1),
            (b'.', Some(next)) if next.is_ascii_digit() => {
                spanned(Kind::Number, start, number_end(text, start))
            }
            (b'.', _) => spanned(Kind::Mark(b'.'), start, start + 1),
            (b'+', Some(&next)) if is_word(next) || next == b'.' => {
                spanned(Kind::Number, start, number_end(text, start))
            }
            (b'+', _) => spanned(Kind::Mark(b'+'), start, start + 1),
            _ => spanned(Kind::Number, start, number_end(text, start)),
        },
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => spanned(Kind::Word, start, run(text, start, is_word)),
        b'0'..=b'9' => spanned(Kind::Number, start, number_end(text, start)),
        b'#' => spanned(Kind::Hash, start, start + 1),
        b'"' => quoted(text, start),
        _ => spanned(Kind::Stray, start, run(text, start + 1, |byte| byte & 0xc0 == 0x80)),
    }
}

fn spanned(kind: Kind, start: usize, end: usize) -> Token {
    Token { kind, start: start as u32, end: end as u32 }
}

#[inline]
fn skip(text: &[u8], mut at: usize) -> usize {
    loop {
        match text.get(at) {
            Some(b' ' | b'\n' | b'\t' | b'\r') => at += 1,
            Some(b';') => at = run(text, at, |byte| byte != b'\n'),
            Some(b'/') if text.get(at + 1) == Some(&b'/') => at = run(text, at, |byte| byte != b'\n'),
            _ => return at,
        }
    }
}

#[inline]
fn named(text: &[u8], start: usize, kind: Kind) -> Token {
    let end = run(text, start + 1, is_name);
    spanned(if end == start + 1 { Kind::Nameless } else { kind }, start, end)
}

/// The end of a number: digits, letters, single points, and a sign at the start or after `e`.
fn number_end(text: &[u8], start: usize) -> usize {
    let mut end = start + 1;
    while let Some(&byte) = text.get(end) {
        let sign = matches!(byte, b'-' | b'+') && matches!(text[end - 1], b'e' | b'E');
        let point = byte == b'.' && text.get(end + 1) != Some(&b'.');
        if !(is_word(byte) || point || sign) {
            break;
        }
        end += 1;
    }
    end
}

fn quoted(text: &[u8], start: usize) -> Token {
    let mut at = start + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return spanned(Kind::Text, start, at + 1),
            b'\n' => break,
            b'\\' if text.get(at + 1).is_some_and(|&next| next != b'\n') => at += 2,
            _ => at += 1,
        }
    }
    spanned(Kind::OpenText, start, at.min(text.len()))
}

#[cfg(test)]
#[path = "tests/lex.rs"]
mod tests;
