//! An operator and an embedded API server on one virtual clock.

mod scripts;

pub use self::scripts::NativeScripts;
use crate::apiserver::ApiServer;
use crate::logic::peering::Identity;

/// An operator of this name.
pub fn identity(name: &str) -> Identity {
    Identity { peer: name.to_owned(), process: name.to_owned() }
}

/// A client whose requests go straight into the server.
///
/// It starts a task on the current runtime, so it is made inside of one.
pub fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.clone(), "default")
}
