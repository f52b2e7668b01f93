//! Columns as they cross the boundary: byte strings laid end to end, `lengths[i]` is entry i's length, -1 is null.

pub(crate) use pelton_bindings_transform::pelton::plugin::types::Column;

/// An empty column with room for `entries` fields of `bytes` in all.
pub(crate) fn with_capacity(entries: usize, bytes: usize) -> Column {
    Column { bytes: Vec::with_capacity(bytes), lengths: Vec::with_capacity(entries) }
}

/// Reads entry `index`, whose bytes start at `at`, and moves `at` behind it.
#[inline]
pub(crate) fn read<'a>(column: &'a Column, index: usize, at: &mut usize) -> Option<&'a [u8]> {
    let length = usize::try_from(column.lengths[index]).ok()?;
    let start = *at;
    *at = start + length;
    Some(&column.bytes[start..*at])
}

/// Appends one field.
#[inline]
pub(crate) fn push(column: &mut Column, field: Option<&[u8]>) {
    match field {
        None => column.lengths.push(-1),
        Some(bytes) => {
            column.bytes.extend_from_slice(bytes);
            column.lengths.push(length(bytes.len()));
        }
    }
}

/// Appends the field that `write` appends to the bytes; when it fails nothing is appended.
#[inline]
pub(crate) fn push_with<E>(column: &mut Column, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
    let start = column.bytes.len();
    if let Err(error) = write(&mut column.bytes) {
        column.bytes.truncate(start);
        return Err(error);
    }
    column.lengths.push(length(column.bytes.len() - start));
    Ok(())
}

/// A field's length on the wire. A guest's memory ends before the type does.
#[inline]
pub(crate) fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// Keeps the first `count` fields.
pub(crate) fn truncate(column: &mut Column, count: usize) {
    let dropped = column.lengths.drain(count.min(column.lengths.len())..);
    let bytes: usize = dropped.map(|length| usize::try_from(length).unwrap_or(0)).sum();
    column.bytes.truncate(column.bytes.len() - bytes);
}

/// All fields of a column, in order.
pub(crate) fn fields(column: &Column) -> impl Iterator<Item = Option<&[u8]>> {
    let mut at = 0;
    (0..column.lengths.len()).map(move |index| read(column, index, &mut at))
}
