//! Names for objects that have only the start of one.

/// No vowels and no signs that look alike, so that no words come out.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many random signs are added.
const SUFFIX: usize = 5;
/// The longest name that is made, which is a DNS label.
const NAME_MAX: usize = 63;

/// Adds a random end to the start of a name. `random` gives a number below its argument.
pub(crate) fn generate_name(base: &str, mut random: impl FnMut(usize) -> usize) -> String {
    let mut length = base.len().min(NAME_MAX - SUFFIX);
    while !base.is_char_boundary(length) {
        length -= 1;
    }
    let (kept, _) = base.split_at_checked(length).unwrap_or((base, ""));
    let mut name = kept.to_owned();
    for _ in 0..SUFFIX {
        let sign = ALPHABET.get(random(ALPHABET.len()) % ALPHABET.len()).copied();
        name.extend(sign.map(char::from));
    }
    name
}
