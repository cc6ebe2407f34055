//! Errors of the engine as DataFusion passes them on.

use datafusion_common::DataFusionError;

/// An error of the engine, as DataFusion hands it on.
pub fn broken(error: inlay_engine::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
