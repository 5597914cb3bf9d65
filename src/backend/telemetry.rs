//! What happens, as it happens: the messages of both channels.

use crate::backend::connection::Subscription;
use crate::backend::{Backend, BackendError, TelemetryEvent};
use futures_util::StreamExt;

/// A subscription. It ends when the connection does, or when another server has become the one; then another is needed.
pub struct TelemetryStream {
    subscription: Subscription,
    wake: String,
}

impl Backend {
    /// Subscribes to the events of all queues.
    ///
    /// # Errors
    /// Why it could not.
    pub async fn telemetry(&self) -> Result<TelemetryStream, BackendError> {
        let mut subscription = self.link().pubsub().await?;
        let wake = self.keys().wake();
        for channel in [self.keys().telemetry(), wake.clone()] {
            subscription.pubsub.subscribe(&channel).await.map_err(|e| BackendError::sort(e, self.endpoint()))?;
        }
        Ok(TelemetryStream { subscription, wake })
    }
}

impl TelemetryStream {
    /// The next event; `None` where the connection has ended. Messages that mean nothing to us are passed over.
    pub async fn next(&mut self) -> Option<TelemetryEvent> {
        let Subscription { pubsub, moves } = &mut self.subscription;
        let mut messages = pubsub.on_message();
        loop {
            let message = tokio::select! {
                message = messages.next() => message?,
                // Nobody publishes there any more. An error means that the backend is gone; the messages go on.
                Ok(()) = moves.changed() => return None,
            };
            let text = String::from_utf8_lossy(message.get_payload_bytes());
            if message.get_channel_name() == self.wake {
                return Some(TelemetryEvent::Wake(text.into_owned()));
            }
            if let Some(event) = event_of(&text) {
                return Some(event);
            }
        }
    }
}

pub(super) fn event_of(text: &str) -> Option<TelemetryEvent> {
    match text.split_once(':')? {
        ("ingress", queue) => Some(TelemetryEvent::Ingress(queue.to_owned())),
        ("egress", queue) => Some(TelemetryEvent::Egress(queue.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_may_have_a_colon_in_its_name_and_nonsense_is_nothing() {
        assert_eq!(event_of("ingress:a:b"), Some(TelemetryEvent::Ingress("a:b".into())));
        assert_eq!(event_of("egress:"), Some(TelemetryEvent::Egress(String::new())));
        assert_eq!(event_of("hello"), None);
        assert_eq!(event_of("other:x"), None);
    }
}
