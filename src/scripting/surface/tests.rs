//! The documentation in the tables of the surface has one style.

use super::{Item, ItemShape, Parameter, Surface};

fn check_items(place: &str, items: &[Item]) {
    for item in items {
        let place = format!("{place}.{}", item.name);
        assert!(item.doc.ends_with('.'), "{place}: {:?} is no sentence", item.doc);
        let parameters: Vec<Parameter> = item.signature().map_or_else(Vec::new, |it| {
            it.parameters.iter().chain(&it.options).chain(&it.rest).copied().collect()
        });
        for it in parameters {
            assert!(it.doc.ends_with('.'), "{place}: `{}` {:?} is no sentence", it.name, it.doc);
        }
        if let ItemShape::Table(items) = &item.shape {
            check_items(&place, items);
        }
    }
}

#[test]
fn every_name_parameter_and_option_is_documented_in_sentences() {
    for section in Surface::new().sections() {
        assert!(section.doc.ends_with('.'), "{}: {:?}", section.name, section.doc);
        check_items(section.name, &section.items);
    }
}

#[test]
fn names_are_unique() {
    for section in Surface::new().sections() {
        let mut names: Vec<_> = section.items.iter().map(|it| it.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{}", section.name);
    }
}
