//! The files of a store, in a bucket of an S3-compatible object store.
//!
//! ```text
//! s3://acme-inlay/production?region=eu-central-1                          a bucket of AWS; keys as AWS's own tools find them
//! s3://inlay?endpoint=http://minio:9000&region=us-east-1                  another one, here without TLS
//!
//! put("seg/l0/019a….seg", file)      production/<log>/seg/l0/019a….seg, unless there is one
//! ```
//!
//! Each log has a prefix of its own, so that two of them may share a bucket, and none deletes what is another's. Objects are written
//! once; the store refuses a second one of the same name (`If-None-Match: *`).

use std::{io, sync::Arc, time::Duration};

use futures::StreamExt as _;
use inlay_engine::{
    Error, Result, VfsFile,
    remote::{ObjectPart, Objects},
};
use object_store::{
    ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload,
    RetryConfig, WriteMultipart,
    aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey},
    path::Path,
};
use url::Url;
use uuid::Uuid;

use crate::calls::Calls;

/// Files above this are uploaded in parts, of which two are in memory at once.
const PART_BYTES: u64 = 16 << 20;
/// Parts on their way at once.
const PARTS_MAX: usize = 2;
/// Longest time for a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest time for a call that moves no content.
const CALL_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest time for a part of a file, for which a query waits; and the rate at which more than a little has to come.
const PART_TIME_MAX: Duration = Duration::from_secs(10);
const PART_BYTES_A_SECOND: u64 = 256 << 10;
/// Longest time for a file of any size.
const FILE_TIME_MAX: Duration = Duration::from_secs(900);
/// Calls that create an object, and the pause after the first that failed; it doubles. The library repeats all others by itself.
const CREATE_ATTEMPTS: u32 = 4;
const CREATE_PAUSE: Duration = Duration::from_millis(100);
/// An object that each log has from its beginning. A bucket without it is another one.
const MARK: &str = "INLAY";

/// Where a bucket is.
#[derive(Clone)]
pub struct BucketUrl {
    store: Arc<AmazonS3>,
    /// Path within the bucket, without the database.
    prefix: Path,
    /// As it was given, without what stands behind the question mark.
    shown: String,
}

impl BucketUrl {
    /// Reads `s3://bucket/prefix?region=…&endpoint=…`. Keys, and what is not named, come from the environment (`AWS_ACCESS_KEY_ID`, …).
    ///
    /// Errors: `Invalid` for another scheme, no bucket, a parameter that is not known.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = |detail: String| Error::invalid("events URL", detail);
        let url = Url::parse(text).map_err(|error| invalid(format!("is no URL: {error}")))?;
        let bucket = url.host_str().filter(|_| url.scheme() == "s3");
        let bucket = bucket.ok_or_else(|| invalid("is not like s3://bucket/prefix".to_owned()))?;
        let retry = RetryConfig {
            max_retries: 4,
            retry_timeout: Duration::from_secs(180),
            ..RetryConfig::default()
        };
        // A file may take any time; that nothing comes is noticed by the calls below.
        let client =
            ClientOptions::new().with_timeout_disabled().with_connect_timeout(CONNECT_TIME_MAX);
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
        builder = builder.with_client_options(client);
        for (name, value) in url.query_pairs() {
            builder = match &*name {
                "region" => builder.with_region(&*value),
                "endpoint" => {
                    builder.with_endpoint(&*value).with_allow_http(value.starts_with("http://"))
                }
                other => {
                    return Err(invalid(format!(
                        "has no parameter {other:?}; there are region and endpoint"
                    )));
                }
            };
        }
        if builder
            .get_config_value(&AmazonS3ConfigKey::Endpoint)
            .is_some_and(|it| it.starts_with("http://"))
        {
            builder = builder.with_allow_http(true);
        }
        let prefix = Path::parse(url.path().trim_matches('/'))
            .map_err(|error| invalid(format!("has no prefix that a bucket may have: {error}")))?;
        let store = builder.build().map_err(|error| invalid(error.to_string()))?;
        let shown = format!("s3://{bucket}{}", url.path());
        Ok(Self { store: Arc::new(store), prefix, shown })
    }

    /// The files of one log in the bucket.
    pub fn of(&self, calls: Calls, log: Uuid) -> Bucket {
        let root = self.prefix.clone().join(log.to_string());
        Bucket { calls, store: Arc::clone(&self.store), root, shown: self.shown.clone() }
    }
}

