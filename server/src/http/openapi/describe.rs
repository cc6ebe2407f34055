//! What a handler takes and gives, read from its signature.
//!
//! The OpenAPI document is not written beside the handlers: each type that a handler takes or
//! answers says what it is on the wire, and the document asks the handler's own type. A body that is
//! not documented cannot be taken, and an answer that is not documented cannot be given.
//!
//! For `async fn revoke(State<Http>, Caller, Id) -> Result<NoContent>`:
//!
//! ```text
//! State, Caller   nothing: they come from inside
//! Id              parameter {"name": "id", "in": "path", "schema": {"type": "string", "format": "uuid"}}; codes invalid_field, not_found
//! NoContent       204 "Done."
//! ```

use std::{collections::BTreeMap, future::Future};

use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{
        Content, Header, RefOr, Required, Response, ResponseBuilder, Schema,
        path::{Parameter, ParameterBuilder, ParameterIn},
        request_body::{RequestBody, RequestBodyBuilder},
        schema::{Object, ObjectBuilder, Ref, SchemaType, Type},
    },
};

use crate::error::{Code, Result};

/// The description of one operation. Parts add to it, in the order of the arguments, the answer last.
#[derive(Default)]
pub struct Description {
    /// Of path, query and headers.
    pub parameters: Vec<Parameter>,
    /// What is sent.
    pub body: Option<RequestBody>,
    /// Status and answer when it goes well.
    pub success: Vec<(u16, Response)>,
    /// What may go wrong because of what is taken.
    pub codes: Vec<Code>,
    /// Schemas that the above refer to.
    pub schemas: BTreeMap<String, RefOr<Schema>>,
}

impl Description {
    /// A reference to the schema of `T`, which is kept with all that it refers to.
    pub fn schema_of<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let name = T::name().into_owned();
        let mut found = vec![(name.clone(), T::schema())];
        T::schemas(&mut found);
        self.schemas.extend(found);
        Ref::from_schema_name(name).into()
    }

    /// A body that must be sent, in one of these media types.
    pub fn takes_body(&mut self, contents: Vec<(&str, RefOr<Schema>)>) {
        let body = RequestBodyBuilder::new().required(Some(Required::True));
        let with = |body: RequestBodyBuilder, (media_type, schema): (&str, RefOr<Schema>)| {
            body.content(media_type, Content::new(Some(schema)))
        };
        self.body = Some(contents.into_iter().fold(body, with).build());
    }

    /// An answer with a JSON body.
    pub fn answers<T: ToSchema>(&mut self, status: u16, text: &str) {
        let schema = self.schema_of::<T>();
        self.answers_with(status, text, schema);
    }

    /// An answer with a JSON body of this schema.
    pub fn answers_with(&mut self, status: u16, text: &str, schema: RefOr<Schema>) {
        let content = Content::new(Some(schema));
        let response =
            ResponseBuilder::new().description(text).content("application/json", content);
        self.success.push((status, response.build()));
    }

    /// Adds a header to the answer that was described last: `ETag` to the 200 of a dashboard.
    pub fn header(&mut self, name: &str, text: &str) {
        if let Some((_, response)) = self.success.last_mut() {
            let mut header = Header::new(text_schema());
            header.description = Some(text.to_owned());
            response.headers.insert(name.to_owned(), header.into());
        }
    }

    /// A parameter of the path.
    pub fn path_parameter(&mut self, name: &str, text: &str, schema: ObjectBuilder) {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(utoipa::openapi::Required::True)
            .description(Some(text))
            .schema(Some(schema));
        self.parameters.push(parameter.build());
        self.codes.extend([Code::InvalidField, Code::NotFound]);
    }

    /// A header that a client may send, of the form that `pattern` says, or any.
    pub fn header_parameter(
        &mut self,
        name: &str,
        text: &str,
        pattern: Option<&str>,
        example: Value,
    ) {
        let mut schema = text_schema();
        schema.pattern = pattern.map(str::to_owned);
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(utoipa::openapi::Required::False)
            .description(Some(text))
            .schema(Some(schema))
            .example(Some(example));
        self.parameters.push(parameter.build());
    }
}

/// Schema of a string without bounds or pattern.
pub fn text_schema() -> Object {
    Object::with_type(SchemaType::Type(Type::String))
}

/// Something that a handler takes.
pub trait Takes {
    /// Adds what it is on the wire; what comes from inside is nothing.
    fn takes(_: &mut Description) {}
}

/// Something that a handler gives.
pub trait Gives {
    /// Adds what it is on the wire.
    fn gives(description: &mut Description);
}

impl<R: Gives> Gives for Result<R> {
    fn gives(description: &mut Description) {
        R::gives(description);
    }
}

/// A handler: any async function of things that can be taken, to a thing that can be given.
///
/// `Signature` is `fn(A, B) -> C` of the handler. It is there because a type may implement `Fn` for several signatures, so that the
/// implementations below would overlap without it.
pub trait Described<Signature> {
    /// What it takes and gives.
    fn describe() -> Description;
}

macro_rules! described {
    ($($argument:ident)*) => {
        impl<Handler, Answer, Answers, $($argument,)*> Described<fn($($argument,)*) -> Answer> for Handler
        where
            Handler: Fn($($argument,)*) -> Answers,
            Answers: Future<Output = Answer>,
            Answer: Gives,
            $($argument: Takes,)*
        {
            fn describe() -> Description {
                let mut description = Description::default();
                $($argument::takes(&mut description);)*
                Answer::gives(&mut description);
                description
            }
        }
    };
}

described!(A);
described!(A B);
described!(A B C);
described!(A B C D);
described!(A B C D E);
described!(A B C D E F);
