//! Server address and target data: from the machine's and the binary's configuration file and the command line.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::CollectorError;
use super::ini::{IniFile, IniValues};
use crate::crash::ProgramInfo;
use ffuzz_config::env::Environment;

/// Suffix of a binary's configuration file.
const SUFFIX: &str = ".fuzzmanagerconf";
/// The reference's default for https: a typo there, but clients depend on it.
const HTTPS_PORT: u16 = 433;
const HTTP_PORT: u16 = 80;
/// Default answer timeout: matching a crash against thousands of buckets takes time.
const PATIENCE: Duration = Duration::from_secs(60);
const LONGEST_PATIENCE: Duration = Duration::from_secs(3600);
const PORT_WARNING: &str =
    "serverport is not set: port 433 is used, as FuzzManager's client does; https is usually 443";

/// A secret that never appears in messages or logs.
#[derive(Clone, Eq, PartialEq)]
pub struct AuthToken(String);

impl AuthToken {
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The token, for request headers only.
    pub(super) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AuthToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(…)")
    }
}

/// The crash server and the account there.
#[derive(Clone, Debug)]
pub struct ServerAccount {
    /// `PROTO://HOST:PORT`
    pub url: String,
    pub token: AuthToken,
    /// Certificate file of a private authority, which replaces the public ones.
    pub authority: Option<PathBuf>,
    /// Answer timeout.
    pub patience: Duration,
    /// Name of the reporting fuzzer.
    pub tool: String,
    /// Name of the reporting machine.
    pub client: String,
}

/// The machine's configuration file with the overrides of the command line.
#[derive(Clone)]
pub struct Settings {
    main: IniValues,
    /// Warnings for the user, one line each.
    pub warnings: Vec<String>,
}

impl fmt::Debug for Settings {
    /// Prints names only: one of the values is the token.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.main.keys()).finish()
    }
}

impl Settings {
    /// Reads the file named by `FM_CONFIG_PATH`, else `~/.fuzzmanagerconf`, if it exists; `given` takes precedence.
    pub fn read(env: &Environment, given: IniValues) -> Result<Self, CollectorError> {
        let named = env.get("FM_CONFIG_PATH").map(PathBuf::from);
        let home = || Some(PathBuf::from(env.get("HOME")?).join(SUFFIX));
        let mut file = IniFile::default();
        if let Some(path) = named.or_else(home).filter(|path| path.exists()) {
            file = read(&path)?;
        }
        let warnings = file.warning().into_iter().collect();
        file.main.extend(given);
        let mut settings = Self { main: file.main, warnings };
        let secure = settings.get("serverproto").unwrap_or("https") == "https";
        if secure && settings.has_server() && settings.get("serverport").is_none() {
            settings.warnings.push(PORT_WARNING.into());
        }
        Ok(settings)
    }

    /// True if a server is configured, so that crashes are reported.
    #[must_use]
    pub fn has_server(&self) -> bool {
        self.get("serverhost").is_some()
    }

    pub fn server(&self) -> Result<ServerAccount, CollectorError> {
        let host = self.need("serverhost")?;
        let proto = self.get("serverproto").unwrap_or("https");
        let default = match proto {
            "https" => HTTPS_PORT,
            "http" => HTTP_PORT,
            _ => return Err(invalid("serverproto", proto, "http or https")),
        };
        let port = match self.get("serverport") {
            Some(text) => text.parse().map_err(|_| invalid("serverport", text, "a port number"))?,
            None => default,
        };
        let patience = match self.get("servertimeout") {
            Some(text) => {
                let seconds = text.parse().ok().map(Duration::from_secs);
                let seconds = seconds.filter(|time| !time.is_zero() && *time <= LONGEST_PATIENCE);
                seconds.ok_or_else(|| {
                    invalid("servertimeout", text, "a number of seconds, at most 3600")
                })?
            }
            None => PATIENCE,
        };
        Ok(ServerAccount {
            patience,
            url: format!("{proto}://{host}:{port}"),
            token: self.token()?,
            authority: self.get("servercafile").map(PathBuf::from),
            tool: self.need("tool")?.to_owned(),
            client: self.client(),
        })
    }

    /// `clientid`, or the machine's name.
    #[must_use]
    pub fn client(&self) -> String {
        let named = self.get("clientid").map(str::to_owned);
        let host = || nix::unistd::gethostname().ok()?.into_string().ok();
        named.or_else(host).unwrap_or_else(|| "localhost".into())
    }

    pub fn signatures(&self) -> Result<PathBuf, CollectorError> {
        self.need("sigdir").map(PathBuf::from)
    }

    /// Signature folder of a campaign; defaults to a folder in its spool.
    #[must_use]
    pub fn signatures_for(&self, spool: &Path) -> PathBuf {
        self.signatures().unwrap_or_else(|_| spool.join("signatures"))
    }

