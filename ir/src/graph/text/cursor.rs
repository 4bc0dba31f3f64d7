//! The cursor of the parsers: one token of lookahead, and the rules for numbers, types and strings.

use super::error::{ParseError, Parsed, TextProblem, nearest};
use super::lex::{self, Kind, Token};
use super::number::{self, Refusal};
use crate::types::{DType, Shape, Type};
use std::borrow::Cow;
use std::ops::Range;

pub(crate) struct Cursor<'t> {
    pub(crate) text: &'t str,
    /// The next token.
    pub(crate) token: Token,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, token: lex::token(text.as_bytes(), 0) }
    }

    /// Consumes the next token and returns it.
    #[inline]
    pub(crate) fn advance(&mut self) -> Token {
        let passed = self.token;
        self.token = lex::token(self.text.as_bytes(), passed.end as usize);
        passed
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    /// The spelling of a token.
    #[inline]
    pub(crate) fn spelling(&self, token: Token) -> &'t str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// The name of a token, without its sigil.
    #[inline]
    pub(crate) fn name(&self, token: Token) -> &'t str {
        &self.text[token.start as usize + 1..token.end as usize]
    }

    #[inline]
    pub(crate) fn at(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    #[inline]
    pub(crate) fn at_word(&self, word: &str) -> bool {
        self.at(Kind::Word) && self.spelling(self.token) == word
    }

    /// Consumes a mark if it comes next.
    #[inline]
    pub(crate) fn eat(&mut self, mark: u8) -> bool {
        let here = self.at(Kind::Mark(mark));
        if here {
            self.advance();
        }
        here
    }

    #[inline]
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let here = self.at_word(word);
        if here {
            self.advance();
        }
        here
    }

    /// Consumes a token of a kind, which `expected` describes.
    #[inline]
    pub(crate) fn expect(&mut self, kind: Kind, expected: &str) -> Parsed<Token> {
        if self.at(kind) { Ok(self.advance()) } else { Err(self.unexpected(expected)) }
    }

    /// Whether a list that ends with `close` has another item. Consumes the comma before the item, or the closing mark.
    #[inline]
    pub(crate) fn next_item(&mut self, close: u8, is_first: bool) -> Parsed<bool> {
        if self.eat(close) {
            return Ok(false);
        }
        if !is_first {
            self.expect_mark(b',')?;
        }
        Ok(true)
    }

    #[inline]
    pub(crate) fn expect_mark(&mut self, mark: u8) -> Parsed<Token> {
        if self.at(Kind::Mark(mark)) {
            return Ok(self.advance());
        }
        Err(self.unexpected(&format!("'{}'", lex::mark_spelling(mark))))
    }

    /// The problem that the next token does not match the grammar.
    #[cold]
    pub(crate) fn unexpected(&self, expected: &str) -> Box<TextProblem> {
        let span = span(self.token);
        let at = |message: String, label: &str| TextProblem::new(span.clone(), message, label);
        match self.token.kind {
            Kind::OpenText => at("the string has no end".to_owned(), "it begins here")
                .help("close it with '\"' on the same line; a line break inside is written \\n"),
            Kind::Nameless => {
                let sigil = self.spelling(self.token);
                at(format!("a name must follow '{sigil}'"), "nothing follows")
                    .help("names hold letters, digits, '_', '.' and '-', as in %x or %12")
            }
            Kind::Stray => {
                at(format!("expected {expected}, found {:?}", self.spelling(self.token)), "stray character")
                    .help("comments begin with ';' or '//'")
            }
            Kind::End => at(format!("expected {expected}, found the end of the text"), "the text ends here"),
            _ => {
                let found = self.spelling(self.token);
                let found: String = found.chars().take(40).collect();
                at(format!("expected {expected}, found '{found}'"), "unexpected")
            }
        }
    }

    #[cold]
    fn refused(&self, token: Token, refusal: Refusal, expected: &str) -> Box<TextProblem> {
        let found: String = self.spelling(token).chars().take(40).collect();
        match refusal {
            Refusal::NotANumber => TextProblem::new(
                span(token),
                format!("expected {expected}, found '{found}'"),
                "not such a number",
            ),
            Refusal::TooLarge => TextProblem::new(
                span(token),
                format!("the number {found} is out of range"),
                format!("{expected} goes here"),
            ),
        }
    }

    /// Reads the next number or word with `read`.
    #[inline]
    fn read<T>(&mut self, expected: &str, read: impl Fn(&[u8]) -> Result<T, Refusal>) -> Parsed<T> {
        if !matches!(self.token.kind, Kind::Number | Kind::Word) {
            return Err(self.unexpected(expected));
        }
        let token = self.token;
        match read(self.spelling(token).as_bytes()) {
            Ok(number) => {
                self.advance();
                Ok(number)
            }
            Err(refusal) => Err(self.refused(token, refusal, expected)),
        }
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Parsed<u32> {
        self.read("a number from 0 to 4294967295", number::unsigned32)
    }

    pub(crate) fn long_number(&mut self) -> Parsed<u64> {
        self.read("a number from 0 to 18446744073709551615", number::unsigned)
    }

    pub(crate) fn axis(&mut self) -> Parsed<u8> {
        self.read("an axis from 0 to 255", |word| {
            u8::try_from(number::unsigned(word)?).map_err(|_| Refusal::TooLarge)
        })
    }

    #[inline]
    pub(crate) fn float(&mut self) -> Parsed<f32> {
        self.read("a float such as 0.5, -2e-3, inf or 0x7fc00000", number::float)
    }

    /// The bits of one element.
    #[inline]
    pub(crate) fn element(&mut self, dtype: DType) -> Parsed<u32> {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => self.float().map(f32::to_bits),
            DType::U32 => self.number(),
            DType::I32 => {
                self.read("a number from -2147483648 to 2147483647", |word| number::element(dtype, word))
            }
            DType::Bool => self.read("a bool, 0 or 1,", |word| number::element(dtype, word)),
        }
    }

    /// A line and a column: `31:21`.
    pub(crate) fn line_and_column(&mut self) -> Parsed<(u32, u32)> {
        let line = self.number()?;
        self.expect_mark(b':')?;
        Ok((line, self.number()?))
    }

    pub(crate) fn dtype(&mut self) -> Parsed<DType> {
        if !self.at(Kind::Word) {
            return Err(self.unexpected("an element type"));
        }
        let word = self.spelling(self.token);
        let Some(dtype) = DType::from_spelling(word) else {
            let words = DType::ALL.map(DType::spelling);
            let near = nearest(word, words.into_iter()).map(|near| format!("'{near}'"));
            return Err(self
                .at_token(self.token, format!("unknown element type '{word}'"), "no such type")
                .suggest(near, format!("the element types are {}", words.join(", "))));
        };
        self.advance();
        Ok(dtype)
    }

    /// A type: `f32`, `f32[3,4]`, `list f32[3,4]`.
    #[inline]
    pub(crate) fn ty(&mut self) -> Parsed<Type> {
        let is_list = self.eat_word("list");
        let dtype = self.dtype()?;
        let shape = if self.at(Kind::Mark(b'[')) { self.shape()? } else { Shape::SCALAR };
        Ok(Type { is_list, ..Type::new(dtype, shape) })
    }

    /// Extents in brackets.
    pub(crate) fn shape(&mut self) -> Parsed<Shape> {
        let start = self.expect_mark(b'[')?;
        let mut dims = [0; Shape::MAX_RANK];
        let mut rank = 0;
        while !self.at(Kind::Mark(b']')) {
            if rank > 0 {
                self.expect_mark(b',')?;
            }
            let place = self.token;
            let extent = self.number()?;
            let Some(dim) = dims.get_mut(rank) else {
                let message = format!("a shape has at most {} extents", Shape::MAX_RANK);
                return Err(self.at_token(place, message, "one too many"));
            };
            *dim = extent;
            rank += 1;
        }
        let end = self.advance();
        Shape::new(&dims[..rank]).map_err(|error| {
            TextProblem::new(start.start as usize..end.end as usize, error.to_string(), "this shape")
        })
    }

    /// A quoted text.
    pub(crate) fn string(&mut self) -> Parsed<Cow<'t, str>> {
        let token = self.expect(Kind::Text, "a string in quotes")?;
        let inside = &self.text[token.start as usize + 1..token.end as usize - 1];
        if !inside.contains('\\') {
            return Ok(Cow::Borrowed(inside));
        }
        self.unescaped(token, inside).map(Cow::Owned)
    }

    fn unescaped(&self, token: Token, inside: &str) -> Parsed<String> {
        let mut plain = String::with_capacity(inside.len());
        let mut rest = inside;
        while let Some(place) = rest.find('\\') {
            plain.push_str(&rest[..place]);
            let escape = &rest[place + 1..];
            let Some((letter, length)) = escaped(escape) else {
                let start = token.start as usize + 1 + (inside.len() - rest.len()) + place;
                let message = "unknown escape in a string";
                return Err(TextProblem::new(start..start + 1, message, "it begins here")
                    .help("the escapes are \\\\ \\\" \\n \\t and \\u{2603}"));
            };
            plain.push(letter);
            rest = &escape[length..];
        }
        plain.push_str(rest);
        Ok(plain)
    }

    /// A name behind `@`.
    pub(crate) fn at_name(&mut self, expected: &str) -> Parsed<Token> {
        self.expect(Kind::At, expected)
    }

    /// `[3]`
    pub(crate) fn number_in_brackets(&mut self) -> Parsed<u32> {
        self.expect_mark(b'[')?;
        let number = self.number()?;
        self.expect_mark(b']')?;
        Ok(number)
    }

    /// The problem that a word is none of the expected ones.
    #[cold]
    pub(crate) fn other_word(&self, token: Token, expected: &str, label: &str) -> Box<TextProblem> {
        let message = format!("expected {expected}, found '{:.40}'", self.spelling(token));
        self.at_token(token, message, label)
    }

    /// A problem with one token.
    #[cold]
    pub(crate) fn at_token(
        &self,
        token: Token,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Box<TextProblem> {
        TextProblem::new(span(token), message, label)
    }
}

