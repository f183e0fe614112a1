//! A client inside of this process for one user.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Body;
use tower::Service;

use crate::{ApiServer, ResponseBody, rbac::User};

/// The server for one user. It is a service like [`ApiServer`].
#[derive(Clone, Debug)]
pub struct ClientOf {
    server: ApiServer,
    user: User,
}

impl ClientOf {
    pub(super) fn new(server: ApiServer, user: User) -> Self {
        Self { server, user }
    }
}

impl<B> Service<Request<B>> for ClientOf
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.user.clone());
        self.server.call(request)
    }
}
