//! The access of scripts beyond their sandbox: nothing is allowed unless it is granted.
//!
//! Pure: parses strings into rules, and checks accesses against the rules. `scripting/functions` calls it, and also follows symlinks.

mod environment;
mod files;
mod net;
#[cfg(test)]
mod tests;

// The same type as in `std::net`, the module of sockets.
use core::net::IpAddr;
use std::{fmt, path::Path};

pub(crate) use self::files::normal;
pub use self::{environment::VariableRule, files::PathRule, net::HostRule};

/// A kind of access that can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Connections to hosts, with certificates that are checked.
    Net,
    /// Reading variables of the environment.
    Env,
    /// Reading files, and everything below granted directories.
    Read,
    /// Connections to hosts whose certificates are not checked.
    Insecure,
    /// Storing responses of `http` in files.
    Scratch,
}

impl Permission {
    /// All permissions, in the order in which they are listed to users.
    pub const ALL: [Permission; 5] = [
        Permission::Net,
        Permission::Env,
        Permission::Read,
        Permission::Insecure,
        Permission::Scratch,
    ];

    /// Returns the option that grants it, without dashes; also the key in `kopf.yaml`.
    pub fn option(self) -> &'static str {
        match self {
            Permission::Net => "allow-net",
            Permission::Env => "allow-env",
            Permission::Read => "allow-read",
            Permission::Insecure => "allow-insecure",
            Permission::Scratch => "allow-scratch",
        }
    }

    /// Returns valid values of the option, for hints.
    pub fn example(self) -> &'static str {
        match self {
            Permission::Net | Permission::Insecure => {
                "HOST:PORT, such as api.example.com:443, *.example.com:443, [::1]:8080 or localhost:*"
            }
            Permission::Env => {
                "the name of a variable or a pattern, such as MYAPP_TOKEN or MYAPP_*"
            }
            Permission::Read => "a file or a directory, such as /etc/myapp",
            Permission::Scratch => "a directory, such as /tmp",
        }
    }
}

/// The grants of one script, or of all scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    net: Vec<HostRule>,
    env: Vec<VariableRule>,
    read: Vec<PathRule>,
    insecure: Vec<HostRule>,
    scratch: Vec<PathRule>,
}

impl Access {
    /// Adds a grant. Relative paths are below `base`, which is absolute. The error describes what is wrong with the string.
    pub fn allow(&mut self, what: Permission, text: &str, base: &Path) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the value is empty".into());
        }
        match what {
            Permission::Net => self.net.push(HostRule::parse(text)?),
            Permission::Env => self.env.push(VariableRule::parse(text)?),
            Permission::Read => self.read.push(PathRule::new(text, base)),
            Permission::Insecure => self.insecure.push(HostRule::parse(text)?),
            Permission::Scratch => self.scratch.push(PathRule::new(text, base)),
        }
        Ok(())
    }

    /// Returns whether a connection to this host is granted. A name, or an IP address with or without brackets.
    pub fn allows_net(&self, host: &str, port: u16) -> bool {
        self.net.iter().any(|it| it.matches(host, port))
    }

    /// Returns whether the certificate of this host need not be checked. The connection must be granted as well.
    pub fn allows_insecure(&self, host: &str, port: u16) -> bool {
        self.insecure.iter().any(|it| it.matches(host, port))
    }

    /// Returns whether a rule names this address itself, not only by a pattern.
    pub fn names_address(&self, address: IpAddr, port: u16) -> bool {
        self.net.iter().any(|it| it.is_of_address(address, port))
    }

    /// Returns whether this variable is granted.
    pub fn allows_env(&self, name: &str) -> bool {
        self.env.iter().any(|it| it.matches(name))
    }

    /// Returns whether this absolute path is granted. Does not follow symlinks: check their targets, too.
    pub fn allows_read(&self, path: &Path) -> bool {
        self.read.iter().any(|it| it.matches(path))
    }

    /// Returns the files and directories that are granted.
    pub fn readable(&self) -> impl Iterator<Item = &Path> {
        self.read.iter().map(PathRule::path)
    }

    /// Returns the directory for scratch files, if one is granted: the first one.
    pub fn scratch(&self) -> Option<&Path> {
        self.scratch.first().map(PathRule::path)
    }

    /// Returns the grants in the form of the option.
    pub fn granted(&self, what: Permission) -> Vec<String> {
        match what {
            Permission::Net => self.net.iter().map(ToString::to_string).collect(),
            Permission::Env => self.env.iter().map(ToString::to_string).collect(),
            Permission::Read => self.read.iter().map(ToString::to_string).collect(),
            Permission::Insecure => self.insecure.iter().map(ToString::to_string).collect(),
            Permission::Scratch => self.scratch.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        Permission::ALL.into_iter().all(|it| self.granted(it).is_empty())
    }

    fn extend(&mut self, other: &Access) {
        self.net.extend_from_slice(&other.net);
        self.env.extend_from_slice(&other.env);
        self.read.extend_from_slice(&other.read);
        self.insecure.extend_from_slice(&other.insecure);
        // What is granted to a script comes first: it is the directory that it uses.
        self.scratch.splice(..0, other.scratch.iter().cloned());
    }
}

