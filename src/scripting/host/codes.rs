//! Computes the fingerprints of handlers, so that an edit of their script changes only those that it affects.

use std::hash::{Hash as _, Hasher as _};

use crate::logic::handlers::handler::{Handler, Parts};
use crate::scripting::{
    Source,
    script::fingerprint::{DeclarationPart, Fingerprints, hash_of},
    terms::Language,
};

/// Sets the fingerprints of the handlers that this script declares.
pub(super) fn assign(source: &Source, handlers: &mut [Handler]) {
    let fingerprints = Fingerprints::of(Language::of_file(&source.name), &source.text);
    let modules = source.modules.taken();
    let with_modules = |own| {
        hash_of(|hasher| {
            hasher.write_u64(own);
            for module in &modules {
                module.name.hash(hasher);
                module.digest.map(|it| it.to_string()).hash(hasher);
            }
        })
    };
    for handler in handlers {
        // For declarations in a module, the source of the script is not enough.
        let line = handler.location.rsplit_once(':').filter(|(file, _)| *file == source.name);
        let line = line.and_then(|(_, line)| line.parse().ok());
        let own = line.map_or_else(|| fingerprints.whole(), |it| fingerprints.of_line(it));
        let part = |part| line.map_or(0, |it| fingerprints.of_part(it, part));
        let (selector, filters) = (part(DeclarationPart::Selector), part(DeclarationPart::Filters));
        handler.code = with_modules(own);
        let with_modules = |it| if it == 0 { 0 } else { with_modules(it) };
        handler.parts = Parts { selector: with_modules(selector), filters: with_modules(filters) };
    }
}
