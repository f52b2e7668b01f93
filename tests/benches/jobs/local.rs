//! order-counts on the embedded log: the purchases of the example, over and over, until there are enough.

use crate::process::{Cost, whole};
use crate::settings::{PARTITIONS, number, pelton, plugin};
use crate::table::{Table, median, thousands};
use pelton_tests::broker::root;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const COLUMNS: &[&str] = &["what", "records/s", "seconds", "CPU-seconds", "records per CPU-second", "peak MiB"];

/// A folder with the log, and an application file for each round on the same input.
struct Place {
    dir: tempfile::TempDir,
    records: u64,
    /// CDs of all purchases.
    cds: u64,
}

pub(crate) fn run() {
    let place = Place::new(number("BENCH_RECORDS", 1_000_000));
    let produced = place.produce();
    let rounds = number("BENCH_ROUNDS", 3);
    let (mut runs, mut idle) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let file = place.application(round);
        runs.push(place.run(&file, true));
        // Once more with nothing to do: what starting and ending cost.
        idle.push(place.run(&file, false));
        place.verify(&file, round);
    }
    place.report(produced, &runs, &idle);
}

impl Place {
    fn new(records: u64) -> Place {
        let dir = tempfile::Builder::new().prefix("pelton-bench-").tempdir().unwrap();
        let cds = write_purchases(&dir.path().join("orders.csv"), records);
        Place { dir, records, cds }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn produce(&self) -> Cost {
        let (file, input) = (self.application(0), self.path().join("orders.csv"));
        let mut command = Command::new(pelton());
        command.arg("produce").arg(file).args(["orders", "--format", "csv", "--key", "customer_id", "--text", "date"]);
        let (cost, _) = whole(command.arg("--input").arg(input), self.path());
        cost
    }

    /// Each round has an id, a store and an output of its own.
    fn application(&self, round: u64) -> PathBuf {
        let plugin = plugin("order-counts");
        let text = format!(
            "[application]\nid = \"bench-{round}\"\nstate_dir = \"state-{round}\"\n\n\
             [log]\nkind = \"local\"\ndir = \"log\"\ncreate_topics = true\n\n\
             [topics.orders]\npartitions = {PARTITIONS}\n\n[topics.counts-{round}]\npartitions = {PARTITIONS}\n\n\
             [[processor]]\nname = \"order-counts\"\nplugin = {plugin:?}\n\
             inputs.orders = \"orders\"\noutputs.counts = \"counts-{round}\"\n"
        );
        let file = self.path().join(format!("app-{round}.toml"));
        std::fs::write(&file, text).unwrap();
        file
    }

    fn run(&self, file: &Path, fresh: bool) -> Cost {
        let mut command = Command::new(pelton());
        let (cost, said) = whole(command.arg("run").arg(file).arg("--until-idle"), self.path());
        let records = if fresh { self.records } else { 0 };
        assert!(said.contains(&format!("records in: {records}\n")), "{records} records were to be read:\n{said}");
        eprintln!("{records} records: {:.2} s, {:.2} CPU-seconds", cost.seconds, cost.cpu_seconds);
        cost
    }

    /// The last totals sum up to all CDs.
    fn verify(&self, file: &Path, round: u64) {
        let mut command = Command::new(pelton());
        command.arg("consume").arg(file).arg(format!("counts-{round}")).args(["--latest", "--fields", "key,value.cds"]);
        let (_, said) = whole(&mut command, self.path());
        let last_word = |line: &str| line.split_whitespace().last().and_then(|word| word.parse::<u64>().ok());
        let cds: u64 = said.lines().filter_map(last_word).sum();
        assert_eq!(cds, self.cds, "the totals sum up to the input");
    }

    fn report(&self, produced: Cost, runs: &[Cost], idle: &[Cost]) {
        let title =
            format!("Embedded log, order-counts, {} records, median of {}", thousands(self.records as f64), runs.len());
        let mut table = Table::new(&title, "make bench ONLY=local", COLUMNS);
        let middle = |costs: &[Cost], value: fn(&Cost) -> f64| median(costs.iter().map(value));
        let middle = |costs: &[Cost]| Cost {
            seconds: middle(costs, |c| c.seconds),
            cpu_seconds: middle(costs, |c| c.cpu_seconds),
            peak_mib: middle(costs, |c| c.peak_mib),
        };
        let (run, idle) = (middle(runs), middle(idle));
        let less = Cost {
            seconds: run.seconds - idle.seconds,
            cpu_seconds: run.cpu_seconds - idle.cpu_seconds,
            peak_mib: run.peak_mib,
        };
        table.row(&self.row("`pelton produce`, CSV", produced));
        table.row(&self.row("`pelton run --until-idle`, whole process", run));
        table.row(&self.row("the same, less a run with nothing to do", less));
        table.print();
    }

    fn row(&self, name: &str, cost: Cost) -> Vec<String> {
        let records = self.records as f64;
        vec![
            name.to_owned(),
            thousands(records / cost.seconds.max(1e-3)),
            format!("{:.2}", cost.seconds),
            format!("{:.2}", cost.cpu_seconds),
            thousands(records / cost.cpu_seconds.max(1e-3)),
            format!("{:.0}", cost.peak_mib),
        ]
    }
}

/// The example's rows from the start again and again; gives the sum of their CDs.
fn write_purchases(path: &Path, records: u64) -> u64 {
    let example = std::fs::read_to_string(root().join("examples/orders/cdnow.csv")).unwrap();
    let (header, rows) = example.split_once('\n').expect("a header");
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    writeln!(file, "{}", header.trim_end()).unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    let mut cds = 0;
    for row in rows.iter().cycle().take(records as usize) {
        cds += row.split(',').nth(2).and_then(|cell| cell.parse::<u64>().ok()).expect("a number of CDs");
        writeln!(file, "{row}").unwrap();
    }
    file.flush().unwrap();
    cds
}
