//! Errors of the engine as DataFusion passes them on.

use datafusion_common::DataFusionError;

/// An error of the engine, as DataFusion hands it on.
///
/// It keeps its type, by which `refuse.rs` tells a segment that is damaged (`Broken`) from one that is too large to be read (`TooLarge`).
pub fn broken(error: inlay_engine::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
