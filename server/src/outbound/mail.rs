//! Mail: by SMTP, or as files in a folder where none is configured.
//!
//! A file is the mail as it would be sent, `outbox/39f25578-bc8e-46f7-9b80-d7eec1f2c474.eml`:
//!
//! ```text
//! Message-ID: <01a21f86-7bda-7000-90de-23095f087cb9.0@localhost>
//! Date: Sat, 28 Nov 2026 00:20:37 +0000
//! From: Inlay <inlay@localhost>
//! To: boss@acme.example
//! Subject: Weekly usage
//! List-Unsubscribe: <https://inlay.acme.com/v1/unsubscribe?token=…>
//! List-Unsubscribe-Post: List-Unsubscribe=One-Click
//!
//! multipart/mixed                the file of the report beside the text
//!   multipart/alternative        plain text, or HTML
//!     text/plain
//!     multipart/related          HTML with the picture that it shows
//!       text/html
//!       image/png
//!   text/csv
//! ```
//!
//! Without a file the mail begins with `multipart/alternative`, without a picture the HTML stands alone.

use std::{
    io,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use lettre::{
    AsyncFileTransport, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    message::{
        Attachment, Mailbox, MultiPart, SinglePart,
        header::{ContentType, HeaderName, HeaderValue},
    },
    transport::smtp,
};

/// Time limit of one attempt, with all commands of SMTP and their replies.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Removes the mails in a folder that were written before; returns how many. Other files stay, and a folder that is not there
/// has none.
///
/// Errors: a folder that cannot be read.
pub fn remove_old_mails(folder: &Path, before: SystemTime) -> io::Result<usize> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut count = 0;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let is_mail = path.extension().is_some_and(|extension| extension == "eml");
        // Another process may have taken it away.
        let written = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        if is_mail && written.is_some_and(|written| written < before) {
            count += usize::from(std::fs::remove_file(&path).is_ok());
        }
    }
    Ok(count)
}

/// A mail to one recipient.
#[derive(Debug, Clone)]
pub struct Mail {
    /// Local part of the `Message-ID`; the same at every attempt, so that a recipient detects a
    /// copy.
    pub id: String,
    /// When it was written, in milliseconds since 1970.
    pub written_at: i64,
    /// E-mail address of the recipient.
    pub to: String,
    /// Subject; control characters, such as line breaks, become spaces.
    pub subject: String,
    /// Body as plain text.
    pub text: String,
    /// Body as HTML, an alternative to `text`.
    pub html: String,
    /// The link that stops mails of this kind to this address; absent: nothing to stop.
    pub unsubscribe: Option<String>,
    /// PNG that the HTML shows as `cid:` and this id; absent: no picture.
    pub picture: Option<(&'static str, Vec<u8>)>,
    /// Attached file: name, media type and content; absent: no attachment.
    pub file: Option<(String, &'static str, Vec<u8>)>,
}

/// Why a mail was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounce {
    /// Reason as text, for logs and the status of the delivery.
    pub message: String,
    /// Whether trying again cannot help.
    pub is_final: bool,
}

/// Sends mails by SMTP, or writes them into a folder as files.
#[derive(Clone)]
pub struct Mailer {
    from: Mailbox,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
    Files(AsyncFileTransport<Tokio1Executor>),
}

impl Mailer {
    /// A mailer for an SMTP server, such as `smtps://user:secret@mail.acme.com`, or
    /// `smtp://…:587?tls=required` for STARTTLS. Without one it writes files into `folder`, which
    /// exists.
    ///
    /// Errors: a sender or a server address that cannot be parsed, without its password.
    pub fn new(smtp_url: Option<&str>, from: Option<&str>, folder: &Path) -> Result<Self, String> {
        let from = from.unwrap_or("Inlay <inlay@localhost>");
        let from =
            from.parse().map_err(|_| format!("{from:?} is not an address to send mail from"))?;
        let way = match smtp_url {
            None => Way::Files(AsyncFileTransport::new(folder)),
            Some(url) => {
                let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
                    .map_err(|error| format!("the SMTP address cannot be used: {error}"))?;
                Way::Smtp(builder.timeout(Some(TIMEOUT)).build())
            }
        };
        Ok(Self { from, way })
    }

