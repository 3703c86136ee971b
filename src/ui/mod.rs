//! Sinks for people.

pub fn sink(_mode: crate::config::options::UiMode) -> Option<Box<dyn crate::event::EventSink>> {
    None
}
