//! Mail: by SMTP, or as files in a folder where none is configured.

use std::{
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use lettre::{
    AsyncFileTransport, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    message::{Attachment, Mailbox, MultiPart, SinglePart, header::ContentType},
    transport::smtp,
};

/// One attempt may take this long, with all that SMTP says back and forth.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What is sent.
#[derive(Debug, Clone)]
pub struct Mail {
    /// The same at every attempt, so that who gets it twice can tell.
    pub id: String,
    /// When it was written, in milliseconds since 1970.
    pub written_at: i64,
    /// One address.
    pub to: String,
    /// One line.
    pub subject: String,
    /// For readers of text.
    pub text: String,
    /// For all others.
    pub html: String,
    /// Name, type and content of a file that goes with it.
    pub file: Option<(String, &'static str, Vec<u8>)>,
}

/// Why a mail was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounce {
    /// For people.
    pub message: String,
    /// Whether trying again cannot help.
    pub is_final: bool,
}

/// Sends mail.
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
    /// One that speaks to an SMTP server, such as `smtps://user:secret@mail.acme.com`, or
    /// `smtp://…:587?tls=required` for STARTTLS. Without one it writes files into `folder`, which exists.
    ///
    /// Errors: an address that cannot be read, without its password.
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

    /// One attempt.
    pub async fn send(&self, mail: Mail) -> Result<(), Bounce> {
        let message = self.compose(mail).map_err(|message| Bounce { message, is_final: true })?;
        match &self.way {
            Way::Files(files) => files.send(message).await.map(|_| ()).map_err(|error| Bounce {
                message: format!("the mail could not be written: {error}"),
                is_final: false,
            }),
            Way::Smtp(server) => {
                // The time of the transport is that of one command, and there are many.
                let sent = tokio::time::timeout(TIMEOUT, server.send(message)).await;
                let sent = sent.map_err(|_| Bounce {
                    message: format!("the mail server took longer than {} s", TIMEOUT.as_secs()),
                    is_final: false,
                })?;
                sent.map(|_| ()).map_err(|error| bounce(&error))
            }
        }
    }

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
        let both = MultiPart::alternative_plain_html(mail.text, mail.html);
        let composed = match mail.file {
            None => builder.multipart(both),
            Some((name, content_type, bytes)) => {
                let content_type = ContentType::parse(content_type)
                    .map_err(|error| format!("the file's type cannot be used: {error}"))?;
                let file: SinglePart = Attachment::new(name).body(bytes, content_type);
                builder.multipart(MultiPart::mixed().multipart(both).singlepart(file))
            }
        };
        composed.map_err(|error| format!("the mail cannot be written: {error}"))
    }
}

/// What a server said, for people: its code and its words.
fn bounce(error: &smtp::Error) -> Bounce {
    let message: String = match error.status() {
        Some(code) => {
            let said = std::error::Error::source(error).map(ToString::to_string);
            format!("the mail server answered {code}: {}", said.unwrap_or_default())
        }
        None if error.is_timeout() => "the mail server does not answer".to_owned(),
        None => format!("the mail server could not be reached: {error}"),
    };
    // What is wrong with this mail or its receiver stays wrong. A password that is, or a sender who may not,
    // is for the operator to mend, and no mail should be lost until he does.
    let code = error.status().map(u16::from);
    let is_final = matches!(code, Some(550..=554 | 556));
    Bounce { message: message.chars().take(300).collect(), is_final }
}

/// A subject is one line, whatever a name holds.
fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}
