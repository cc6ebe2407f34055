//! All batches of an input, held in memory that is counted.

use std::collections::HashSet;

use arrow::array::{Array as _, ArrayData, RecordBatch};
use datafusion_common::Result;
use datafusion_execution::{SendableRecordBatchStream, memory_pool::MemoryReservation};
use futures::TryStreamExt as _;

/// Batches, and the memory that they are counted with. Batches share texts and are slices of each other: each buffer is counted once.
pub struct HeldBatches {
    pub batches: Vec<RecordBatch>,
    pub memory: MemoryReservation,
    /// Where the buffers are that are counted.
    counted: HashSet<usize>,
}

impl HeldBatches {
    /// All of an input.
    ///
    /// Errors: those of the input; more memory than there may be.
    pub async fn of(
        mut input: SendableRecordBatchStream,
        memory: MemoryReservation,
    ) -> Result<Self> {
        let mut held = Self { batches: Vec::new(), memory, counted: HashSet::new() };
        while let Some(batch) = input.try_next().await? {
            let bytes =
                batch.columns().iter().map(|column| held.new_bytes(&column.to_data())).sum();
            held.memory.try_grow(bytes)?;
            held.batches.push(batch);
        }
        Ok(held)
    }

    /// Bytes of the buffers that were not counted yet.
    fn new_bytes(&mut self, data: &ArrayData) -> usize {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        let mut bytes = 0;
        for buffer in data.buffers().iter().chain(nulls) {
            if self.counted.insert(buffer.data_ptr().as_ptr() as usize) {
                bytes += buffer.capacity();
            }
        }
        bytes + data.child_data().iter().map(|child| self.new_bytes(child)).sum::<usize>()
    }
}
