//! Whether the statistics file has room for what it tells.

use serde_json::Value;

use super::finding::{Finding, Found, Patient, Rank, reaches};
use crate::holdings::TableUse;

const ROWS_PERCENT: u64 = 90;

/// Tables of the statistics file have no room.
pub(super) fn full_table(patient: &Patient) -> Found {
    let snapshot = &patient.subject.snapshot;
    let holdings = &snapshot.holdings;
    (!holdings.tables.is_empty()).then_some(())?;
    let without_memory = snapshot.full_tables.iter().map(|name| {
        let what = format!("the system has no memory for all rows of table {name:?}");
        let advice = "make room in /dev/shm: figures are too low".to_owned();
        Finding::new(
            "full-table",
            Rank::Figures,
            what,
            &[("table", Value::from(name.as_str()))],
            advice,
        )
    });
    let is_near = |table: &&TableUse| reaches(table.rows, ROWS_PERCENT, table.most_rows);
    let near = holdings.tables.iter().filter(is_near).filter(|table| table.name != "labels");
    let near = near.map(|table| {
        let (rows, most) = (table.rows, table.most_rows);
        let what = format!("table {:?} has {rows} of {most} rows", table.name);
        let evidence = [
            ("table", Value::from(table.name.as_str())),
            ("rows", Value::from(rows)),
            ("most_rows", Value::from(most)),
        ];
        let advice = "keep fewer epochs and threads at a time: those beyond are not told of";
        Finding::new("full-table", Rank::Figures, what, &evidence, advice.to_owned())
    });
    let labels = holdings.tables.iter().filter(|table| table.name == "labels");
    let labels = labels.filter(|_| holdings.labels_overflow).map(|table| {
        let what =
            format!("all {} labels are taken: others are told as \"other\"", table.most_rows);
        let evidence = [("most_labels", Value::from(table.most_rows))];
        let advice = "take what differs from call to call, such as ids, out of the labels";
        Finding::new("full-table", Rank::Figures, what, &evidence, advice.to_owned())
    });
    Some(without_memory.chain(near).chain(labels).collect())
}

#[cfg(test)]
mod tests {
    use crate::commands::doctor::tests::{healthy, only};

    #[test]
    fn tables_without_room_are_seen() {
        let mut image = healthy();
        image.table("bins").is_full = 1;
        assert!(only(&image).contains("make room in /dev/shm"));
        image.table("bins").is_full = 0;
        image.table("epochs").most_rows = 16;
        image.set_all("epochs", 14, &[("id", 14)]);
        assert!(only(&image).contains("table \"epochs\" has 15 of 16 rows"));
        image.set_all("epochs", 14, &[("id", 0)]);
        image.text("labels", 1, b"other");
        assert!(only(&image).contains("all 8 labels are taken"));
    }
}
