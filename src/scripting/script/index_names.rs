//! Which indexes each script may use: those whose ids occur in its source, or in a module that it has loaded.
//!
//! The search reads all sources, so it runs on another thread, before a generation takes over. It reads each source once, however
//! many indexes there are.

use std::{collections::BTreeSet, sync::Arc};

use aho_corasick::AhoCorasick;

use super::Source;
use crate::logic::handlers::handler::{Handler, Kind};

/// The ids of indexes.
pub(in crate::scripting) type Ids = BTreeSet<Arc<str>>;

/// What is known about the sources of one script.
#[derive(Debug, Default)]
pub(in crate::scripting) struct IndexNames {
    /// The indexes of the generation that was prepared last.
    searched: Arc<Ids>,
    /// Those of them that occur.
    found: Ids,
}

impl IndexNames {
    /// Returns whether the script may use this index. False only if it was searched, and not found.
    pub(in crate::scripting) fn may_include(&self, id: &str) -> bool {
        self.found.contains(id) || !self.searched.contains(id)
    }
}

/// Returns the ids of the indexes that these handlers fill.
pub(in crate::scripting) fn of_handlers(handlers: &[Handler]) -> Ids {
    let indexes = handlers.iter().filter(|it| it.kind == Kind::Index);
    indexes.map(|it| Arc::clone(&it.id)).collect()
}

/// Searches scripts for the ids of indexes.
pub(in crate::scripting) struct IndexSearch {
    searched: Arc<Ids>,
    /// The same ids, in the order of the searcher.
    ids: Vec<Arc<str>>,
    searcher: AhoCorasick,
}

impl IndexSearch {
    /// Prepares a search for these ids; `None` if they are too many for it: each script may use all of them then.
    pub(in crate::scripting) fn new(indexes: Ids) -> Option<Self> {
        let ids: Vec<_> = indexes.iter().cloned().collect();
        let searcher = AhoCorasick::new(ids.iter().map(|it| it.as_bytes())).ok()?;
        Some(IndexSearch { searched: Arc::new(indexes), ids, searcher })
    }

    /// Searches the source of a script, and its modules.
    pub(in crate::scripting) fn names_of(&self, source: &Source) -> IndexNames {
        let mut found = Ids::new();
        let modules = source.modules.texts();
        let texts = std::iter::once(source.text.as_str());
        for text in texts.chain(modules.iter().map(|(_, it)| &**it)) {
            for occurrence in self.searcher.find_overlapping_iter(text) {
                if found.len() == self.ids.len() {
                    break;
                }
                let id = self.ids.get(occurrence.pattern().as_usize());
                if let Some(id) = id.filter(|it| !found.contains(*it)) {
                    found.insert(Arc::clone(id));
                }
            }
        }
        IndexNames { searched: Arc::clone(&self.searched), found }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::scripting::script::modules::Modules;

    #[test]
    fn names_are_found_inside_others_and_in_modules_that_were_loaded() {
        let file = PathBuf::from("lib.lua");
        let other = PathBuf::from("other.lua");
        let texts = [(file.clone(), "return shelves".into()), (other, "return unread".into())];
        let modules = Modules::of_texts(texts.into());
        modules.read(&file, "a.lua").expect("a module");
        let source = Source { modules, ..Source::alone("a.lua", "use(all_pods_of, is_x)") };
        let ids = ["all_pods", "pod", "pods_of", "s", "shelves", "unread"].map(Arc::<str>::from);
        let search = IndexSearch::new(ids.into()).expect("few ids");
        let names = search.names_of(&source);
        let found: Vec<_> = names.found.iter().map(|it| &**it).collect();
        assert_eq!(found, ["all_pods", "pod", "pods_of", "s", "shelves"]);
    }

    #[test]
    fn an_index_that_was_not_searched_may_be_used() {
        let ids = |ids: &[&str]| ids.iter().map(|it| Arc::from(*it)).collect();
        let names = IndexNames { searched: Arc::new(ids(&["a", "b"])), found: ids(&["a"]) };
        assert_eq!(["a", "b", "c"].map(|it| names.may_include(it)), [true, false, true]);
        assert!(IndexNames::default().may_include("a"));
    }
}
