//! The internal gRPC service, for tooling on the same machine.

use inlay_proto::v1::{
    FlushRequest, FlushResponse, StatsRequest, StatsResponse,
    inlay_server::{Inlay, InlayServer},
};
use tonic::{Request, Response, Status};

use crate::{app::App, error::ApiError};

/// The service over the product.
pub fn service(app: App) -> InlayServer<impl Inlay> {
    InlayServer::new(Internal { app })
}

struct Internal {
    app: App,
}

impl Internal {
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, Status> {
        let app = self.app.clone();
        let done = tokio::task::spawn_blocking(move || work(&app)).await;
        let done =
            done.unwrap_or_else(|error| Err(ApiError::internal(format!("a task ended: {error}"))));
        // The caller is an operator of this machine: the cause is for him.
        done.map_err(|error| Status::new(error.code.grpc(), error.cause.unwrap_or(error.message)))
    }
}

#[tonic::async_trait]
impl Inlay for Internal {
    async fn stats(&self, _: Request<StatsRequest>) -> Result<Response<StatsResponse>, Status> {
        let stats = self.run(|app| Ok(app.engine.stats())).await?;
        Ok(Response::new(StatsResponse {
            segments: stats.segments as u64,
            segment_rows: stats.segment_rows,
            segment_bytes: stats.segment_bytes,
            memtable_rows: stats.memtable_rows as u64,
            memtable_bytes: stats.memtable_bytes as u64,
            lsn: stats.lsn,
        }))
    }

    async fn flush(&self, _: Request<FlushRequest>) -> Result<Response<FlushResponse>, Status> {
        self.run(|app| app.engine.flush().map_err(ApiError::from)).await?;
        Ok(Response::new(FlushResponse {}))
    }
}
