//! layer: an epoch for each request of a tower service.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::epoch::Epoch;
use crate::future::InEpoch;

const LONGEST_LABEL: usize = tslab_sys::TSLAB_LABEL_BYTES - 1;

/// Opens an epoch for each request, and closes it when the response's future ends. Where no epoch
/// can be opened, the request is served outside. A body that is sent later is outside, too; what it
/// refers to stays valid.
#[derive(Clone, Debug)]
pub struct EpochLayer<L>(L);

impl<L> EpochLayer<L> {
    /// `label` names the kind of a request, such as its route: few different ones, since the first
    /// 4,094 are told apart. What is longer than 63 bytes is cut.
    ///
    /// ```
    /// let layer = tslab::EpochLayer::new(|request: &String| format!("GET {request}").into());
    /// # let _: tslab::EpochLayer<_> = layer;
    /// ```
    pub fn new<R>(label: L) -> Self
    where
        L: Fn(&R) -> Cow<'static, str>,
    {
        Self(label)
    }
}

impl<S, L: Clone> Layer<S> for EpochLayer<L> {
    type Service = EpochService<S, L>;

    fn layer(&self, inner: S) -> Self::Service {
        EpochService { inner, label: self.0.clone() }
    }
}

/// What [`EpochLayer`] makes of a service.
#[derive(Clone, Debug)]
pub struct EpochService<S, L> {
    inner: S,
    label: L,
}

impl<R, S, L> Service<R> for EpochService<S, L>
where
    S: Service<R>,
    L: Fn(&R) -> Cow<'static, str>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = InEpoch<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let label = (self.label)(&request);
        let Ok(epoch) = Epoch::open(cut(&label)) else {
            return InEpoch::new(self.inner.call(request), None);
        };
        let future = epoch.enter(|| self.inner.call(request));
        InEpoch::new(future, Some(Arc::new(epoch)))
    }
}

fn cut(label: &str) -> &str {
    let is_end = |at: &usize| label.is_char_boundary(*at);
    &label[..(0..=LONGEST_LABEL).rev().find(is_end).unwrap_or(0)]
}
