//! The options of admission webhooks, which set settings.

use serde_json::{Map, Value};

use crate::cli::{args::RunArgs, config::Config, environment::Environment, report::Report};
use crate::logic::configure;
use crate::settings::Settings;

/// The options from one source.
pub(super) struct Webhooks {
    service: Option<ValueWithOrigin>,
    url: Option<ValueWithOrigin>,
    port: Option<(i64, String)>,
}

/// A value with its origin, for messages.
type ValueWithOrigin = (String, String);

impl Webhooks {
    pub(super) fn typed(args: &RunArgs) -> Self {
        let given =
            |it: &Option<String>, option: &str| it.clone().map(|it| (it, option.to_owned()));
        Webhooks {
            service: given(&args.webhook_service, "--webhook-service"),
            url: given(&args.webhook_url, "--webhook-url"),
            port: args.webhook_port.map(|it| (it.into(), "--webhook-port".to_owned())),
        }
    }

    pub(super) fn of_environment(variables: &Environment<'_>) -> Result<Self, Report> {
        let text = |name: &str| Some((variables.text(name)?, variables.name(name)));
        let port = variables.number("WEBHOOK_PORT")?;
        Ok(Webhooks {
            service: text("WEBHOOK_SERVICE"),
            url: text("WEBHOOK_URL"),
            port: port.map(|it| (it, variables.name("WEBHOOK_PORT"))),
        })
    }

    pub(super) fn of_file(file: &Config) -> Self {
        let text = |key: &str| file.text(key).map(|(it, place)| (it.to_owned(), place.to_owned()));
        Webhooks {
            service: text("webhook-service"),
            url: text("webhook-url"),
            port: file.number("webhook-port").map(|it| (it, "webhook-port".to_owned())),
        }
    }

    /// Applies the options to the settings.
    pub(super) fn apply(self, settings: &mut Settings) -> Result<(), Report> {
        if let Some((service, origin)) = self.service {
            set(settings, "service", &service.into(), &origin)?;
        }
        if let Some((url, origin)) = self.url {
            // Each replaces the other.
            let is_cluster = configure::LOCAL_CLUSTERS.iter().any(|(name, _)| *name == url);
            let (name, other) = if is_cluster { ("cluster", "url") } else { ("url", "cluster") };
            set_of_server(settings, other, Value::Null, &origin)?;
            set_of_server(settings, name, url.into(), &origin)?;
        }
        if let Some((port, origin)) = self.port {
            set_of_server(settings, "port", port.into(), &origin)?;
        }
        Ok(())
    }
}

/// Changes one option of the server, and keeps the others.
fn set_of_server(
    settings: &mut Settings,
    name: &str,
    value: Value,
    origin: &str,
) -> Result<(), Report> {
    let present = configure::find("admission", "server").map(|(it, _)| it.get(settings));
    let mut server = match present {
        Ok(Value::Object(server)) => server,
        Ok(_) | Err(_) => Map::new(),
    };
    server.insert(name.to_owned(), value);
    set(settings, "server", &Value::Object(server), origin)
}

fn set(settings: &mut Settings, name: &str, value: &Value, origin: &str) -> Result<(), Report> {
    let wrong = |problem: String| Report::usage(format!("{origin}: {problem}"));
    let (setting, _outdated) = configure::find("admission", name).map_err(wrong)?;
    setting.set(settings, value).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::{Settings, Webhooks};
    use crate::settings::{LocalCluster, WebhookServer};

    fn apply(settings: &mut Settings, url: &str) -> Result<(), String> {
        let url = Some((url.to_owned(), "--webhook-url".to_owned()));
        let webhooks = Webhooks { service: None, url, port: None };
        webhooks.apply(settings).map_err(|it| it.to_string())
    }

    #[test]
    fn a_url_and_the_name_of_a_local_cluster_replace_each_other() {
        let mut settings = Settings::default();
        for (url, cluster) in [
            (None, Some(LocalCluster::Auto)),
            (Some("https://a.example.com"), None),
            (None, Some(LocalCluster::Kind)),
        ] {
            let given = match (url, cluster) {
                (Some(url), _) => url,
                (None, Some(LocalCluster::Auto)) => "auto",
                (None, _) => "kind",
            };
            apply(&mut settings, given).unwrap();
            let url = url.map(str::to_owned);
            let expected = WebhookServer { cluster, url, ..WebhookServer::default() };
            assert_eq!(settings.admission.server, Some(expected), "{given}");
        }
        let problem = apply(&mut settings, "a.example.com").unwrap_err();
        assert!(problem.contains("`url` must begin with https://"), "{problem}");
    }
}
