//! A web server for one page: the HTTP subset needed to fetch metrics, with bounds on every request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of concurrent requests; excess connections get no answer.
const MOST: usize = 8;
/// Maximum length of a request.
const REQUEST: usize = 8 << 10;
/// Time limit to read and answer a request.
const TIME: Duration = Duration::from_secs(5);
/// Pause after a failed `accept`.
const PAUSE: Duration = Duration::from_millis(50);

/// Renders the current page; None before the first status.
pub(super) type PageSource = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Serves the page until dropped.
#[derive(Debug)]
pub(super) struct MetricsServer {
    over: Arc<AtomicBool>,
    address: SocketAddr,
}

impl MetricsServer {
    pub(super) fn start(address: SocketAddr, page: PageSource) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&over);
        thread::Builder::new().name("metrics".into()).spawn(move || {
            accept(&listener, &its, &page);
        })?;
        Ok(Self { over, address })
    }

    #[cfg(test)]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread, which waits for a connection.
        let _ = TcpStream::connect_timeout(&self.address, PAUSE);
    }
}

fn accept(listener: &TcpListener, over: &AtomicBool, page: &PageSource) {
    let under_way = Arc::new(AtomicUsize::new(0));
    while !over.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            thread::park_timeout(PAUSE);
            continue;
        };
        if under_way.load(Ordering::Relaxed) >= MOST {
            continue;
        }
        under_way.fetch_add(1, Ordering::Relaxed);
        let (page, count) = (Arc::clone(page), Arc::clone(&under_way));
        let answer = move || {
            // A client that disconnects misses the answer.
            let _ = answer(stream, &page);
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().spawn(answer).is_err() {
            under_way.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn answer(mut stream: TcpStream, page: &PageSource) -> io::Result<()> {
    let deadline = Instant::now() + TIME;
    let request = read(&mut stream, deadline)?;
    let (status, text) = respond(&request, page);
    let head_only = request.starts_with(b"HEAD ");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    write(&mut stream, head.as_bytes(), deadline)?;
    if !head_only {
        write(&mut stream, text.as_bytes(), deadline)?;
    }
    Ok(())
}

/// Returns the HTTP status and the body.
fn respond(request: &[u8], page: &PageSource) -> (&'static str, String) {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    match (method, path) {
        (b"GET" | b"HEAD", b"/metrics" | b"/") => match page() {
            Some(text) => ("200 OK", text),
            None => ("503 Service Unavailable", "the campaign has not begun yet\n".into()),
        },
        (b"GET" | b"HEAD", _) => ("404 Not Found", "the numbers are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", "only GET is answered\n".into()),
    }
}

/// Reads up to the empty line that ends the header.
fn read(stream: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let count = stream.read(&mut buffer)?;
        if count == 0 || request.len() + count > REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        request.extend_from_slice(&buffer[..count]);
    }
    Ok(request)
}

fn write(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        let count = stream.write(bytes)?;
        bytes = &bytes[count..];
    }
    Ok(())
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn server(text: Option<&'static str>) -> MetricsServer {
        let page = Arc::new(move || text.map(str::to_owned));
        MetricsServer::start((Ipv4Addr::LOCALHOST, 0).into(), page).unwrap()
    }

    fn ask(server: &MetricsServer, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request).unwrap();
        let mut text = Vec::new();
        // A refused connection is reset.
        let _ = stream.read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_page_is_there_and_nothing_else() {
        let server = server(Some("a 1\n"));
        let good = ask(&server, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
        assert!(good.contains("\r\nContent-Length: 4\r\n") && good.ends_with("\r\n\r\na 1\n"));
        let head = ask(&server, b"HEAD /metrics?x=1 HTTP/1.0\r\n\r\n");
        assert!(head.contains("200 OK") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(&server, b"GET /etc HTTP/1.1\r\n\r\n").contains(" 404 "));
        assert!(ask(&server, b"POST / HTTP/1.1\r\n\r\n").contains(" 405 "));
        assert!(ask(&self::server(None), b"GET / HTTP/1.1\r\n\r\n").contains(" 503 "));
    }

    #[test]
    fn who_talks_without_end_or_not_at_all_stops_nobody() {
        let server = server(Some("a 1\n"));
        assert_eq!(ask(&server, &[b'x'; 3 * REQUEST]), "");
        // The previous connection may still be counted.
        let silent: Vec<TcpStream> =
            (2..MOST).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        assert!(ask(&server, b"GET / HTTP/1.1\r\n\r\n").contains("200 OK"));
        assert_eq!(silent.len(), MOST - 2);
        let address = server.address();
        drop(server);
        // The thread closes the port asynchronously.
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpListener::bind(address).is_err() {
            assert!(Instant::now() < deadline);
            thread::park_timeout(Duration::from_millis(5));
        }
    }
}
