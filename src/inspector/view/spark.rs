//! Sparklines.

use crate::inspector::theme::Signs;

/// A line of bars, `most` being the highest; nothing in ASCII, where the number beside it has to do.
pub fn line(cells: &[u32], most: u32, signs: &Signs) -> String {
    let steps = signs.bars.len() as u64;
    if steps == 0 {
        return String::new();
    }
    let bar = |cell: u32| {
        if cell == 0 || most == 0 {
            return " ";
        }
        // The smallest flow has the lowest bar, and the largest the highest.
        let step = (u64::from(cell) * steps).div_ceil(u64::from(most)).clamp(1, steps);
        signs.bars[step as usize - 1]
    };
    cells.iter().map(|cell| bar(*cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspector::theme::{Theme, ThemeName};

    #[test]
    fn bars_span_from_the_lowest_to_the_highest() {
        let signs = |ascii| Theme::new(ThemeName::Dark, true, ascii).signs;
        assert_eq!(line(&[0, 1, 4, 8, 16], 16, signs(false)), " ▁▂▄█");
        assert_eq!(line(&[0, 0], 0, signs(false)), "  ");
        assert_eq!(line(&[u32::MAX], u32::MAX, signs(false)), "█");
        assert_eq!(line(&[1, 2], 2, signs(true)), "");
    }
}
