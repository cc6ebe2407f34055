//! Compiled schemas of request bodies: each is compiled once, with the first such body.
//!
//! `POST /v1/dashboards` takes a `CreateDashboard`; its first request compiles the schema of that type,
//! the same one that the OpenAPI document shows, and all later ones share it.

use std::{
    any::TypeId,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::json;
use utoipa::ToSchema;

use crate::{
    base::json_schema::JsonSchema,
    error::{ApiError, Result},
    http::openapi::describe::Description,
};

/// Compiled schemas by the type that they describe.
#[derive(Default)]
pub struct SchemaCache(Mutex<HashMap<TypeId, Arc<JsonSchema>>>);

impl SchemaCache {
    /// The schema of `T`: the same as in the OpenAPI document.
    ///
    /// Errors: `internal` for a schema with a keyword that the validator does not know; a test compiles all of them.
    pub fn of<T: ToSchema + 'static>(&self) -> Result<Arc<JsonSchema>> {
        let mut schemas = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = schemas.get(&TypeId::of::<T>()) {
            return Ok(Arc::clone(schema));
        }
        let mut description = Description::default();
        let root = description.schema_of::<T>();
        let mut schema = serde_json::to_value(&root)
            .map_err(|error| ApiError::internal(format!("a schema cannot be written: {error}")))?;
        schema["components"] = json!({"schemas": description.schemas});
        let schema = Arc::new(JsonSchema::compile(&schema)?);
        schemas.insert(TypeId::of::<T>(), Arc::clone(&schema));
        Ok(schema)
    }
}
