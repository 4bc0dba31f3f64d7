//! Images of 28 × 28 pixels that show digits drawn with strokes.
//!
//! A digit is a set of strokes between the six corners of a figure of eight, as on a seven-segment
//! display, the diagonal strokes of 1, 2, 4 and 7 included. Each image moves, scales and slants the
//! figure, moves each corner a little, chooses the pen's width, and adds noise. All positions are
//! integers in sixteenths of a pixel.

use super::instances;
use crate::data::idx::{Images, Labelled};
use crate::data::random::Random;

/// Rows and columns of an image.
pub const SIDE: usize = 28;

/// Corners from top to bottom, left before right: 0 1 / 2 3 / 4 5.
const STROKES: [&[(usize, usize)]; 10] = [
    &[(0, 1), (1, 3), (3, 5), (5, 4), (4, 2), (2, 0)],
    &[(2, 1), (1, 3), (3, 5)],
    &[(0, 1), (1, 3), (3, 4), (4, 5)],
    &[(0, 1), (1, 3), (2, 3), (3, 5), (4, 5)],
    &[(0, 2), (2, 3), (1, 3), (3, 5)],
    &[(1, 0), (0, 2), (2, 3), (3, 5), (5, 4)],
    &[(1, 0), (0, 2), (2, 4), (4, 5), (5, 3), (3, 2)],
    &[(0, 1), (1, 4)],
    &[(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)],
    &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 5), (4, 5)],
];

type Point = (i64, i64);

/// Draws a number in `-reach..=reach`.
fn jitter(random: &mut Random, reach: i64) -> i64 {
    random.below(2 * reach as u64 + 1) as i64 - reach
}

fn corners(random: &mut Random) -> [Point; 6] {
    let (centre_x, centre_y) = (14 * 16 + jitter(random, 32), 14 * 16 + jitter(random, 32));
    let width = 64 + jitter(random, 14);
    let height = 136 + jitter(random, 20);
    let slant = jitter(random, 28);
    std::array::from_fn(|corner| {
        let row = corner as i64 / 2 - 1;
        let side = corner as i64 % 2 * 2 - 1;
        let x = centre_x + side * width - row * slant + jitter(random, 8);
        let y = centre_y + row * height + jitter(random, 8);
        (x, y)
    })
}

/// The square of the distance between a point and a stroke.
fn distance_squared(point: Point, from: Point, to: Point) -> i64 {
    let (x, y) = point;
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = (dx * dx + dy * dy).max(1);
    let along = ((x - from.0) * dx + (y - from.1) * dy).clamp(0, length);
    let (nearest_x, nearest_y) = (from.0 + dx * along / length, from.1 + dy * along / length);
    (x - nearest_x).pow(2) + (y - nearest_y).pow(2)
}

fn draw(digit: usize, random: &mut Random) -> Vec<u8> {
    let corners = corners(random);
    let pen = i64::from(random.between(14, 26)).pow(2);
    let mut pixels = Vec::with_capacity(SIDE * SIDE);
    for pixel in 0..SIDE * SIDE {
        let point = ((pixel % SIDE) as i64 * 16 + 8, (pixel / SIDE) as i64 * 16 + 8);
        let strokes = STROKES[digit].iter().map(|&(from, to)| (corners[from], corners[to]));
        let nearest = strokes.map(|(from, to)| distance_squared(point, from, to)).min().unwrap_or(i64::MAX);
        // The ink is full up to half the pen's reach and fades to zero at twice the reach.
        let ink = (255 - (nearest - pen / 4).max(0) * 255 / (2 * pen)).max(0);
        let noise = if ink > 0 { jitter(random, 30) } else { 0 };
        pixels.push((ink + noise).clamp(0, 255) as u8);
    }
    pixels
}

/// Draws images of digits. All digits have the same probability.
pub fn digits(seed: u64, count: usize) -> Labelled {
    let drawn = instances(seed, count, |_, random| {
        let digit = random.index(10);
        (digit as u8, draw(digit, random))
    });
    let (labels, images): (Vec<u8>, Vec<Vec<u8>>) = drawn.into_iter().unzip();
    Labelled { images: Images { rows: SIDE, columns: SIDE, count, pixels: images.concat() }, labels }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::idx::{pair, parse_images, parse_labels, write_images, write_labels};

    #[test]
    fn the_nearest_class_mean_classifies_most_digits() {
        let train = digits(1, 2000);
        let mut means = vec![vec![0.0_f64; SIDE * SIDE]; 10];
        let mut counts = [0.0_f64; 10];
        for (index, &label) in train.labels.iter().enumerate() {
            counts[label as usize] += 1.0;
            let image = train.images.image(index).unwrap();
            for (sum, &pixel) in means[label as usize].iter_mut().zip(image) {
                *sum += f64::from(pixel);
            }
        }
        assert!(counts.iter().all(|&n| (150.0..250.0).contains(&n)), "seed 1: {counts:?}");
        let test = digits(2, 300);
        let distance = |class: usize, image: &[u8]| -> f64 {
            let mean = means[class].iter().map(|sum| sum / counts[class]);
            mean.zip(image).map(|(mean, &pixel)| (mean - f64::from(pixel)).powi(2)).sum()
        };
        let best = |image: &[u8]| (0..10).min_by(|&a, &b| distance(a, image).total_cmp(&distance(b, image)));
        let right = (0..300)
            .filter(|&index| best(test.images.image(index).unwrap()) == Some(test.labels[index] as usize));
        let right = right.count();
        assert!((200..300).contains(&right), "{right} of 300");
    }

    #[test]
    fn about_a_fifth_of_an_image_is_ink() {
        let digits = digits(3, 200);
        let ink = digits.images.pixels.iter().filter(|&&pixel| pixel > 0).count();
        let percent = 100 * ink / digits.images.pixels.len();
        assert!((12..=35).contains(&percent), "{percent} %");
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let digits = digits(4, 20);
        let images = parse_images(write_images(&digits.images), "generated").unwrap();
        let labels = parse_labels(write_labels(&digits.labels), "generated").unwrap();
        assert_eq!(pair(images, labels, "generated").unwrap(), digits);
    }
}
