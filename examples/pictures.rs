//! Makes the pictures of the README from the real program: `threadmill demo` in a pseudo-terminal, keys pressed, the screen
//! written as SVG. `script/pictures` builds both and calls this.

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::fmt::Write as _;
use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The size of a character in a picture.
const CELL: (f32, f32) = (8.4, 18.0);
/// Space around the screen.
const MARGIN: f32 = 14.0;
/// The colours of the terminal: background, text.
const GROUND: (&str, &str) = ("#16181d", "#d6d9de");
/// How long each picture of the recording stays, in seconds.
const STAYS: f32 = 2.2;
/// How long a text may take to come.
const LIMIT: Duration = Duration::from_secs(90);

/// A program and its screen.
struct Stage {
    keyboard: Box<dyn Write + Send>,
    parser: Arc<Mutex<vt100::Parser>>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

impl Stage {
    fn start(binary: &str, columns: u16, rows: u16) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(binary);
        command.args(["demo"]);
        command.env("TERM", "xterm-256color");
        // Backtraces would show where this was built.
        command.env_remove("RUST_BACKTRACE");
        let child = pair.slave.spawn_command(command).expect("the program can be started");
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().expect("the terminal can be read");
        let keyboard = pair.master.take_writer().expect("the terminal can be written");
        let parser = Arc::new(Mutex::new(parser(columns, rows)));
        let shared = Arc::clone(&parser);
        std::thread::spawn(move || {
            // The terminal lives as long as its output is read.
            let _master = pair.master;
            let mut chunk = [0; 8192];
            while let Ok(read @ 1..) = output.read(&mut chunk) {
                shared.lock().expect("no reader panics").process(&chunk[..read]);
            }
        });
        Self { keyboard, parser, child }
    }

    fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes input");
        self.keyboard.flush().expect("the terminal takes input");
        std::thread::sleep(Duration::from_millis(700));
    }

    fn wait_for(&self, text: &str) {
        let start = Instant::now();
        while !self.screen().contents().contains(text) {
            assert!(start.elapsed() < LIMIT, "{text} never came:\n{}", self.screen().contents());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn screen(&self) -> vt100::Screen {
        self.parser.lock().expect("no reader panics").screen().clone()
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (Some(binary), Some(folder)) = (args.next(), args.next()) else { panic!("pictures BINARY FOLDER") };
    // The terminal starts it elsewhere.
    let binary = std::fs::canonicalize(binary).expect("the program is there").display().to_string();
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder).expect("the folder can be made");
    let mut wide = Stage::start(&binary, 160, 45);
    wide.wait_for("live");
    // The bars look back a minute.
    std::thread::sleep(Duration::from_secs(45));
    wide.keys("5");
    write(folder, "inspector-wide.svg", &picture(&[wide.screen()]));
    wide.keys("i");
    write(folder, "inspector-incidents.svg", &picture(&[wide.screen()]));
    end(wide);
    let mut narrow = Stage::start(&binary, 80, 24);
    narrow.wait_for("live");
    std::thread::sleep(Duration::from_secs(30));
    let mut frames = vec![narrow.screen()];
    for keys in ["5", "j", "\r", "\x1b", "i", "\r", "a", "R", "\x1b", ":", "\x1b", "/age<1h attempt>1 fu", "\t"] {
        narrow.keys(keys);
        frames.push(narrow.screen());
    }
    write(folder, "inspector-recording.svg", &picture(&frames));
    write(folder, "inspector-narrow.svg", &picture(&frames[1..2]));
    end(narrow);
}

fn parser(columns: u16, rows: u16) -> vt100::Parser {
    let at_least_one = |number| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
    vt100::Parser::new(at_least_one(rows), at_least_one(columns), 0)
}

fn size_of(screen: &vt100::Screen) -> (u16, u16) {
    let (rows, columns) = screen.size();
    (rows.get(), columns.get())
}

fn end(mut stage: Stage) {
    stage.keys("\x03");
    let _ = stage.child.wait();
}

fn write(folder: &Path, name: &str, svg: &str) {
    std::fs::write(folder.join(name), svg).expect("the picture can be written");
    println!("{}", folder.join(name).display());
}

/// One picture, or several that follow each other for ever.
fn picture(frames: &[vt100::Screen]) -> String {
    let (rows, columns) = frames.first().map_or((1, 1), size_of);
    let width = f32::from(columns) * CELL.0 + MARGIN * 2.0;
    let height = f32::from(rows) * CELL.1 + MARGIN * 2.0;
    // What each text says of itself as an attribute would lose against a rule of the style.
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" font-size=\"14\" font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" \
         fill=\"{}\">\n<style>text{{white-space:pre}}",
        GROUND.1
    );
    let total = STAYS * frames.len() as f32;
    if frames.len() > 1 {
        let part = 100.0 / frames.len() as f32;
        // Writing to a string cannot fail.
        let _ = write!(
            svg,
            ".f{{visibility:hidden;animation:show {total:.1}s steps(1) infinite}}@keyframes show{{0%{{visibility:visible}}\
             {part:.3}%{{visibility:hidden}}}}"
        );
    }
    svg.push_str("</style>\n");
    let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>", GROUND.0);
    for (nth, frame) in frames.iter().enumerate() {
        if frames.len() > 1 {
            let _ = writeln!(svg, "<g class=\"f\" style=\"animation-delay:{:.1}s\">", STAYS * nth as f32);
        }
        draw(&mut svg, frame);
        if frames.len() > 1 {
            svg.push_str("</g>\n");
        }
    }
    svg + "</svg>\n"
}