/// The grants of one operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Grants for every script.
    pub all: Access,
    /// Additional grants for single scripts, by the end of their path.
    pub scripts: Vec<(String, Access)>,
}

impl Grants {
    /// Returns what the script of this name may access.
    pub fn of(&self, script: &str) -> Access {
        let mut access = self.all.clone();
        for (_, more) in self.scripts.iter().filter(|(name, _)| is_named(script, name)) {
            access.extend(more);
        }
        access
    }

    /// Returns the names that match no script: most likely a script was renamed.
    pub fn unused<'a>(&'a self, scripts: &[&str]) -> Vec<&'a str> {
        let names = self.scripts.iter().map(|(name, _)| name.as_str());
        names.filter(|name| !scripts.iter().any(|it| is_named(it, name))).collect()
    }

    /// Returns whether any script may read this variable: all others need not be kept in memory.
    pub fn concern_env(&self, name: &str) -> bool {
        self.all.allows_env(name) || self.scripts.iter().any(|(_, it)| it.allows_env(name))
    }
}

/// Returns whether a name refers to a script: `a.lua`, `handlers/a.lua` and `./a.lua` refer to `handlers/a.lua`, but `lua` and `ers/a.lua`
/// do not.
fn is_named(script: &str, name: &str) -> bool {
    let name = normal(Path::new(name));
    !name.as_os_str().is_empty() && normal(Path::new(script)).ends_with(name)
}

/// The error of an access that is not granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Denied {
    /// The attempted access, in the form of the option that grants it.
    wanted: String,
    permission: Permission,
}

impl Denied {
    /// Denies a connection to this host and port.
    pub fn net(host: &str, port: u16) -> Self {
        Denied { wanted: net::written(host, port), permission: Permission::Net }
    }

    /// Denies a connection whose certificate is not checked.
    pub fn insecure(host: &str, port: u16) -> Self {
        Denied { wanted: net::written(host, port), permission: Permission::Insecure }
    }

    /// Denies reading this variable of the environment.
    pub fn env(name: &str) -> Self {
        Denied { wanted: name.to_owned(), permission: Permission::Env }
    }

    /// Returns the value of the option that would grant it.
    pub fn wanted(&self) -> &str {
        &self.wanted
    }

    /// Denies scratch files. The error suggests this directory for them.
    pub fn scratch(directory: &Path) -> Self {
        Denied { wanted: directory.display().to_string(), permission: Permission::Scratch }
    }

    /// Denies a file or directory.
    pub fn read(path: &Path) -> Self {
        Denied { wanted: path.display().to_string(), permission: Permission::Read }
    }
}

impl fmt::Display for Denied {
    /// Formats like `the variable MYAPP_TOKEN is not granted to this script; --allow-env=MYAPP_TOKEN would allow it`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Denied { wanted, permission } = self;
        let what = match permission {
            Permission::Net => "the connection to",
            Permission::Env => "the variable",
            Permission::Read => "reading",
            Permission::Insecure => "`insecure` for the connection to",
            Permission::Scratch => "writing scratch files to",
        };
        let option = permission.option();
        write!(
            f,
            "{what} {wanted} is not granted to this script; --{option}={wanted} would allow it"
        )
    }
}