/// The characters of a text.
pub(crate) fn decoded(text: &[u8]) -> Result<&str, ParseError> {
    match std::str::from_utf8(text) {
        Ok(valid) if text.len() < u32::MAX as usize => Ok(valid),
        Ok(_) => {
            let problem = TextProblem::new(0..0, "a text must be shorter than 4 GiB", "the text begins here");
            Err(ParseError::new(b"", *problem.help("keep large graphs and plans in the binary form")))
        }
        Err(error) => {
            let place = error.valid_up_to();
            let problem = TextProblem::new(place..place + 1, "the text is not UTF-8", "not a character");
            Err(ParseError::new(text, *problem))
        }
    }
}

/// The character of an escape, and the number of bytes behind the backslash.
fn escaped(escape: &str) -> Option<(char, usize)> {
    match escape.as_bytes().first()? {
        b'\\' => Some(('\\', 1)),
        b'"' => Some(('"', 1)),
        b'n' => Some(('\n', 1)),
        b't' => Some(('\t', 1)),
        b'u' => {
            let digits = escape[1..].strip_prefix('{')?;
            let end = digits.bytes().take(7).position(|byte| byte == b'}')?;
            let letter = char::from_u32(u32::from_str_radix(&digits[..end], 16).ok()?)?;
            Some((letter, end + 3))
        }
        _ => None,
    }
}

/// The bytes of a token.
pub(crate) fn span(token: Token) -> Range<usize> {
    token.start as usize..token.end as usize
}