    /// Makes one attempt to send a mail. By SMTP it takes at most 30 seconds.
    ///
    /// Errors: why the mail was not accepted. Final when it cannot be composed, and for replies 550
    /// to 554 and 556.
    pub async fn send(&self, mail: Mail) -> Result<(), Bounce> {
        let message = self.compose(mail).map_err(|message| Bounce { message, is_final: true })?;
        match &self.way {
            Way::Files(files) => files.send(message).await.map(|_| ()).map_err(|error| Bounce {
                message: format!("the mail could not be written: {error}"),
                is_final: false,
            }),
            Way::Smtp(server) => {
                // The transport limits the time of one command, and an attempt has many.
                let sent = tokio::time::timeout(TIMEOUT, server.send(message)).await;
                let sent = sent.map_err(|_| Bounce {
                    message: format!("the mail server took longer than {} s", TIMEOUT.as_secs()),
                    is_final: false,
                })?;
                sent.map(|_| ()).map_err(|error| bounce(&error))
            }
        }
    }

    /// The mail as MIME, with the domain of the sender in its `Message-ID`.
    ///
    /// Errors: an address that cannot be parsed, a media type that is none. They are final: another attempt composes the same.
    fn compose(&self, mail: Mail) -> Result<Message, String> {
        let to: Mailbox = mail.to.parse().map_err(|_| "the address cannot be used".to_owned())?;
        let domain = self.from.email.domain();
        let written = UNIX_EPOCH + Duration::from_millis(mail.written_at.try_into().unwrap_or(0));
        let builder = Message::builder()
            .message_id(Some(format!("<{}@{domain}>", mail.id)))
            .date(written)
            .from(self.from.clone())
            .to(to)
            .subject(one_line(&mail.subject));
        let both = match mail.picture {
            None => MultiPart::alternative_plain_html(mail.text, mail.html),
            Some((id, bytes)) => {
                let content_type = ContentType::parse("image/png")
                    .map_err(|error| format!("the picture's type cannot be used: {error}"))?;
                let picture = Attachment::new_inline(id.to_owned()).body(bytes, content_type);
                let html = MultiPart::related().singlepart(SinglePart::html(mail.html));
                MultiPart::alternative()
                    .singlepart(SinglePart::plain(mail.text))
                    .multipart(html.singlepart(picture))
            }
        };
        let composed = match mail.file {
            None => builder.multipart(both),
            Some((name, content_type, bytes)) => {
                let content_type = ContentType::parse(content_type)
                    .map_err(|error| format!("the file's type cannot be used: {error}"))?;
                let file: SinglePart = Attachment::new(name).body(bytes, content_type);
                builder.multipart(MultiPart::mixed().multipart(both).singlepart(file))
            }
        };
        let mut message =
            composed.map_err(|error| format!("the mail cannot be written: {error}"))?;
        if let Some(link) = mail.unsubscribe {
            // Mail programs show a button for it (RFC 8058).
            let headers = message.headers_mut();
            headers.insert_raw(raw_header("List-Unsubscribe", format!("<{link}>")));
            let one_click = "List-Unsubscribe=One-Click".to_owned();
            headers.insert_raw(raw_header("List-Unsubscribe-Post", one_click));
        }
        Ok(message)
    }
}

/// A header that the library has no type for. `name` is ASCII, as a constant of ours.
fn raw_header(name: &'static str, value: String) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value)
}

/// The error of an attempt as a bounce: code and text of the reply, up to 300 characters.
fn bounce(error: &smtp::Error) -> Bounce {
    let message: String = match error.status() {
        Some(code) => {
            let said = std::error::Error::source(error).map(ToString::to_string);
            format!("the mail server answered {code}: {}", said.unwrap_or_default())
        }
        None if error.is_timeout() => "the mail server does not answer".to_owned(),
        None => format!("the mail server could not be reached: {error}"),
    };
    // Faults of this mail or its recipient are final. A wrong password or a forbidden sender is for
    // the operator to correct, and no mail should be lost until then.
    let code = error.status().map(u16::from);
    let is_final = matches!(code, Some(550..=554 | 556));
    Bounce { message: message.chars().take(300).collect(), is_final }
}

/// Replaces control characters, so that a subject is one line.
fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of the test")]
    fn old_mails_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3_600);
        let now = UNIX_EPOCH + hour * 400_000;
        for (name, age) in [("old.eml", 3), ("new.eml", 1), ("old.txt", 3)] {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(now - hour * age).unwrap();
        }
        assert_eq!(remove_old_mails(folder.path(), now - hour * 2).unwrap(), 1);
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["new.eml", "old.txt"]);
        assert_eq!(remove_old_mails(&folder.path().join("none"), now).unwrap(), 0);
    }
}
