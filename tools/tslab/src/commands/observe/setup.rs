//! How Prometheus and Grafana are set up: the files of dashboards/, with other ports and paths.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::folder;

/// Nobody else may reach them.
pub const HOST: &str = "127.0.0.1";

/// Those that the files of dashboards/ name.
pub const USUAL: Ports = Ports { agent: 9464, prometheus: 9090, grafana: 3000 };

const PROMETHEUS: &str = include_str!("../../../../../dashboards/observe.yaml");
const RULES: &str = include_str!("../../../../../dashboards/rules.yaml");
const SOURCE: &str = include_str!("../../../../../dashboards/datasource.yaml");
const PROVIDER: &str = include_str!("../../../../../dashboards/grafana.yaml");
const EPOCHS: &str = include_str!("../../../../../dashboards/generated/tslab-epochs.json");
const PROCESSES: &str = include_str!("../../../../../dashboards/generated/tslab-processes.json");

// Where the provider finds the dashboards when Grafana is set up by hand.
const USUAL_DASHBOARDS: &str = "/var/lib/grafana/dashboards/tslab";

/// Where each of them listens.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// `tslab serve`.
    pub agent: u16,
    /// Prometheus.
    pub prometheus: u16,
    /// Grafana.
    pub grafana: u16,
}

/// What is written, and where.
#[derive(Debug)]
pub struct Setup {
    /// An absolute path.
    pub folder: PathBuf,
    /// On which they listen.
    pub ports: Ports,
}

impl Setup {
    fn configuration(&self) -> [(&'static str, String); 5] {
        let other = |text: &str, usual: u16, port: u16| {
            text.replace(&format!("{HOST}:{usual}"), &format!("{HOST}:{port}"))
        };
        let dashboards = self.folder.join("grafana/dashboards").display().to_string();
        [
            ("prometheus.yaml", other(PROMETHEUS, USUAL.agent, self.ports.agent)),
            ("rules.yaml", RULES.to_owned()),
            (
                "grafana/provisioning/datasources/tslab.yaml",
                other(SOURCE, USUAL.prometheus, self.ports.prometheus),
            ),
            (
                "grafana/provisioning/dashboards/tslab.yaml",
                PROVIDER.replace(USUAL_DASHBOARDS, &quoted(&dashboards)),
            ),
            ("grafana/grafana.ini", self.grafana_ini()),
        ]
    }

    fn grafana_ini(&self) -> String {
        let folder = self.folder.join("grafana");
        let folder = folder.display();
        format!(
            "[server]\nhttp_addr = {HOST}\nhttp_port = {}\n\n\
             [paths]\ndata = {folder}/data\nlogs = {folder}/logs\nplugins = {folder}/plugins\n\
             provisioning = {folder}/provisioning\n\n\
             [auth.anonymous]\nenabled = true\n\n\
             [analytics]\nreporting_enabled = false\ncheck_for_updates = false\n",
            self.ports.grafana
        )
    }

    /// The configuration, for people: the dashboards are left out.
    pub fn text(&self) -> String {
        let file = |(name, text): (&str, String)| {
            format!("# {}\n{text}\n", self.folder.join(name).display())
        };
        self.configuration().map(file).concat()
    }

    /// Writes all files anew.
    pub fn write(&self) -> Result<()> {
        let dashboards = [
            ("grafana/dashboards/tslab-epochs.json", EPOCHS.to_owned()),
            ("grafana/dashboards/tslab-processes.json", PROCESSES.to_owned()),
        ];
        for (name, text) in self.configuration().into_iter().chain(dashboards) {
            let path = self.folder.join(name);
            folder::make(path.parent().unwrap_or(Path::new("/")))?;
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// What Prometheus is told on its command line.
    pub fn prometheus_arguments(&self) -> [String; 3] {
        [
            format!("--config.file={}", self.folder.join("prometheus.yaml").display()),
            format!("--storage.tsdb.path={}", self.folder.join("prometheus").display()),
            format!("--web.listen-address={HOST}:{}", self.ports.prometheus),
        ]
    }

    /// What Grafana is told on its command line.
    pub fn grafana_arguments(&self, home: &Path) -> [String; 4] {
        let file = self.folder.join("grafana/grafana.ini");
        let (file, home) = (file.display().to_string(), home.display().to_string());
        ["--homepath".into(), home, "--config".into(), file]
    }
}

// As YAML and JSON have it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_paths_are_those_that_were_asked_for() {
        let ports = Ports { agent: 1, prometheus: 2, grafana: 3 };
        let text = Setup { folder: "/x y".into(), ports }.text();
        for said in [
            "targets: [127.0.0.1:1]",
            "url: http://127.0.0.1:2\n",
            "http_port = 3\n",
            "path: \"/x y/grafana/dashboards\"\n",
            "provisioning = /x y/grafana/provisioning\n",
        ] {
            assert!(text.contains(said), "{said} in\n{text}");
        }
        for usual in [":9464", ":9090", USUAL_DASHBOARDS] {
            assert!(!text.contains(usual), "{usual} in\n{text}");
        }
    }
}