    fn token(&self) -> Result<AuthToken, CollectorError> {
        if let Some(token) = self.get("serverauthtoken") {
            return Ok(AuthToken::new(token));
        }
        let path = self.get("serverauthtokenfile").map(Path::new);
        let path = path.ok_or(CollectorError::Missing { key: "serverauthtoken" })?;
        let text = fs::read_to_string(path).map_err(|error| CollectorError::read(path, error))?;
        Ok(AuthToken::new(&text))
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.main.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn need(&self, key: &'static str) -> Result<&str, CollectorError> {
        self.get(key).ok_or(CollectorError::Missing { key })
    }
}

/// A report's data about the program, in addition to the crash.
#[derive(Clone, Debug, Default)]
pub struct Target {
    pub program: ProgramInfo,
    pub metadata: IniValues,
    /// Warnings for the user, one line each.
    pub warnings: Vec<String>,
}

impl Target {
    /// Reads `BINARY.fuzzmanagerconf`, if it exists; `given` takes precedence.
    pub fn read(binary: Option<&Path>, given: IniValues) -> Result<Self, CollectorError> {
        let file = match binary.map(beside).filter(|path| path.exists()) {
            Some(path) => read(&path)?,
            None => IniFile::default(),
        };
        let warnings = file.warning().into_iter().collect();
        let mut main = file.main;
        main.extend(given);
        let need = |key| main.get(key).cloned().ok_or(CollectorError::Missing { key });
        let program = ProgramInfo {
            product: need("product")?.to_lowercase(),
            product_version: main.get("product_version").cloned().unwrap_or_default(),
            platform: need("platform")?.to_lowercase(),
            os: need("os")?.to_lowercase(),
        };
        Ok(Self { program, metadata: file.metadata, warnings })
    }
}

/// Path of a binary's configuration file.
#[must_use]
pub fn beside(binary: &Path) -> PathBuf {
    let mut name = binary.as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

fn read(path: &Path) -> Result<IniFile, CollectorError> {
    let text = fs::read_to_string(path).map_err(|error| CollectorError::read(path, error))?;
    IniFile::parse(&text).map_err(|source| CollectorError::Config { path: path.to_owned(), source })
}

fn invalid(key: &'static str, value: &str, expected: &'static str) -> CollectorError {
    CollectorError::Invalid { key, value: value.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use ffuzz_sys::remedy::Remedy;

    use super::*;

    fn values(pairs: &[(&str, &str)]) -> IniValues {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        Settings::read(&Environment::default(), values(pairs)).expect("no file")
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("conf");
        let text =
            "[Main]\nserverhost = a\nserverproto = http\ntool = t\nserverauthtoken = x\n[Other]\n";
        fs::write(&path, text).expect("file");
        let env = Environment::from_pairs(&[("FM_CONFIG_PATH", path.to_str().expect("UTF-8"))]);
        let settings = Settings::read(&env, values(&[("serverhost", "b")])).expect("good");
        let server = settings.server().expect("complete");
        assert_eq!((server.url.as_str(), server.tool.as_str()), ("http://b:80", "t"));
        assert_eq!(settings.warnings.len(), 1);
    }

    #[test]
    fn a_file_in_the_home_folder_is_found() {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join(SUFFIX), "[Main]\nclientid = c\n").expect("file");
        let env = Environment::from_pairs(&[("HOME", folder.path().to_str().expect("UTF-8"))]);
        assert_eq!(Settings::read(&env, IniValues::new()).expect("good").client(), "c");
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let error = |pairs: &[(&str, &str)]| settings(pairs).server().expect_err("a fault");
        assert_eq!(error(&[]).to_string(), "serverhost is not set");
        let pairs = [("serverhost", "h"), ("serverport", "x")];
        assert_eq!(error(&pairs).to_string(), "serverport = x is not a port number");
        let pairs = [("serverhost", "h"), ("serverproto", "ftp")];
        assert_eq!(error(&pairs).remedy(), "set serverproto to http or https");
        let pairs = [("serverhost", "h"), ("tool", "t")];
        assert!(error(&pairs).remedy().contains("serverauthtokenfile"));
        let error = Target::read(None, IniValues::new()).expect_err("nothing given");
        assert_eq!(error.to_string(), "product is not set");
    }

    #[test]
    fn https_goes_to_the_port_of_the_reference() {
        let pairs = [("serverhost", "h"), ("tool", "t"), ("serverauthtoken", " s\n")];
        let server = settings(&pairs).server().expect("complete");
        assert_eq!(server.url, "https://h:433");
        assert!(settings(&pairs).warnings[0].contains("433"));
        assert_eq!(server.token.secret(), "s");
        let shown = format!("{server:?} {:?}", settings(&pairs));
        assert!(!shown.contains("\" s") && !shown.contains("\"s\""), "{shown}");
    }

    #[test]
    fn a_token_file_is_read_without_its_line_end() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("token");
        fs::write(&path, "secret \n").expect("file");
        let path = path.to_str().expect("UTF-8");
        let pairs = [("serverhost", "h"), ("tool", "t"), ("serverauthtokenfile", path)];
        assert_eq!(settings(&pairs).server().expect("complete").token.secret(), "secret");
    }

    #[test]
    fn the_file_of_a_binary_names_product_and_metadata() {
        let folder = tempfile::tempdir().expect("folder");
        let binary = folder.path().join("prog");
        let text = "[Main]\nproduct = Slices\nplatform = x86-64\nos = Linux\n[Metadata]\nk = v\n";
        fs::write(beside(&binary), text).expect("file");
        let target = Target::read(Some(&binary), values(&[("os", "B2G")])).expect("complete");
        let ProgramInfo { product, product_version, os, .. } = &target.program;
        assert_eq!(
            (product.as_str(), product_version.as_str(), os.as_str()),
            ("slices", "", "b2g")
        );
        assert_eq!(target.metadata["k"], "v");
    }
}
