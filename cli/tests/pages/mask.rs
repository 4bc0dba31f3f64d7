//! Masks the parts of an output that differ between runs and machines.

/// Units of times. A number before one of them is masked.
const UNITS: &[&str] = &["ns", "µs", "ms", "s"];

/// Instruction sets, as the command line names them.
const INSTRUCTION_SETS: &[&str] = &["avx512", "avx2", "neon", "scalar"];

/// Masks times, rates, structure hashes, instruction sets and the number of threads. Runs of spaces become one space,
/// because tables are as wide as their numbers.
pub(crate) fn masked(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(masked_line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

fn masked_line(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut masked = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let (word, next) = (words[at], words.get(at + 1).copied().unwrap_or_default());
        let unit = next.trim_end_matches([',', ';', '.', ')', ':']);
        at += 1;
        if is_number(word) && UNITS.contains(&unit) {
            // A longer time may have another unit.
            masked.push("..");
            at += 1;
        } else if is_number(word) && (unit.ends_with("/s") || next == "threads" || is_ratio(&words[at..]))
            || is_joined_time(word)
            || is_structure(word)
            || INSTRUCTION_SETS.contains(&word)
        {
            masked.push("..");
        } else {
            masked.push(word);
        }
    }
    masked.join(" ")
}

/// Whether these words after a number make it a ratio of times.
fn is_ratio(next: &[&str]) -> bool {
    matches!(next, ["x", "faster", ..])
}

/// Whether a word is a number, perhaps in brackets: `1,024`, `(0.5`.
fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches('(');
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || ".,".contains(c))
}

/// Whether a word is a number with its unit: `12.5s`, `3ms`, `8200/s`.
fn is_joined_time(word: &str) -> bool {
    let word = word.trim_matches(['(', ')', ',', ';']);
    let joined =
        |unit: &str| word.strip_suffix(unit).is_some_and(|number| !number.is_empty() && is_number(number));
    joined("/s") || UNITS.iter().any(|unit| joined(unit))
}

/// Whether a word is the short form of a structure hash: `3671..20`.
fn is_structure(word: &str) -> bool {
    let hex = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit());
    word.len() == 8
        && word.split_once("..").is_some_and(|(start, end)| hex(start) && hex(end) && start.len() == 4)
}

#[test]
fn masks_hide_times_and_keep_counts() {
    let line = "planned in 13 µs (595 ns per node)  1.4 x faster   2,097 trees/s; 5 batches 12.5s 3671..20 avx2  1 of 2 threads";
    assert_eq!(
        masked(line),
        "planned in .. .. per node) .. x faster .. trees/s; 5 batches .. .. .. 1 of .. threads\n"
    );
}
