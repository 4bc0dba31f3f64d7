//! A rule that finds public functions which hide their caller. An error names the user's line only if every
//! function between the user and the emitter is `#[track_caller]`.

use super::{Source, complain};

/// A public function that the rule found by scanning lines.
struct Function<'a> {
    line: usize,
    name: &'a str,
    /// The text from the end of the name to the body, in one line.
    signature: String,
    tracked: bool,
}

/// Returns a complaint for each public function that takes a `Value` or a `&Graph` without `#[track_caller]`. In
/// the `emitting` files it also covers functions that return values. `exempt` lists functions that emit nothing.
#[must_use]
pub fn missing_track_caller(
    sources: &[Source],
    folders: &[&str],
    emitting: &[&str],
    exempt: &[&str],
) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let emits = emitting.contains(&source.path.as_str());
        if !emits && !folders.iter().any(|folder| source.path.starts_with(folder)) {
            continue;
        }
        for function in functions(source) {
            let (taken, returned) = parts(&function.signature);
            let takes = taken.contains("Value<") || taken.contains("Graph");
            let returns = returned.contains("Value<") || returned.contains("Self");
            let has_receiver = taken.trim_start_matches(['&', '\'', 'g', ' ']).starts_with("self");
            let needs = takes || (emits && has_receiver && returns);
            if needs && !function.tracked && !exempt.contains(&function.name) {
                let what = format!(
                    "`{}` hides its caller; add #[track_caller], so that errors name the user's line",
                    function.name
                );
                complaints.push(complain(source, function.line, &what));
            }
        }
    }
    complaints
}

fn functions(source: &Source) -> Vec<Function<'_>> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(rest) = after_pub_fn(line.trim_start()) else { continue };
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_$".contains(c))).unwrap_or(rest.len());
        let body = |line: &str| line.contains('{') || line.trim_end().ends_with(';');
        let last = (at..lines.len()).find(|&line| body(lines[line])).unwrap_or(at);
        let mut signature = rest[end..].to_owned();
        for line in &lines[at + 1..=last.max(at)] {
            signature.push(' ');
            signature.push_str(line.trim());
        }
        let above = lines[..at].iter().rev().map(|line| line.trim_start());
        let mut attributes =
            above.take_while(|line| ["#[", "///", "$(", ")]"].iter().any(|head| line.starts_with(head)));
        let tracked = line.contains("track_caller") || attributes.any(|line| line.contains("track_caller"));
        found.push(Function { line: at + 1, name: &rest[..end], signature, tracked });
    }
    found
}

fn after_pub_fn(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let rest = rest.strip_prefix("async ").unwrap_or(rest);
    rest.strip_prefix("fn ")
}

/// Returns the parameters and the result of a signature. It omits the types of closures: the function calls the
/// closure with a graph but takes none itself.
fn parts(signature: &str) -> (String, String) {
    let plain = without_closures(signature);
    let Some(open) = parameters_start(&plain) else { return (String::new(), plain) };
    let mut depth = 0;
    for (at, c) in plain[open..].char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return (plain[open + 1..open + at].trim().to_owned(), plain[open + at..].to_owned());
        }
    }
    (plain, String::new())
}

/// Returns the start of the parameter list: the first parenthesis outside angle brackets.
fn parameters_start(signature: &str) -> Option<usize> {
    let mut depth = 0;
    let mut before = ' ';
    for (at, c) in signature.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            '(' if depth == 0 => return Some(at),
            _ => {}
        }
        before = c;
    }
    None
}

/// Returns the text without the parameter lists and results of `Fn(..) -> ..` bounds.
fn without_closures(signature: &str) -> String {
    let mut out = String::new();
    let mut rest = signature;
    let heads = ["Fn(", "FnOnce(", "FnMut("];
    while let Some((at, head)) = heads.iter().filter_map(|head| Some((rest.find(head)?, *head))).min() {
        out.push_str(&rest[..at]);
        let inside = &rest[at + head.len()..];
        let mut depth = 1;
        let close = inside.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        rest = close.map_or("", |close| &inside[close + 1..]);
        if let Some(result) = rest.strip_prefix(" -> ") {
            let mut depth = 0;
            let end = result.find(|c| {
                let ends = depth == 0 && ",)>+{".contains(c);
                depth += i32::from("([<".contains(c)) - i32::from(")]>".contains(c));
                ends
            });
            rest = end.map_or("", |end| &result[end..]);
        }
    }
    out.push_str(rest);
    out
}
