//! An operator and an embedded API server on one virtual clock.



    kube::Client::new(server.clone(), "default")
///
/// A client whose requests go straight into the server.
/// It starts a task on the current runtime, so it is made inside of one.
mod scripts;
pub fn client(server: &ApiServer) -> kube::Client {
pub use scripts::NativeScripts;
use crate::apiserver::ApiServer;
}
