//! The screens at three sizes, with their colours.

use crate::inspector::model::Screen;
use crate::inspector::options::Options;
use crate::inspector::source::Body;
use crate::inspector::tests::stage::Stage;
use crate::task::Segment;
use std::time::Duration;

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (160, 50)];

/// One picture at each size after these keys.
fn check(name: &str, keys: &str) {
    for (width, height) in SIZES {
        let mut stage = Stage::new(width, height);
        stage.keys(keys);
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), stage.in_colour());
    }
}

#[test]
fn main_screen() {
    check("main", "");
}

#[test]
fn tasks_of_each_segment() {
    let mut shown = String::new();
    for key in ["1", "2", "3", "4", "5"] {
        let mut stage = Stage::new(80, 24);
        stage.keys(key).keys("jj<space>");
        shown.push_str(&stage.text());
    }
    insta::assert_snapshot!("segments_80x24", shown);
}

#[test]
fn detail() {
    check("detail", "<enter><enter>");
}

#[test]
fn question_for_one() {
    check("requeue", "<enter>R");
}

#[test]
fn question_with_a_word() {
    check("purge", "Pemail");
}

#[test]
fn help() {
    check("help", "?");
}

#[test]
fn workers_and_log() {
    check("workers", "w");
    let mut stage = Stage::new(80, 24);
    stage.keys("<enter>RyeY");
    assert_eq!(stage.model.ui.screen, Screen::Log);
    insta::assert_snapshot!("log_80x24", stage.text());
}

#[test]
fn silence() {
    for (width, height) in SIZES {
        let mut stage = Stage::new(width, height);
        stage.answers = false;
        for _ in 0..8 {
            stage.pass(Duration::from_secs(1));
        }
        stage.keys("<enter>R");
        insta::assert_snapshot!(format!("silence_{width}x{height}"), stage.in_colour());
    }
}

#[test]
fn other_looks() {
    let ascii = Options { ascii: true, color: false, queue: Some("emails".into()), ..Options::default() };
    let stage = Stage::with(80, 24, Options { read_only: true, ..ascii });
    assert!(stage.text().is_ascii());
    insta::assert_snapshot!("ascii_80x24", stage.in_colour());
    let light = Options { theme: crate::inspector::ThemeName::Light, ..Options::default() };
    insta::assert_snapshot!("light_80x24", Stage::with(80, 24, light).in_colour());
    let ansi = Options { theme: crate::inspector::ThemeName::Ansi, ..Options::default() };
    insta::assert_snapshot!("ansi_80x24", Stage::with(80, 24, ansi).in_colour());
}

#[test]
fn records_that_are_odd() {
    let mut stage = Stage::new(120, 30);
    let list = stage.shop.list("emails", Segment::Failed);
    list[0].body = Body::Unreadable("`args` is no list".into());
    list[0].stored = b"{\"id\": \"x\", \"args\": 5, \x1b[2J\xff}".to_vec();
    list[1].body = Body::Missing;
    list[1].stored.clear();
    list[2].quarantined = true;
    list[2].places.push((Segment::Ready, -5e13));
    stage.pass(Duration::from_secs(1));
    let mut shown = stage.text();
    for keys in ["<enter>j", "j", "3"] {
        stage.keys(keys);
        shown.push_str(&stage.text());
    }
    insta::assert_snapshot!("odd_120x30", shown);
}

#[test]
fn before_anything_is_known() {
    let mut stage = Stage::new(80, 24);
    let model = crate::inspector::model::Model::new(Options::default(), (80, 24), stage.model.clock);
    stage.model = model;
    insta::assert_snapshot!("connecting_80x24", stage.text());
}
