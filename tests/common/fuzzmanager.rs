//! A real FuzzManager server for one test, and a false one that answers whatever a test wants.

#![allow(dead_code, unreachable_pub, reason = "no file of tests needs all of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::common::{TestDir, free_port, skip, wait_until};

/// The server from packages, with a database of its own; ended when dropped.
pub struct Server {
    pub port: u16,
    folder: tempfile::TempDir,
    rate: &'static str,
    process: Option<Child>,
}

fn installed() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("fuzzmanager")
}

impl Server {
    /// None, with a word about it, if the packages could not be had.
    pub fn start() -> Option<Self> {
        Self::with_rate("10000/minute")
    }

    pub fn with_rate(rate: &'static str) -> Option<Self> {
        if !installed().join("complete").exists() {
            skip("no FuzzManager server: scripts/setup.sh --servers installs it");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(installed().join("server")).arg(folder.path());
        assert!(copy.status().unwrap().success());
        let mut server = Self { port: free_port(), folder, rate, process: None };
        server.resume();
        Some(server)
    }

    /// `manage.py WORDS`
    fn manage(&self, words: &[&str]) -> Command {
        let mut command = Command::new(installed().join("fm"));
        command.args(words).env("FM_SERVER", self.folder.path().join("server"));
        command.env("FM_RATE", self.rate).env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Something that an administrator does there.
    pub fn administer(&self, words: &[&str]) {
        assert!(self.manage(words).status().unwrap().success(), "{words:?}");
    }

    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts it again, on the same port and with the same data.
    pub fn resume(&mut self) {
        let address = format!("127.0.0.1:{}", self.port);
        self.process = Some(self.manage(&["runserver", "--noreload", &address]).spawn().unwrap());
        wait_until("the server's start", || TcpStream::connect(&address).is_ok());
    }

    pub fn token(&self) -> String {
        fs::read_to_string(installed().join("token")).unwrap().trim().to_owned()
    }

    /// Lets ffuzz in this folder report to the server.
    pub fn configure(&self, dir: &TestDir) {
        configure(dir, self.port, &self.token(), "http");
    }

    /// An answer of the REST interface below `/crashmanager/rest/`.
    pub fn get(&self, path: &str) -> Value {
        serde_json::from_slice(&self.request("GET", path, "")).unwrap()
    }

    pub fn crashes(&self) -> Vec<Value> {
        let page = self.get("crashes/?limit=1000&ordering=id");
        page["results"].as_array().unwrap().clone()
    }

    /// All collections of coverage.
    pub fn coverage(&self) -> Vec<Value> {
        let page = self.get("../../covmanager/rest/collections/");
        page["results"].as_array().unwrap().clone()
    }

    /// A file that the server has stored.
    pub fn file(&self, path: &str) -> Vec<u8> {
        fs::read(self.folder.path().join("server").join(path)).unwrap()
    }

    pub fn post(&self, path: &str, json: &Value) -> Value {
        serde_json::from_slice(&self.request("POST", path, &json.to_string())).unwrap()
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let path = path
            .strip_prefix("../../")
            .map_or_else(|| format!("crashmanager/rest/{path}"), str::to_owned);
        let head = format!(
            "{method} /{path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Token {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token(),
            body.len()
        );
        let answer = exchange(self.port, head.as_bytes());
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, _) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 ") || head.contains(" 201 "), "{method} {path}: {text}");
        let start = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
        answer[start..].to_vec()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Writes the configuration file that [`TestDir::ffuzz`] is to be given in `FM_CONFIG_PATH`.
pub fn configure(dir: &TestDir, port: u16, token: &str, proto: &str) {
    let folder = dir.path("sig");
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "[Main]\nserverhost = 127.0.0.1\nserverport = {port}\nserverproto = {proto}\n\
         serverauthtoken = {token}\nsigdir = {}\ntool = ffuzz\nclientid = host-7\nservertimeout = 20\n",
        folder.display()
    );
    dir.write("fm.conf", text);
}

fn exchange(port: u16, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// What a false server does with a request.
pub enum Answer {
    /// Status line and headers without the last line end, and a body.
    Say(&'static str, &'static str),
    /// This file.
    File(Vec<u8>),
    /// The beginning of a long file, and a byte now and then until the client has enough.
    Drip,
    /// The real server at this port gets it and answers.
    Forward(u16),
    /// The real server gets it, and its answer is lost.
    Lose(u16),
    /// Nothing, for as long as the client waits.
    Silence,
    /// Nothing, and the connection ends.
    HangUp,
}

/// A server with given answers: the last answer again and again.
pub struct FalseServer {
    pub port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl FalseServer {
    /// Its thread ends with the test's process.
    pub fn start(answers: Vec<Answer>) -> Self {
        assert!(!answers.is_empty());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(vec![]));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for (index, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                let answer = &answers[index.min(answers.len() - 1)];
                respond(stream, answer, &seen);
            }
        });
        Self { port, requests }
    }

    /// All requests so far, with their bodies.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub fn configure(&self, dir: &TestDir) {
        configure(dir, self.port, "very-secret", "http");
    }
}

fn respond(stream: TcpStream, answer: &Answer, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let Some(request) = read_request(&mut reader) else {
        let _ = reader.get_mut().write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n");
        return;
    };
    seen.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
    // A client that does not wait for it is no fault of the test.
    let mut say = |bytes: &[u8]| drop(reader.get_mut().write_all(bytes));
    match answer {
        Answer::Say(head, body) => {
            let length = body.len();
            say(format!(
                "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .as_bytes());
        }
        Answer::File(bytes) => {
            let length = bytes.len();
            say(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes());
            say(bytes);
        }
        Answer::Drip => drip(reader.into_inner()),
        Answer::Forward(port) => say(&exchange(*port, &closing(&request))),
        Answer::Lose(port) => drop(exchange(*port, &closing(&request))),
        Answer::Silence => drop(reader.read_line(&mut String::new())),
        Answer::HangUp => {}
    }
}

fn drip(mut stream: TcpStream) {
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while stream.write_all(b"x").is_ok() && !matches!(stream.read(&mut [0]), Ok(0)) {}
}

/// Head and body; None if the client speaks something else.
fn read_request(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let (mut request, mut length) = (vec![], 0);
    loop {
        let start = request.len();
        reader.read_until(b'\n', &mut request).ok()?;
        let line = String::from_utf8_lossy(&request[start..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        match line.trim() {
            "" if request.len() > 2 => break,
            "" => return None,
            // The first bytes of TLS, for example.
            line if start == 0 && !line.contains("http/1") => return None,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.extend(body);
    Some(request)
}

/// The same request, after which the connection ends.
fn closing(request: &[u8]) -> Vec<u8> {
    let end = request.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    [&request[..end], b"Connection: close\r\n", &request[end..]].concat()
}
