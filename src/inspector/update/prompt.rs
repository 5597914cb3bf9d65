//! A line that is typed: what is offered for it, and what happens on Enter.

use crate::filter::{Known, complete};
use crate::inspector::keymap::{BINDINGS, Context, Deed, Key};
use crate::inspector::model::prompt::{Does, Kind, Offer, Prompt, TYPED_MAX};
use crate::inspector::model::{Model, Overlay};
use crate::inspector::msg::Effect;
use crate::inspector::theme::Role;
use crate::inspector::update::{act, detail, filter, keys};
use crate::task::{parse_duration, visible};
use tui_input::InputRequest;

/// What is offered at most.
const OFFERS_MAX: usize = 200;

/// Opens a line.
pub fn open(model: &mut Model, kind: Kind) {
    let text = match &kind {
        Kind::Filter => model.sift.as_ref().map_or(String::new(), |sift| sift.filter.as_str().to_owned()),
        Kind::Search => model.ui.needle.clone(),
        Kind::Palette | Kind::Later(..) => String::new(),
    };
    model.ui.overlay = Some(Overlay::Prompt(Box::new(Prompt::new(kind, &text))));
    offer(model);
}

/// Takes a change of the line.
pub fn typed(model: &mut Model, request: InputRequest) {
    let Some(Overlay::Prompt(prompt)) = &mut model.ui.overlay else { return };
    let full = prompt.input.value().chars().count() >= TYPED_MAX;
    if !(full && matches!(request, InputRequest::InsertChar(_))) {
        prompt.input.handle(request);
        model.changed = true;
        offer(model);
    }
}

/// Chooses another offer.
pub fn choose(model: &mut Model, by: isize) {
    if let Some(Overlay::Prompt(prompt)) = &mut model.ui.overlay {
        prompt.choose(by);
    }
}

/// Takes the offer that is chosen, else the first.
pub fn take_offer(model: &mut Model) {
    let Some(Overlay::Prompt(prompt)) = &mut model.ui.overlay else { return };
    let Some(offer_taken) = prompt.offered.get(prompt.chosen.unwrap_or(0)).cloned() else { return };
    match offer_taken.does {
        Does::Replace(at, with) => prompt.replace(at, &with),
        // What is done is done on Enter; Tab only goes on to the next one.
        Does::Deed(_) | Does::Queue(_) => return prompt.choose(1),
    }
    offer(model);
}

/// Does what the line says.
pub fn submit(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(Overlay::Prompt(prompt)) = &mut model.ui.overlay else { return };
    let text = prompt.input.value().trim().to_owned();
    match prompt.kind.clone() {
        Kind::Filter if prompt.chosen.is_some() => take_offer(model),
        Kind::Filter => match prompt.filter() {
            Ok(filter) => {
                model.ui.overlay = None;
                filter::apply(model, filter);
            }
            Err(error) => prompt.error = Some(error),
        },
        Kind::Search => {
            model.ui.overlay = None;
            model.ui.needle = text;
            detail::search(model, true);
        }
        Kind::Palette => {
            let chosen = prompt.offered.get(prompt.chosen.unwrap_or(0)).cloned();
            model.ui.overlay = None;
            match chosen.map(|offer| offer.does) {
                Some(Does::Deed(deed)) => keys::perform(model, deed, effects),
                Some(Does::Queue(queue)) => keys::select_queue(model, queue),
                Some(Does::Replace(..)) => {}
                None => model.say(Role::Soon, format!("there is no command `{}`", visible(&text))),
            }
        }
        Kind::Later(targets, example) => match parse_duration(&text) {
            Ok(after) => act::ask_later(model, targets, example, after),
            Err(what) => prompt.error = Some(crate::filter::FilterError { at: 0..text.len(), what, hint: None }),
        },
    }
}

/// Finds what can be offered for the line as it is.
fn offer(model: &mut Model) {
    let offered = match &model.ui.overlay {
        Some(Overlay::Prompt(prompt)) => match prompt.kind {
            Kind::Filter => completions(prompt, &known(model)),
            Kind::Palette => commands(model, prompt.input.value()),
            Kind::Search | Kind::Later(..) => Vec::new(),
        },
        _ => return,
    };
    let Some(Overlay::Prompt(prompt)) = &mut model.ui.overlay else { return };
    prompt.error = match prompt.kind {
        // What is being typed is not yet wrong at its end.
        Kind::Filter => prompt.filter().err().filter(|error| error.at.end < prompt.input.value().len()),
        _ => None,
    };
    prompt.offered = offered;
    prompt.chosen = None;
}

fn completions(prompt: &Prompt, known: &Known) -> Vec<Offer> {
    let offered = complete(prompt.input.value(), prompt.cursor(), known);
    offered
        .into_iter()
        .map(|next| Offer { text: next.with.clone(), help: next.help.into(), does: Does::Replace(next.at, next.with) })
        .collect()
}

/// Names that were seen, the queues among them.
fn known(model: &Model) -> Known {
    let queues = model.queue_list().iter().map(|counts| counts.queue.clone()).collect();
    Known { queues, ..model.known.clone() }
}

/// Commands whose words hold the letters of the text in their order, the nearest first.
fn commands(model: &Model, text: &str) -> Vec<Offer> {
    let under = keys::under(model);
    let mut found: Vec<(usize, Offer)> = Vec::new();
    let bindings = BINDINGS.iter().filter(|binding| {
        let reachable = under.layers().contains(&binding.context);
        reachable && binding.context != Context::Move && binding.deed != Deed::Palette
    });
    for binding in bindings {
        let keys: Vec<_> = binding.keys.iter().map(Key::name).collect();
        let text_of = format!("{}  {}", binding.label, binding.help);
        if let Some(far) = distance(&text_of, text) {
            let does = Does::Deed(binding.deed);
            found.push((far, Offer { text: binding.help.into(), help: keys.join(" "), does }));
        }
    }
    for counts in model.queue_list() {
        if let Some(far) = distance(&format!("queue {}", counts.queue), text) {
            let does = Does::Queue(counts.queue.clone());
            found.push((far, Offer { text: format!("queue {}", counts.queue), help: String::new(), does }));
        }
    }
    found.sort_by_key(|(far, _)| *far);
    found.into_iter().take(OFFERS_MAX).map(|(_, offer)| offer).collect()
}

/// How far apart the letters of `wanted` stand in `text`; none where they are not all there.
fn distance(text: &str, wanted: &str) -> Option<usize> {
    let lower = text.to_lowercase();
    let wanted = wanted.trim().to_lowercase();
    if let Some(at) = lower.find(&wanted) {
        return Some(at.min(50));
    }
    let mut rest = lower.char_indices();
    let mut last = 0;
    let mut far = 100;
    for c in wanted.chars().filter(|c| !c.is_whitespace()) {
        let (at, _) = rest.find(|(_, found)| *found == c)?;
        far += at - last;
        last = at;
    }
    Some(far)
}