/// The files of one log.
pub struct Bucket {
    calls: Calls,
    store: Arc<AmazonS3>,
    root: Path,
    shown: String,
}

impl Bucket {
    /// Marks the bucket as that of the log. Fine where it is.
    ///
    /// Errors: a bucket that cannot be reached or written to.
    pub fn mark(&self) -> Result<()> {
        match self.put_bytes(MARK, b"Inlay") {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(self.error(&error)),
            _ => Ok(()),
        }
    }

    /// Checks that the bucket is that of the log.
    ///
    /// Errors: `Invalid` for another one; a bucket that cannot be reached.
    pub fn check_mark(&self) -> Result<()> {
        let (store, path) = (Arc::clone(&self.store), self.path(MARK));
        let found = self
            .calls
            .wait(CALL_TIME_MAX, async move { store.head(&path).await.map_err(io_error) });
        match found {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let log = self.root.filename().unwrap_or_default();
                let detail = format!(
                    "leads to {}, which has no files of log {log}: it is another bucket, or another prefix",
                    self.shown
                );
                Err(Error::invalid("events URL", detail))
            }
            Err(error) => Err(self.error(&error)),
        }
    }

    fn error(&self, error: &io::Error) -> Error {
        Error::Io { place: self.shown.clone(), kind: error.kind(), detail: error.to_string() }
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.root.clone(), |path, part| path.join(part))
    }

    fn put_bytes(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        let payload = PutPayload::from(bytes.to_vec());
        self.calls.wait(FILE_TIME_MAX, async move { create(&store, &path, payload).await })
    }

    /// Uploads a large file in parts. The store does not refuse a second one here, so it is asked before.
    fn put_parts(&self, name: &str, content: &dyn VfsFile, len: u64) -> io::Result<()> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        let found = self.calls.wait(CALL_TIME_MAX, {
            let (store, path) = (Arc::clone(&store), path.clone());
            async move { store.head(&path).await.map_err(io_error) }
        });
        match found {
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        let mut upload = self.calls.wait(CALL_TIME_MAX, async move {
            store.put_multipart(&path).await.map(WriteMultipart::new).map_err(io_error)
        })?;
        let mut offset = 0;
        while offset < len {
            let mut part = vec![0; PART_BYTES.min(len - offset) as usize];
            let read = read_fully(content, offset, &mut part)?;
            if read < part.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset += read as u64;
            upload = self.calls.wait(FILE_TIME_MAX, async move {
                match upload.wait_for_capacity(PARTS_MAX).await {
                    Ok(()) => upload.put(part.into()),
                    Err(error) => {
                        // Parts are in no listing, and would stay.
                        drop(upload.abort().await);
                        return Err(io_error(error));
                    }
                }
                Ok::<_, io::Error>(upload)
            })?;
        }
        // Where this fails, the parts are aborted by the library.
        self.calls
            .wait(FILE_TIME_MAX, async move { upload.finish().await.map(drop).map_err(io_error) })
    }

    /// Whether an object has the content of a file.
    fn is_same(&self, name: &str, content: &dyn VfsFile) -> io::Result<bool> {
        let len = content.len()?;
        let mut offset = 0;
        let mut is_same = true;
        self.read(name, |chunk| {
            let mut own = vec![0; chunk.len()];
            let read = read_fully(content, offset, &mut own)?;
            offset += chunk.len() as u64;
            is_same &= read == chunk.len() && own == chunk;
            Ok(())
        })?;
        Ok(is_same && offset == len)
    }

    /// Reads an object, a part at a time.
    fn read(&self, name: &str, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        let found = self
            .calls
            .wait(CALL_TIME_MAX, async move { store.get(&path).await.map_err(io_error) })?;
        let size = found.meta.size;
        let mut stream = found.into_stream();
        let mut read = 0;
        loop {
            let (next, rest) = self.calls.wait(CALL_TIME_MAX, async move {
                let next = stream.next().await.transpose().map_err(io_error)?;
                Ok::<_, io::Error>((next, stream))
            })?;
            stream = rest;
            let Some(chunk) = next else { break };
            read += chunk.len() as u64;
            each(&chunk)?;
        }
        if read == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Objects for Bucket {
    fn put(&self, name: &str, content: &dyn VfsFile) -> io::Result<()> {
        let len = content.len()?;
        let put = if len > PART_BYTES {
            self.put_parts(name, content, len)
        } else {
            let mut bytes = vec![0; len as usize];
            let read = read_fully(content, 0, &mut bytes)?;
            bytes.truncate(read);
            self.put_bytes(name, &bytes)
        };
        match put {
            // The answer to the first of two calls was lost.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if self.is_same(name, content)? { Ok(()) } else { Err(error) }
            }
            put => put,
        }
    }

    fn get(&self, name: &str, into: &dyn VfsFile) -> io::Result<()> {
        let mut offset = 0;
        self.read(name, |chunk| {
            into.write_at(offset, chunk)?;
            offset += chunk.len() as u64;
            Ok(())
        })
    }

    fn get_part(&self, name: &str, part: ObjectPart) -> io::Result<(Vec<u8>, u64)> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        let range = match part {
            ObjectPart::Tail(bytes) => GetRange::Suffix(bytes),
            ObjectPart::Range(range) => GetRange::Bounded(range),
        };
        let bytes = match &range {
            GetRange::Bounded(range) => range.end - range.start,
            _ => 0,
        };
        let time_max = PART_TIME_MAX + Duration::from_secs(bytes / PART_BYTES_A_SECOND);
        self.calls.wait(time_max, async move {
            let options = GetOptions { range: Some(range), ..GetOptions::default() };
            let found = store.get_opts(&path, options).await.map_err(io_error)?;
            let len = found.meta.size;
            Ok((found.bytes().await.map_err(io_error)?.to_vec(), len))
        })
    }

    fn list_sizes(&self, prefix: &str) -> io::Result<Vec<(String, u64)>> {
        let (store, path) = (Arc::clone(&self.store), self.path(prefix.trim_end_matches('/')));
        let root = format!("{}/", self.root);
        self.calls.wait(CALL_TIME_MAX, async move {
            let mut names = Vec::new();
            let mut stream = store.list(Some(&path));
            while let Some(object) = stream.next().await.transpose().map_err(io_error)? {
                let name = object.location.as_ref().strip_prefix(&root);
                names.extend(name.map(|name| (name.to_owned(), object.size)));
            }
            names.sort();
            Ok(names)
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        let removed = self
            .calls
            .wait(CALL_TIME_MAX, async move { store.delete(&path).await.map_err(io_error) });
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Creates an object, again where the connection failed: the store may have got all of it or nothing, and the next answer says which.
async fn create(store: &AmazonS3, path: &Path, payload: PutPayload) -> io::Result<()> {
    let create = || async {
        let created = store.put_opts(path, payload.clone(), PutMode::Create.into()).await;
        created.map(drop).map_err(io_error)
    };
    let mut pause = CREATE_PAUSE;
    for _ in 1..CREATE_ATTEMPTS {
        match create().await {
            Err(error) if error.kind() == io::ErrorKind::Other => tokio::time::sleep(pause).await,
            created => return created,
        }
        pause *= 2;
    }
    create().await
}

/// Reads until the buffer is full or the file ends.
fn read_fully(file: &dyn VfsFile, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(offset + done as u64, rest)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// The kind that callers decide by, with the text of the store.
fn io_error(error: object_store::Error) -> io::Error {
    use object_store::Error as E;
    let kind = match &error {
        E::NotFound { .. } => io::ErrorKind::NotFound,
        E::AlreadyExists { .. } | E::Precondition { .. } => io::ErrorKind::AlreadyExists,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    match kind {
        // The path is in the error of whoever asked for it.
        io::ErrorKind::NotFound => io::Error::new(kind, "the bucket has no such object"),
        kind => io::Error::new(kind, error),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Read as _, Write as _},
        net::{TcpListener, TcpStream},
        thread,
    };

    use inlay_engine::{SimVfs, Vfs as _};

    use super::*;

    #[test]
    fn a_url_names_bucket_prefix_region_and_endpoint() {
        let shown = |text: &str| {
            let url = BucketUrl::parse(text)?;
            Ok::<_, Error>((url.shown, url.prefix.to_string()))
        };
        let text = "s3://acme/production/eu?region=eu-central-1&endpoint=http://127.0.0.1:9000";
        let (url, prefix) = shown(text).unwrap();
        assert_eq!((url.as_str(), prefix.as_str()), ("s3://acme/production/eu", "production/eu"));
        assert_eq!(shown("s3://acme?region=a").unwrap().1, "");
        for wrong in ["acme", "https://acme/x", "s3:///x", "s3://acme?colour=red", "s3://acme/a//b"]
        {
            let error = shown(wrong).err().unwrap_or_else(|| panic!("{wrong}"));
            assert!(error.to_string().starts_with("events URL: "), "{error}");
        }
    }

    /// What the store does with one connection.
    enum Connection {
        /// Reads the request, and ends the connection without an answer.
        Ends,
        /// Answers with a status and a body.
        Answers(&'static str, &'static str),
    }

    /// A bucket whose store treats its connections like that, one after the other; the lines with which the requests began come with the end.
    fn bucket(connections: Vec<Connection>) -> (Bucket, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let store = AmazonS3Builder::new()
            .with_bucket_name("b")
            .with_region("us-east-1")
            .with_endpoint(endpoint)
            .with_allow_http(true)
            .with_access_key_id("key")
            .with_secret_access_key("secret");
        let served = thread::spawn(move || {
            let serve = |connection| {
                let (mut stream, _) = listener.accept().unwrap();
                let line = request_line(&stream);
                if let Connection::Answers(status, body) = connection {
                    let len = body.len();
                    let head = format!(
                        "HTTP/1.1 {status}\r\nETag: \"1\"\r\nLast-Modified: Sun, 29 Nov 2026 00:00:00 GMT\r\n"
                    );
                    let rest = format!("Content-Length: {len}\r\nConnection: close\r\n\r\n{body}");
                    stream.write_all(format!("{head}{rest}").as_bytes()).unwrap();
                }
                line
            };
            connections.into_iter().map(serve).collect()
        });
        let (calls, root) = (Calls::new().unwrap(), Path::from("log"));
        let store = Arc::new(store.build().unwrap());
        (Bucket { calls, store, root, shown: "s3://b".to_owned() }, served)
    }

    /// Reads a request to its end. Returns method and path.
    fn request_line(stream: &TcpStream) -> String {
        let mut reader = BufReader::new(stream);
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        first.split(" HTTP").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn an_object_is_created_although_connections_end() {
        use Connection::{Answers, Ends};
        let disk = SimVfs::new();
        let file = disk.create("a").unwrap();
        file.write_at(0, b"rows").unwrap();
        let (put, get) = ("PUT /b/log/seg/a", "GET /b/log/seg/a");

        let (bucket, served) = self::bucket(vec![Ends, Ends, Answers("200 OK", "")]);
        bucket.put("seg/a", &*file).unwrap();
        assert_eq!(served.join().unwrap(), [put, put, put]);

        // The store had got it, and only its answer was lost.
        let taken = || Answers("412 Precondition Failed", "");
        let (bucket, served) = self::bucket(vec![Ends, taken(), Answers("200 OK", "rows")]);
        bucket.put("seg/a", &*file).unwrap();
        assert_eq!(served.join().unwrap(), [put, put, get]);

        // Other bytes are there.
        let (bucket, served) = self::bucket(vec![Ends, taken(), Answers("200 OK", "rats")]);
        let error = bucket.put("seg/a", &*file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(served.join().unwrap(), [put, put, get]);

        // Each of them fails.
        let (bucket, served) = self::bucket(vec![Ends, Ends, Ends, Ends]);
        assert_eq!(bucket.put("seg/a", &*file).unwrap_err().kind(), io::ErrorKind::Other);
        assert_eq!(served.join().unwrap(), [put; 4]);
    }
}
