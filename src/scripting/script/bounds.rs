//! Limits on the source of a script or a module. The memory that its compiler takes is not counted for any script, and can be up to
//! two hundred times the size of the source.

use super::fingerprint;
use crate::logic::text::size;
use crate::scripting::terms::Language;

/// Maximum size of a script in bytes: that of a `ConfigMap`.
pub(crate) const SCRIPT_BYTES_MAX: usize = 1 << 20;
/// Maximum number of tokens of a script or a module.
pub(crate) const TOKENS_MAX: usize = 200_000;

/// Returns why a script is too large to be compiled.
pub(crate) fn refused(name: &str, text: &str) -> Option<String> {
    if text.len() > SCRIPT_BYTES_MAX {
        let (size, max) = (size::shown(text.len()), size::shown(SCRIPT_BYTES_MAX));
        return Some(format!("the script has {size}, more than {max}"));
    }
    too_many_tokens(name, text)
}

/// Returns why a module is too large to be compiled. Its bytes are counted where it is read.
pub(crate) fn too_many_tokens(name: &str, text: &str) -> Option<String> {
    let (rough, max) = (roughly(text), TOKENS_MAX);
    // The estimate counts the words of long comments and strings, too.
    let is_more =
        rough > max && fingerprint::tokens(Language::of_file(name), text).unwrap_or(rough) > max;
    is_more.then(|| format!("the source has more than {max} tokens"))
}

/// Returns a lower bound of the number of tokens that is cheap to compute.
fn roughly(text: &str) -> usize {
    let is_word = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || !it.is_ascii();
    let bytes = text.bytes();
    let counted = bytes.scan(false, |was_word, it| {
        let counts = !(it.is_ascii_whitespace() || (*was_word && is_word(it)));
        *was_word = is_word(it);
        Some(usize::from(counts))
    });
    counted.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_limited_and_comments_and_strings_do_not_count() {
        let message = Some("the source has more than 200000 tokens".to_owned());
        assert_eq!(refused("x.lua", &"x=1 ".repeat(66_000)), None);
        assert_eq!(refused("x.lua", &"x=1 ".repeat(67_000)), message);
        assert_eq!(refused("x.rhai", &"x=1;".repeat(50_001)), message);
        assert_eq!(refused("x.lua", &"-- a, b, c\n".repeat(50_000)), None);
        assert_eq!(refused("x.rhai", &format!("let x = `{}`;", "a, ".repeat(200_000))), None);
        assert_eq!(refused("x.lua", &format!("x = {{{}", "1,".repeat(150_000))), message);
        let long = refused("x.lua", &format!("--[[{}]]", "a".repeat(SCRIPT_BYTES_MAX)));
        assert!(long.unwrap().contains("more than 1 MiB"));
    }
}
