//! Compresses the objects of one resource against the first of them, because such objects are much alike.

use std::sync::{Arc, OnceLock};

use lz4_flex::block;

use crate::logic::object::resource::Resource;

/// Maximum number of bytes used as the sample: objects are alike in their first bytes.
const SAMPLE_MAX: usize = 16 << 10;

/// A compressor for the JSON of similar objects. The first object serves as the dictionary, so little more than the differences is kept of
/// the others.
#[derive(Debug, Default)]
pub struct Packer(OnceLock<Box<[u8]>>);

/// A compressor for the JSON of objects of one resource.
#[derive(Debug)]
pub struct ObjectPacker {
    resource: Arc<Resource>,
    packer: Packer,
}

impl ObjectPacker {
    /// Creates a packer for the objects of this resource.
    pub fn of(resource: Arc<Resource>) -> Self {
        ObjectPacker { resource, packer: Packer::default() }
    }

    /// Returns the resource of the packed objects.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Compresses the JSON of an object.
    pub fn pack(&self, text: &[u8]) -> Box<[u8]> {
        self.packer.pack(text)
    }

    /// Returns the JSON of a compressed object; empty if another packer has compressed it.
    pub fn unpack(&self, packed: &[u8]) -> Vec<u8> {
        self.packer.unpack(packed)
    }
}

impl Packer {
    /// Compresses the JSON of an object.
    pub fn pack(&self, text: &[u8]) -> Box<[u8]> {
        let beginning = text.get(..SAMPLE_MAX).unwrap_or(text);
        let sample = self.0.get_or_init(|| beginning.into());
        block::compress_prepend_size_with_dict(text, sample).into_boxed_slice()
    }

    /// Returns the JSON of a compressed object; empty if another packer has compressed it.
    pub fn unpack(&self, packed: &[u8]) -> Vec<u8> {
        let sample = self.0.get().map_or(&[][..], |it| it);
        block::decompress_size_prepended_with_dict(packed, sample).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, SAMPLE_MAX};
    use crate::call::ObjectPacker;

    fn text(number: u32) -> Vec<u8> {
        let text = format!(
            r#"{{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{{"name":"object-{number}","namespace":"default"}},"spec":{{"number":{number}}}}}"#
        );
        text.into_bytes()
    }

    #[test]
    fn similar_objects_are_kept_as_differences() {
        let packer = ObjectPacker::of(Arc::default());
        for number in [1, 2, 12_345] {
            let packed = packer.pack(&text(number));
            assert!(packed.len() < text(number).len() / 2, "{} bytes", packed.len());
            assert_eq!(packer.unpack(&packed), text(number));
        }
    }

    #[test]
    fn every_text_is_restored() {
        let packer = ObjectPacker::of(Arc::default());
        let noise = |length: usize| {
            let mut state = 1_u32;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            };
            (0..length).map(|_| next()).collect::<Vec<_>>()
        };
        for length in [0, 1, 3, 5, 12, 100, SAMPLE_MAX, 5 * SAMPLE_MAX] {
            let (first, again) = (noise(length), text(1).repeat(length / 64));
            assert_eq!(packer.unpack(&packer.pack(&first)), first);
            assert_eq!(packer.unpack(&packer.pack(&again)), again);
        }
    }
}
