"""The list of what an agent does not read: places and names behind which keys, passwords and private words are kept.

This is the only such list. Names are compared without regard to case; `*` stands for anything but `/`.
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
"""Places of the system, with all that is in them."""

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a name to compare with, nothing is written there
"""A directory for temporary files inside `/dev`: what is true of `/tmp` is true of it."""

HOME_PLACES = (
    *("Library/Keychains", "Library/Application Support", "Library/Cookies", "Library/Mail", "Library/Messages"),
    *("AppData", "snap", "Mail", "Maildir"),
)
"""Places in a person's home directory, besides everything there whose name begins with a dot."""

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
    # programs of Windows, and the settings of repositories inside of others
    *("AppData/Roaming", "AppData/Local", "AppData/LocalLow", ".git/modules"),
)
"""Directories of these names, wherever they are, with all that is in them."""

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
    *(".*_history", ".*history", "fish_history", ".lesshst", ".viminfo"),
    # databases
    *("*.db", "*.sqlite", "*.sqlite3", "*.db-*", "*.sqlite-*", "*.sqlite3-*"),
)
"""Files of these names, wherever they are; one with a `/` is a file in a directory of that name."""

COPIES = ("~", ".bak", ".backup", ".old", ".orig", ".save", ".copy", ".swp", ".swo", ".tmp", ".1")
"""Endings with which editors and people keep a copy of a file beside it; editors also put a dot before its name."""

HARMLESS = (
    *("*.env.example", "*.env.sample", "*.env.template", "*.env.dist", "example.env", "sample.env", "template.env"),
    *("id_rsa.pub", "id_dsa.pub", "id_ecdsa.pub", "id_ed25519.pub", "id_ecdsa_sk.pub", "id_ed25519_sk.pub"),
)
"""Files that only look like some of them."""


def has_secret_name(folded: str) -> bool:
    """Whether a path without regard to case has the name of a secret, or lies in a directory of such a name."""
    return _DIRECTORIES.search(folded) is not None or (
        _FILES.search(folded) is not None and _HARMLESS.search(folded) is None
    )


def _one_of(names: Iterable[str], end: str, start: str = "") -> re.Pattern[str]:
    known = "|".join(re.escape(name.casefold()).replace(r"\*", "[^/]*") for name in names)
    return re.compile(rf"(?:^|/){start}(?:{known}){end}")


_DIRECTORIES = _one_of(DIRECTORIES, r"(?=/|\Z)")
_FILES = _one_of(FILES, rf"(?:{'|'.join(map(re.escape, COPIES))})?\Z", start=r"\.?")
_HARMLESS = _one_of(HARMLESS, r"\Z")
