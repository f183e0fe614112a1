//! Sorts, and collects into sorted maps and sets, in little code.
//!
//! The standard library compiles a stable sort, about 5 KB, for each type that is sorted or collected into a map. Here, entries are
//! inserted one by one, and all sorts share one that compares by way of a pointer.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

/// Collects items into maps and sets, one by one.
pub(crate) trait CollectSorted: Iterator + Sized {
    /// Collects into a map. Of several values for a key, the last one is kept.
    fn collect_map<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: Iterator<Item = (K, V)>,
    {
        let mut map = BTreeMap::new();
        map.extend(self);
        map
    }

    /// Collects into a set.
    fn collect_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }

    /// Collects into a map, up to the first error.
    fn try_collect_map<K: Ord, V, E>(self) -> Result<BTreeMap<K, V>, E>
    where
        Self: Iterator<Item = Result<(K, V), E>>,
    {
        let mut map = BTreeMap::new();
        for item in self {
            let (key, value) = item?;
            map.insert(key, value);
        }
        Ok(map)
    }
}

impl<I: Iterator> CollectSorted for I {}

/// Sorts items; equal ones keep their order.
pub(crate) fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Sorts items by a key; equal ones keep their order.
pub(crate) fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts items by a comparison; equal ones keep their order.
pub(crate) fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let order = order(items.len(), &|a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        (None, _) | (_, None) => Ordering::Equal,
    });
    arrange(order, &mut |a, b| items.swap(a, b));
}

/// Returns the indexes of the sorted items before the sort.
fn order(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order = (0..len).collect::<Vec<_>>();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// Brings items into an order by swaps.
fn arrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for place in 0..order.len() {
        let mut from = order.get(place).copied().unwrap_or(place);
        // The item of that index has been swapped away: `order` has its new index.
        while from < place {
            from = order.get(from).copied().unwrap_or(place);
        }
        if let Some(moved) = order.get_mut(place) {
            *moved = from;
        }
        if from != place {
            swap(place, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sort_keeps_the_order_of_equal_items() {
        for seed in 0..200_u64 {
            let mut random = fastrand::Rng::with_seed(seed);
            let length = random.usize(0..80);
            let mut items =
                (0..length).map(|it| (random.u8(0..20), it)).collect::<Vec<(u8, usize)>>();
            let mut expected = items.clone();
            expected.sort_by_key(|it| it.0);
            sort_by_key(&mut items, |it| it.0);
            assert_eq!(items, expected, "seed {seed}");
        }
        let mut words = ["b", "c", "a"];
        sort(&mut words);
        assert_eq!(words, ["a", "b", "c"]);
    }

    #[test]
    fn the_last_value_of_a_key_is_collected() {
        let pairs = [("b", 1), ("a", 2), ("b", 3)];
        let map = pairs.into_iter().collect_map();
        assert_eq!(map.into_iter().collect::<Vec<_>>(), [("a", 2), ("b", 3)]);
        assert_eq!([2, 1, 2].into_iter().collect_set().len(), 2);
        let failed = [Ok(("a", 1)), Err("no"), Ok(("b", 2))];
        assert_eq!(failed.into_iter().try_collect_map(), Err("no"));
    }
}
