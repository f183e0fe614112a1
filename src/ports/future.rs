//! The future of traits.

/// A future of a trait like these; boxed so that the traits stay object-safe and builds short.
pub type BoxFuture<'a, T> = futures::future::BoxFuture<'a, T>;
