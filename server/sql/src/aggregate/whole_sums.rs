//! `sum` of integers, which is right or an error: the library's goes round at the end of 64 bits.
//!
//! ```text
//! SELECT sum(n) FROM (VALUES (9223372036854775807), (1)) AS t(n)          integer out of range: a sum is 9223372036854775808
//! SELECT sum(n) FROM (VALUES (9223372036854775807), (1), (-5)) AS t(n)    9223372036854775803, in whichever order rows come
//! ```
//!
//! Sums are added up with 128 bits, by the library's function for decimals, and become integers at the end. PostgreSQL has no end there: its sum of integers of 64 bits is a `numeric`.
//! Here it stays an integer, so that clients get a number of the type that they got for smaller sums.

use std::sync::Arc;

use arrow::{
    array::{Array as _, ArrayRef, ArrowPrimitiveType, AsArray as _, BooleanArray, PrimitiveArray},
    datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type},
};
use datafusion_common::{Result, ScalarValue, exec_err, internal_err};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature,
    function::{AccumulatorArgs, StateFieldsArgs},
    utils::AggregateOrderSensitivity,
};

/// What sums are added up as: 38 digits, of which a sum of integers needs 20 and as many as there are rows.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// The library's `sum`, for integers.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct WholeSums {
    library: AggregateUDF,
}

impl WholeSums {
    /// The function instead of the library's, if that is a sum of integers. `of` is the type of its result.
    pub fn instead_of(library: &AggregateUDF, of: &DataType) -> Option<AggregateUDF> {
        let is_whole = matches!(of, DataType::Int64 | DataType::UInt64);
        (is_whole && library.name() == "sum")
            .then(|| AggregateUDF::from(Self { library: library.clone() }))
    }
}

/// The arguments of the library's function, which is one of decimals then.
fn wide<'a>(args: AccumulatorArgs<'a>, field: &'a FieldRef) -> AccumulatorArgs<'a> {
    AccumulatorArgs { return_field: Arc::clone(field), ..args }
}

fn wide_field(name: &str) -> FieldRef {
    Arc::new(Field::new(name, WIDE, true))
}

impl AggregateUDFImpl for WholeSums {
    fn name(&self) -> &str {
        self.library.name()
    }

    fn signature(&self) -> &Signature {
        self.library.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.library.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let return_field = wide_field(args.name);
        self.library.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let to = args.return_field.data_type().clone();
        let field = wide_field(args.name);
        Ok(Box::new(OneSum { sum: self.library.accumulator(wide(args, &field))?, to }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let to = args.return_field.data_type().clone();
        let field = wide_field(args.name);
        let sums = self.library.create_groups_accumulator(wide(args, &field))?;
        Ok(Box::new(SumOfGroups { sums, to }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.library.order_sensitivity()
    }
}

/// Integers with 128 bits.
fn widened(values: &[ArrayRef]) -> Result<ArrayRef> {
    fn of<T: ArrowPrimitiveType>(values: &ArrayRef) -> ArrayRef
    where
        i128: From<T::Native>,
    {
        let wide: PrimitiveArray<Decimal128Type> = values.as_primitive::<T>().unary(i128::from);
        Arc::new(wide.with_data_type(WIDE))
    }
    match values {
        [values] if *values.data_type() == DataType::Int64 => Ok(of::<Int64Type>(values)),
        [values] if *values.data_type() == DataType::UInt64 => Ok(of::<UInt64Type>(values)),
        _ => internal_err!("a sum of something else than integers"),
    }
}

/// Sums as integers of 64 bits.
///
/// Errors: one that is too large.
fn narrowed(sums: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    fn of<T: ArrowPrimitiveType>(sums: &ArrayRef) -> Result<ArrayRef>
    where
        T::Native: TryFrom<i128>,
    {
        let narrow = sums.as_primitive::<Decimal128Type>().try_unary::<_, T, _>(|sum| {
            T::Native::try_from(sum).or_else(|_| {
                exec_err!("integer out of range: a sum is {sum}; cast to double precision for an approximate one")
            })
        });
        Ok(Arc::new(narrow?))
    }
    match to {
        DataType::UInt64 => of::<UInt64Type>(sums),
        _ => of::<Int64Type>(sums),
    }
}

/// The sum of rows that are one group.
#[derive(Debug)]
struct OneSum {
    sum: Box<dyn Accumulator>,
    to: DataType,
}

impl Accumulator for OneSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.update_batch(&[widened(values)?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.sum.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&narrowed(&sum, &self.to)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sum.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sum.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sum.merge_batch(states)
    }
}

/// The sums of all groups.
struct SumOfGroups {
    sums: Box<dyn GroupsAccumulator>,
    to: DataType,
}

impl GroupsAccumulator for SumOfGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.sums.update_batch(&[widened(values)?], group_indices, filter, groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        narrowed(&self.sums.evaluate(emit_to)?, &self.to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sums.state(emit_to)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.sums.merge_batch(states, group_indices, groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.sums.convert_to_state(&[widened(values)?], filter)
    }

    fn size(&self) -> usize {
        self.sums.size()
    }
}
