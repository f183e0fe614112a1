//! The mappings of the process, from `/proc/self/smaps`.

/// Returns the content of `/proc/self/smaps`, and the path of the program file.
pub(super) fn mappings() -> Option<(String, String)> {
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let program = std::env::current_exe().ok()?.into_os_string().into_string().ok()?;
    Some((maps, program))
}

/// The first line about a mapping.
pub(super) struct Mapping<'a> {
    pub(super) range: (usize, usize),
    /// Not writable, and private.
    pub(super) is_fixed: bool,
    pub(super) is_executable: bool,
    pub(super) path: &'a str,
}

/// Parses the first line of a mapping, such as `55d0c0a4d000-55d0c0e51000 r-xp 00604000 fe:00 1004   /kopf`.
pub(super) fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |it| usize::from_str_radix(it, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    let access = fields.next()?;
    let (is_fixed, is_executable) = (matches!(access, "r--p" | "r-xp"), access == "r-xp");
    let path = fields.nth(3).unwrap_or_default().trim();
    Some(Mapping { range: (start, end.checked_sub(start)?), is_fixed, is_executable, path })
}