/// How a run of cells looks.
#[derive(PartialEq, Clone)]
struct Look {
    text: String,
    ground: Option<String>,
    bold: bool,
}

fn draw(svg: &mut String, screen: &vt100::Screen) {
    let (rows, columns) = size_of(screen);
    for row in 0..rows {
        let mut runs: Vec<(Look, u16, u16, String)> = Vec::new();
        for column in 0..columns {
            let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else { continue };
            let look = look(cell);
            let text = if cell.has_contents() { cell.contents() } else { " " };
            let wide = if cell.is_wide() { 2 } else { 1 };
            match runs.last_mut() {
                Some((last, _, cells, content)) if *last == look => {
                    content.push_str(text);
                    *cells += wide;
                }
                _ => runs.push((look, column, wide, text.to_owned())),
            }
        }
        for (look, column, cells, text) in runs {
            run(svg, row, column, cells, &look, &text);
        }
    }
}

fn run(svg: &mut String, row: u16, column: u16, cells: u16, look: &Look, text: &str) {
    let (x, y) = (MARGIN + f32::from(column) * CELL.0, MARGIN + f32::from(row) * CELL.1);
    let width = f32::from(cells) * CELL.0;
    if let Some(ground) = &look.ground {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{ground}\"/>",
            CELL.1
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let bold = if look.bold { " font-weight=\"bold\"" } else { "" };
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" fill=\"{}\"{bold}>{escaped}</text>",
        y + CELL.1 * 0.75,
        look.text
    );
}

fn look(cell: &vt100::Cell) -> Look {
    let text = colour(cell.fgcolor()).unwrap_or_else(|| GROUND.1.to_owned());
    let ground = colour(cell.bgcolor());
    let (text, ground) =
        if cell.inverse() { (ground.unwrap_or_else(|| GROUND.0.to_owned()), Some(text)) } else { (text, ground) };
    Look { text, ground, bold: cell.bold() }
}

/// A colour of the terminal; none for its own.
fn colour(colour: vt100::Color) -> Option<String> {
    const NAMED: [&str; 16] = [
        "#3b4048", "#e06c75", "#8fc379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d6d9de", "#5c6370", "#ff7a85",
        "#a5e08c", "#f5d08b", "#71bfff", "#d688ed", "#66c6d2", "#ffffff",
    ];
    match colour {
        vt100::Color::Default => None,
        vt100::Color::Rgb(r, g, b) => Some(format!("#{r:02x}{g:02x}{b:02x}")),
        vt100::Color::Idx(index @ 0..=15) => Some(NAMED[usize::from(index)].to_owned()),
        vt100::Color::Idx(index @ 16..=231) => {
            let cube = index - 16;
            let level = |part: u8| if part == 0 { 0 } else { 55 + part * 40 };
            Some(format!("#{:02x}{:02x}{:02x}", level(cube / 36), level(cube / 6 % 6), level(cube % 6)))
        }
        vt100::Color::Idx(index) => {
            let grey = 8 + (index - 232) * 10;
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
    }
}
