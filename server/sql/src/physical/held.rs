//! All batches of an input, held in memory that is counted.
//!
//! Windows and shared subplans hold the rows of a partition until they are answered. What they are counted as:
//!
//! ```text
//! batch 1: timestamp [buffer A, 64 KiB]    user_id [views C, 128 KiB; texts D, 1 MiB]       64 KiB + 128 KiB + 1 MiB
//! batch 2: timestamp [a slice of A]        user_id [views E, 128 KiB; the same texts D]     128 KiB
//! ```

use std::collections::HashSet;

use arrow::array::{Array as _, ArrayData, RecordBatch};
use datafusion_common::Result;
use datafusion_execution::{SendableRecordBatchStream, memory_pool::MemoryReservation};
use futures::TryStreamExt as _;

/// Batches, and the memory that they are counted with. Batches share texts and are slices of each other: each buffer is counted once.
pub struct HeldBatches {
    /// In the order in which they came.
    pub batches: Vec<RecordBatch>,
    /// What they are counted as, in bytes; the memory is given back when it is dropped.
    pub memory: MemoryReservation,
    /// Addresses of the buffers that are counted. They stay valid as long as the batches are held.
    counted: HashSet<usize>,
}

impl HeldBatches {
    /// All of an input. A batch is counted when it has come.
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
        // Whole buffers are counted, however small the slice of them is: they stay in memory as long as it does.
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
