//! Places in UTF-16 code units.

/// The places of a text. A place in the middle of a character is that of its start; one behind the end is the
/// end.
pub(crate) struct Places<'a> {
    text: &'a str,
    /// UTF-16 offset of every byte of a text with other characters than ASCII, and of its end.
    units: Vec<u32>,
}

impl<'a> Places<'a> {
    pub(crate) fn of(text: &'a str) -> Places<'a> {
        let mut units = Vec::new();
        if !text.is_ascii() {
            units.reserve(text.len() + 1);
            let mut at = 0;
            for c in text.chars() {
                units.extend(std::iter::repeat_n(at, c.len_utf8()));
                at += c.len_utf16() as u32;
            }
            units.push(at);
        }
        Places { text, units }
    }

    /// The UTF-16 offset of a byte.
    pub(crate) fn utf16(&self, byte: usize) -> usize {
        let byte = byte.min(self.text.len());
        self.units.get(byte).map_or(byte, |units| *units as usize)
    }

    /// The byte of a UTF-16 offset.
    pub(crate) fn byte(&self, utf16: usize) -> usize {
        if self.units.is_empty() {
            return utf16.min(self.text.len());
        }
        let byte = self.units.partition_point(|units| (*units as usize) < utf16).min(self.text.len());
        self.text.floor_char_boundary(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_browser() {
        let places = Places::of("aé𝄞z");
        let to: Vec<usize> = (0..10).map(|byte| places.utf16(byte)).collect();
        assert_eq!(to, [0, 1, 1, 2, 2, 2, 2, 4, 5, 5]);
        let back: Vec<usize> = (0..7).map(|units| places.byte(units)).collect();
        assert_eq!(back, [0, 1, 3, 7, 7, 8, 8]);
        assert_eq!((Places::of("abc").utf16(9), Places::of("abc").byte(9)), (3, 3));
        assert_eq!(Places::of("").byte(4), 0);
    }
}
