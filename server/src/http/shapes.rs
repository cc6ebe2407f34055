//! The schemas of bodies, each compiled once, when the first such body comes.

use std::{
    any::TypeId,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::json;
use utoipa::ToSchema;

use super::describe::Description;
use crate::{
    base::shape::Shape,
    error::{ApiError, Result},
};

/// Compiled schemas by the type that they describe.
#[derive(Default)]
pub struct Shapes(Mutex<HashMap<TypeId, Arc<Shape>>>);

impl Shapes {
    /// The shape of `T`: the same schema as in the OpenAPI document.
    pub fn of<T: ToSchema + 'static>(&self) -> Result<Arc<Shape>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = known.get(&TypeId::of::<T>()) {
            return Ok(Arc::clone(shape));
        }
        let mut description = Description::default();
        let root = description.schema_of::<T>();
        let mut schema = serde_json::to_value(&root)
            .map_err(|error| ApiError::internal(format!("a schema cannot be written: {error}")))?;
        schema["components"] = json!({"schemas": description.schemas});
        let shape = Arc::new(Shape::compile(&schema)?);
        known.insert(TypeId::of::<T>(), Arc::clone(&shape));
        Ok(shape)
    }
}
