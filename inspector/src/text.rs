//! Formatting for terminals: numbers, plurals, byte sizes, tables and bar charts.

/// A number with commas between groups of three digits.
#[must_use]
pub fn count(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 step`, `2 steps`, `3 batches`, `4 epochs`
#[must_use]
pub fn plural(number: u64, what: &str) -> String {
    let ending = match number {
        1 => "",
        _ if what.ends_with("tch") || what.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {what}{ending}", count(number))
}

/// A number of bytes with its unit.
#[must_use]
pub fn byte_size(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    let size = bytes as f64;
    match size {
        ..KIB => format!("{bytes} B"),
        _ if size < KIB * KIB => format!("{:.1} KiB", size / KIB),
        _ if size < KIB * KIB * KIB => format!("{:.1} MiB", size / KIB / KIB),
        _ => format!("{:.1} GiB", size / KIB / KIB / KIB),
    }
}

/// A bar chart of one line with at most `width` bars. Each bar stands for one or several neighbouring
/// numbers and is as high as the largest of them.
#[must_use]
pub fn sparkline(numbers: &[u32], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bars = numbers.len().min(width.max(1));
    let highest = numbers.iter().copied().max().unwrap_or(0).max(1);
    (0..bars)
        .map(|bar| {
            let members = &numbers[bar * numbers.len() / bars..(bar + 1) * numbers.len() / bars];
            let high = members.iter().copied().max().unwrap_or(0);
            BARS[(u64::from(high) * 7).div_ceil(u64::from(highest)) as usize]
        })
        .collect()
}

/// A table whose columns are as wide as their widest cell. The columns in `left` are aligned left, all
/// others right. Lines have no trailing blanks.
#[must_use]
pub fn table(rows: &[Vec<String>], left: &[usize]) -> String {
    // A name from a file must not end its line.
    let in_line = |cell: &String| cell.replace(['\n', '\t'], " ");
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(in_line).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let gap = " ".repeat(widths[column] - cell.chars().count());
            let separator = if column == 0 { "" } else { "  " };
            line += separator;
            line += &if left.contains(&column) { format!("{cell}{gap}") } else { format!("{gap}{cell}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The least width of a wrapped column.
const LEAST_COLUMN: usize = 24;

/// A table whose columns are aligned left and whose last column is wrapped, so that lines fit `width`. Without a
/// width, every row is one line.
#[must_use]
pub fn wrapped_table(rows: &[Vec<String>], width: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let left: Vec<usize> = (0..columns).collect();
    let Some(width) = width else { return table(rows, &left) };
    let widest = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let before: usize = (0..columns.saturating_sub(1)).map(|column| widest(column) + 2).sum();
    let room = width.saturating_sub(before).max(LEAST_COLUMN);
    let mut lines = Vec::new();
    for row in rows {
        let Some((last, first)) = row.split_last() else { continue };
        for (number, part) in wrapped(last, room).into_iter().enumerate() {
            let cells = first.iter().map(|cell| if number == 0 { cell.clone() } else { String::new() });
            lines.push(cells.chain([part]).collect::<Vec<String>>());
        }
    }
    table(&lines, &left)
}

/// The lines of a text that breaks at spaces. A longer word stays whole.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The mean and the standard deviation of a sample.
#[must_use]
pub fn mean_and_deviation(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let spread = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>();
    let deviation = if numbers.len() < 2 { 0.0 } else { (spread / (count - 1.0)).sqrt() };
    (mean, deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_groups_of_three_digits() {
        assert_eq!([7u64, 999, 1000, 1_234_567].map(count), ["7", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn plurals_have_english_endings() {
        let words = ["step", "batch", "pass", "epoch"];
        assert_eq!(words.map(|word| plural(2, word)), ["2 steps", "2 batches", "2 passes", "2 epochs"]);
        assert_eq!(plural(1, "epoch"), "1 epoch");
    }

    #[test]
    fn a_sparkline_shows_the_maximum_of_merged_numbers() {
        assert_eq!(sparkline(&[1, 8], 10), "▂█");
        assert_eq!(sparkline(&[1, 1, 8, 1], 2), "▂█");
        assert_eq!(sparkline(&[], 5), "");
    }

    #[test]
    fn the_last_column_of_a_table_is_wrapped() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["fold", "computes constants before the graph runs"]), row(["x", "short"])];
        let expected = "fold  computes constants before\n      the graph runs\nx     short\n";
        assert_eq!(wrapped_table(&rows, Some(31)), expected);
        assert_eq!(wrapped_table(&rows, None).lines().count(), 2);
    }

    #[test]
    fn the_deviation_is_the_sample_deviation() {
        let (mean, deviation) = mean_and_deviation(&[1.0, 3.0]);
        assert_eq!((mean, deviation), (2.0, 2.0f64.sqrt()));
        assert_eq!(mean_and_deviation(&[5.0]), (5.0, 0.0));
    }
}
