//! The identity of an operator, or of a user at a terminal, among its peers.

use jiff::Timestamp;

/// The characters of the random part, as in Kopf, which has no `g`.
const SYMBOLS: &[u8] = b"abcdefhijklmnopqrstuvwxyz0123456789";

/// Domains of host names that do not identify a host.
const SUFFIXES: [&str; 2] = [".local", ".localdomain"];

/// The environment of the process.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The variable `POD_ID`, which replaces the generated identity.
    pub pod: Option<String>,
    /// The name of the user of the process.
    pub user: String,
    /// The host name that the system reports.
    pub host: String,
    /// The names of the host in the order of a lookup; may contain addresses.
    pub aliases: Vec<String>,
}

/// The start of the process, and three random numbers.
#[derive(Clone, Copy, Debug)]
pub struct ProcessStart {
    /// The time of the start.
    pub start: Timestamp,
    /// Random numbers for the generated identity.
    pub random: [u8; 3],
}

/// The identities of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeeringIdentity {
    /// The key among peers: `user@host/start/random`, or the pod.
    pub peer: String,
    /// Unique to this process, also among processes of the same pod.
    pub process: String,
}

impl PeeringIdentity {
    /// Returns the identities of an operator.
    pub fn of_operator(around: &Surroundings, moment: ProcessStart) -> Self {
        let start = moment.start.strftime("%Y%m%d%H%M%S");
        let symbol = |it: &u8| SYMBOLS.get(usize::from(*it) % SYMBOLS.len()).copied();
        let random: Vec<u8> = moment.random.iter().filter_map(symbol).collect();
        let tail = format!("{start}/{}", String::from_utf8_lossy(&random));
        let process = format!("{}/{tail}", PeeringIdentity::of_person(around));
        PeeringIdentity { peer: around.pod.clone().unwrap_or_else(|| process.clone()), process }
    }

    /// Returns the identity of a user: the same at each call.
    pub fn of_person(around: &Surroundings) -> String {
        around.pod.clone().unwrap_or_else(|| format!("{}@{}", around.user, host(around)))
    }

    /// Returns the common identity of all replicas with leader election: to other operators they are one.
    pub fn of_replicas(namespace: &str, lease: &str) -> String {
        format!("leader@{namespace}/{lease}")
    }
}

/// Returns the aliases of a host from the content of `/etc/hosts`, as a lookup finds them: from the name to its address and back.
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

/// Returns the name of the user with this number from the content of `/etc/passwd`.
pub fn user(passwd: &str, number: u32) -> Option<String> {
    let fields = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        (fields.nth(1)?.parse() == Ok(number)).then_some(name)
    };
    passwd.lines().find_map(fields)
}

/// Returns the most specific name of the host.
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
