//! How an operator, or a person at a terminal, is called among its peers.

use jiff::Timestamp;

/// The symbols of the random part; those of Kopf, which has no `g`.
const SYMBOLS: &[u8] = b"abcdefhijklmnopqrstuvwxyz0123456789";

/// Endings of host names that say nothing.
const SUFFIXES: [&str; 2] = [".local", ".localdomain"];

/// Where the process runs.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// `POD_ID`
    pub pod: Option<String>,
    /// The user's name.
    pub user: String,
    /// The name of the machine, as the system tells.
    pub host: String,
    /// Its names in the order of a lookup; addresses may be among them.
    pub aliases: Vec<String>,
}

/// When the process started, and three random numbers.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The start.
    pub start: Timestamp,
    /// Anything.
    pub random: [u8; 3],
}

/// The names of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Among peers: `user@host/start/random`, or the pod.
    pub peer: String,
    /// Never that of another process, also not of the one before in the same pod.
    pub process: String,
}

impl Identity {
    /// The names of an operator.
    pub fn of_operator(around: &Surroundings, moment: Moment) -> Self {
        let start = moment.start.strftime("%Y%m%d%H%M%S");
        let symbol = |it: &u8| SYMBOLS.get(usize::from(*it) % SYMBOLS.len()).copied();
        let random: Vec<u8> = moment.random.iter().filter_map(symbol).collect();
        let tail = format!("{start}/{}", String::from_utf8_lossy(&random));
        let process = format!("{}/{tail}", Identity::of_person(around));
        Identity { peer: around.pod.clone().unwrap_or_else(|| process.clone()), process }
    }

    /// The name of a person: the same at each call.
    pub fn of_person(around: &Surroundings) -> String {
        around.pod.clone().unwrap_or_else(|| format!("{}@{}", around.user, host(around)))
    }

    /// The name of all replicas together that elect a leader: for other operators they are one.
    pub fn of_replicas(namespace: &str, lease: &str) -> String {
        format!("leader@{namespace}/{lease}")
    }
}

/// The names of a machine as a lookup in this text of `/etc/hosts` gives them, from its name to its address and back.
pub fn aliases(hosts: &str, host: &str) -> Vec<String> {
    let lines = || {
        let texts = hosts.lines().map(|it| it.split('#').next().unwrap_or_default());
        texts.map(str::split_whitespace)
    };
    let named = lines().find(|line| line.clone().skip(1).any(|it| it == host));
    let Some(address) = named.and_then(|mut it| it.next()) else { return Vec::new() };
    let found = lines().find(|line| line.clone().next() == Some(address));
    found.into_iter().flatten().skip(1).map(str::to_owned).collect()
}

/// The name of a user with this number in this text of `/etc/passwd`.
pub fn user(passwd: &str, number: u32) -> Option<String> {
    let fields = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        (fields.nth(1)?.parse() == Ok(number)).then_some(name)
    };
    passwd.lines().find_map(fields)
}

/// The name that tells the most.
fn host(around: &Surroundings) -> &str {
    let names = || {
        let all = around.aliases.iter().map(String::as_str);
        all.filter(|it| {
            it.rsplit('.').next() != Some("arpa") && it.parse::<core::net::IpAddr>().is_err()
        })
    };
    let dotted = names().find(|it| it.contains('.'));
    let plain = || names().find(|it| *it != "localhost");
    let mut name = dotted.or_else(plain).unwrap_or(&around.host);
    while let Some(shorter) = SUFFIXES.iter().find_map(|it| name.strip_suffix(it)) {
        name = shorter;
    }
    name
}
