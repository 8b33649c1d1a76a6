"""The list of places and names that an agent never reads: they hold keys, passwords and private data.

This is the only such list. Comparison ignores case; `*` stands for anything but `/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SYSTEM_PLACES = (
    *("/proc", "/sys", "/dev", "/run/secrets", "/var/run/secrets", "/run/credentials"),
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *(
        "/etc/wireguard",
        "/etc/security/opasswd",
        "/etc/ssl/private",
        "/etc/krb5.keytab",
        "/etc/kubernetes",
        "/etc/NetworkManager/system-connections",
    ),
    *("/var/lib/docker", "/var/lib/kubelet", "/var/spool/cron"),
)
"""Places of the system, with everything below them."""

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - only compared, nothing is written there
"""A directory for temporary files inside `/dev`, treated like `/tmp`."""

HOME_PLACES = (
    *("Library/Keychains", "Library/Application Support", "Library/Cookies", "Library/Mail", "Library/Messages"),
    *("AppData", "snap", "Mail", "Maildir"),
)
"""Places in a home directory, in addition to every name that begins with a dot."""

DIRECTORIES = (
    # keys and the settings of clouds
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".oci", ".aliyun", ".bluemix", ".databricks", ".fly"),
    *(".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/doctl", ".config/rclone"),
    *(".config/op", ".config/sops", ".config/heroku", ".config/containers", ".terraform.d", ".pulumi", ".step"),
    # passwords, browsers and mail
    *(".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".pki", ".mozilla", ".thunderbird"),
    *(".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge"),
    *(".config/Signal", ".config/Slack", ".config/discord"),
    # wallets
    *(".bitcoin", ".ethereum", ".electrum", ".monero", ".config/solana"),
    # programs of Windows, and the settings of submodules
    *("AppData/Roaming", "AppData/Local", "AppData/LocalLow", ".git/modules"),
)
"""Directories with these names, anywhere, with everything below them."""

FILES = (
    # variables
    *(
        ".env",
        ".env.*",
        ".env-*",
        ".env_*",
        "*.env",
        ".envrc",
        ".Renviron",
        "*.env.*",
        ".dev.vars",
        "local.settings.json",
    ),
    # passwords of programs
    *(".netrc", "_netrc", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".htpasswd", ".git-credentials"),
    *(
        "*.git/config",
        "*.git/config.worktree",
        "wp-config.php",
        "passwords.txt",
        "passwords.csv",
        ".boto",
        ".s3cfg",
        ".passwd-s3fs",
        "rclone.conf",
        ".vault-token",
        ".smbcredentials",
        "*.ovpn",
    ),
    # package managers and containers
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".gem/credentials", ".cargo/credentials", ".m2/settings.xml"),
    *(".gradle/gradle.properties", "NuGet.Config", "pip.conf", "auth.json", ".dockercfg", ".dockerconfigjson"),
    # clouds and clusters
    *("credentials.json", "credentials.toml", ".credentials.json", "client_secret*.json", "service-account*.json"),
    *("credentials", "credentials.csv", "credentials.yml", "credentials.yaml", "credentials.ini", "*accessKeys.csv"),
    *("token.json", "tokens.json", "*firebase-adminsdk*.json", "kubeconfig.*"),
    *("service_account*.json", "application_default_credentials.json", "kubeconfig", "*.kubeconfig"),
    *("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", ".terraformrc", "terraform.rc", "*.publishsettings"),
    *("secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "secrets.ini", ".secrets", ".vault_pass*"),
    # other agents
    *(".claude.json", "oauth_creds.json", ".aider.conf.yml", "mcp_credentials.json"),
    # private keys, key stores and wallets
    *(
        "id_rsa*",
        "id_dsa*",
        "id_ecdsa*",
        "id_ed25519*",
        "*_rsa",
        "*_dsa",
        "*_ecdsa",
        "*_ed25519",
        "ssh_host_*_key",
        "*.pem",
        "*.key",
        "*.p8",
        "*.p12",
        "*.pfx",
        "*.ppk",
    ),
    *("*.jks", "*.keystore", "*.keytab", "*.kdb", "*.kdbx", "*.keychain", "*.keychain-db", "*.agekey"),
    *("wallet.dat", "*.wallet", "UTC--*"),
    # browsers
    *("Cookies", "cookies.txt", "Login Data", "Web Data", "logins.json", "key3.db", "key4.db"),
    # settings and histories of shells
    *(".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zprofile", ".zshenv", ".zlogin"),
    *(".*_history", ".*history", "fish_history", "ConsoleHost_history.txt", ".lesshst", ".viminfo"),
    # databases
    *("*.db", "*.sqlite", "*.sqlite3", "*.db-*", "*.sqlite-*", "*.sqlite3-*"),
)
"""Files with these names, anywhere; a name with `/` is a file in a directory of that name."""

COPIES = ("~", ".bak", ".backup", ".old", ".orig", ".save", ".copy", ".swp", ".swo", ".tmp", ".1")
"""Suffixes of backup copies; editors also put a dot before the name."""

HARMLESS = (
    *("*.env.example", "*.env.sample", "*.env.template", "*.env.dist", "example.env", "sample.env", "template.env"),
    *("id_rsa.pub", "id_dsa.pub", "id_ecdsa.pub", "id_ed25519.pub", "id_ecdsa_sk.pub", "id_ed25519_sk.pub"),
)
"""Exceptions: files with similar names that hold no secrets."""


def has_secret_name(folded: str) -> bool:
    """Whether a case-folded path has the name of a secret, or is in a directory with such a name."""
    return _DIRECTORIES.search(folded) is not None or (
        _FILES.search(folded) is not None and _HARMLESS.search(folded) is None
    )


def _one_of(names: Iterable[str], end: str, start: str = "") -> re.Pattern[str]:
    known = "|".join(re.escape(name.casefold()).replace(r"\*", "[^/]*") for name in names)
    return re.compile(rf"(?:^|/){start}(?:{known}){end}")


_DIRECTORIES = _one_of(DIRECTORIES, r"(?=/|\Z)")
_FILES = _one_of(FILES, rf"(?:{'|'.join(map(re.escape, COPIES))})?\Z", start=r"\.?")
_HARMLESS = _one_of(HARMLESS, r"\Z")
