//! Generated names: `generateName`.

/// The characters of a suffix: no vowels and none that look alike, so that no words come out.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The length of a suffix, in characters.
const SUFFIX: usize = 5;
/// Limit of a generated name, which is a DNS label.
const NAME_MAX: usize = 63;

/// Appends a random suffix to a prefix. `random` returns a number below its argument.
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
