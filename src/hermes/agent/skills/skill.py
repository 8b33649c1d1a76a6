"""A skill, and the conditions under which a conversation sees it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

SKILL_FILE = "SKILL.md"

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_STEERING = re.compile(
    r"PATH|HOME|SHELL|USER|LOGNAME|TERM|IFS|ENV|BASH_.*|PROMPT_COMMAND|CDPATH|LD_.*|DYLD_.*|PYTHON.*|PERL.*|RUBY.*"
    r"|NODE_.*|NPM_.*|JAVA_.*|_JAVA_.*|GIT_.*|SSH_.*|HERMES_.*|TIRITH_.*|EDITOR|VISUAL|PAGER|BROWSER|.*_PROXY|TMPDIR"
    r"|SHELLOPTS|BASHOPTS|PS4|ZDOTDIR|INPUTRC|MANPAGER|LESSOPEN|LESSCLOSE|SUDO_.*|PSQLRC|PSQL_EDITOR|VIMINIT|EXINIT"
    r"|JDK_JAVA_.*|CLASSPATH|(?:GNU)?MAKEFLAGS|MAKEFILES|CC|CXX|LD|RUSTC.*|GOFLAGS|GOPROXY|PIP_.*|UV_.*INDEX.*"
    r"|LUA_.*|PHPRC|PHP_INI_.*|R_PROFILE.*|JULIA_LOAD_PATH|AWK(?:LIB)?PATH|ERL_\w*FLAGS|ELIXIR_ERL_OPTIONS|PYTEST_.*"
    r"|DOTNET_STARTUP_HOOKS|CORECLR_.*|COMPLUS_.*|SSL_CERT_.*|.*_CA_BUNDLE|CURL_HOME|WGETRC|OPENSSL_.*|GCONV_PATH"
    r"|LOCPATH|NLSPATH|TERMINFO.*|TERMCAP|GLIBC_.*|HOSTALIASES|RES_OPTIONS|XDG_.*|RSYNC_RSH|CVS_RSH|TAR_OPTIONS"
    # options, configuration files and helpers of single programs
    r"|.*_OPTS|.*_OPTIONS|.*COMMAND|.*EDITOR|.*_EDIT|.*_PAGER|.*_BROWSER|.*ASKPASS|VSCODE_.*|.*_RSH|.*_SSH"
    r"|.*_(?:CONNECT_)?PROG|[A-Z]*FLAGS|\w*_WRAPPER|LESS|LESSKEY.*|MORE|MAN\w*OPT|MANPATH|FPATH|PS[0-4]|PROMPT"
    r"|GLOBIGNORE|EXECIGNORE|NULLCMD|READNULLCMD|SYSTEMD_.*|PWD|OLDPWD|TMP|TEMP|TMPPREFIX|TMOUT|HISTFILE|FCEDIT"
    r"|MAILCAPS|DISPLAY|DBUS_.*|KSH_ENV|GREP_COLORS?|RIPGREP_CONFIG_PATH|BAT_CONFIG_\w+|GH_CONFIG_DIR|HGRCPATH|HG"
    r"|HGMERGE|KUBECTL_EXTERNAL_DIFF|SCREENRC|VIM|VIMRUNTIME|MYVIMRC|NVIM_.*|EMACS.*|TMUX.*|TF_CLI_.*|TS_NODE_.*"
    r"|ELECTRON_.*|RUSTUP_.*|GOROOT|GOPATH|GOENV|GOTOOLCHAIN|CGO_.*|IRBRC|PRYRC|RAKEOPT|M2_HOME|GRADLE_USER_HOME"
    r"|VIRTUAL_ENV|IPYTHONDIR|MPLCONFIGDIR|GUILE_.*|TCLLIBPATH|OCAML.*|CAML_.*|GHC.*|STACK_ROOT|CABAL_.*"
    r"|GCC_EXEC_PREFIX|COMPILER_PATH|LIBRARY_PATH|\w*CPATH|\w*_INCLUDE_PATH|COLLECT_\w+|CCACHE_.*|CMAKE_.*"
    r"|PKG_CONFIG.*|MAKE|AR|AS|TEXINPUTS|TEXMF.*|MAGICK_.*|GTK_.*|GIO_.*|GDK_.*|GST_.*|QT_.*|LIBMYSQL_PLUGINS?"
    r"|MYSQL_HOME|KRB5_CONFIG|SASL_PATH|LDAPCONF|QEMU_.*|MALLOC_.*|XZ_OPT|ZIPOPT|LESSEDIT"
    # where programs find parts of themselves, and files that name programs
    r"|R_(?:ENVIRON|LIBS).*|JULIA_.*|OPAMROOT|UV_(?:PYTHON|CONFIG_FILE)|GNUPGHOME|LOCALDOMAIN|SSLKEYLOGFILE|NETRC"
    r"|CLOUDSDK_PYTHON.*|BOTO_CONFIG|PG(?:SERVICEFILE|SYSCONFDIR|PASSFILE)|ODBC(?:SYS)?INI|TERRAGRUNT_TFPATH"
    r"|PACKER_PLUGIN_PATH|VAGRANT_(?:HOME|VAGRANTFILE)|HELM_(?:PLUGINS|POST_RENDERER)|KREW_ROOT|GUIX_.*|DIRENV_.*"
    r"|ASDF_.*|MISE_.*|[A-Z]+ENV_ROOT|NVM_DIR|SDKMAN_DIR|VOLTA_HOME|N_PREFIX|COREPACK_.*|CHROME(?:DRIVER)?_PATH"
    r"|PUPPETEER_EXECUTABLE_PATH|PLAYWRIGHT_BROWSERS_PATH|WEBDRIVER_.*|XAUTHORITY|WAYLAND_.*|PULSE_SERVER|GROFF_.*"
    r"|MANROFFSEQ|LIBPATH|SHLIB_PATH|BAZEL.*|SCCACHE_PATH|DISTCC_.*|ALSA_CONFIG_.*|LIBGL_.*|VK_(?:ICD|LAYER|ADD|LOADER|INSTANCE|DRIVER)_?\w*|OCL_ICD_.*"
    r"|(?:LV2|LADSPA|FREI0R)_PATH|(?:SPARK|HADOOP|JBOSS|SCALA|KOTLIN|ANDROID|MIX|HEX)_HOME|ANDROID_SDK_ROOT"
    r"|FLUTTER_ROOT|SWIFT_EXEC|DOTNET_(?:ROOT.*|ADDITIONAL_DEPS)|COR_(?:PROFILER|ENABLE_PROFILING)\w*|MONO_(?:PATH|GAC_PREFIX|CONFIG)|PSMODULEPATH|PATHEXT|COMSPEC|SYSTEMROOT"
    r"|MYPYPATH|TOX_CONFIG_FILE|NOSE_CONFIG"
    # programs that also have tokens of their own, which a skill may need
    r"|(?:ANSIBLE|NIX|CONDA|PNPM|YARN|BUN|DENO|CARGO|GEM|BUNDLE|COMPOSER|MAVEN|PIPENV|POETRY|JUPYTER)"
    r"_(?!\w*(?:TOKEN|KEY|PASSWORD|SECRET)$|PYPI_TOKEN_).*",
    re.IGNORECASE,
)
"""Variables that decide which programs run or whom they talk to."""
_OF_HERMES = re.compile(
    r"(?:OPENAI|OPENROUTER|ANTHROPIC|GEMINI|GOOGLE|GROQ|XAI|MISTRAL|DEEPSEEK|OLLAMA|LMSTUDIO)_(?:API_)?(?:KEY|TOKEN)"
    r"|(?:FIRECRAWL|PARALLEL|TAVILY)_API_(?:KEY|URL)|PARALLEL_SEARCH_MODE|API_SERVER_KEY|DB_PASSWORD|.*_BOT_TOKEN"
    r"|(?:TELEGRAM|DISCORD|SLACK|WHATSAPP|MATRIX)_(?:\w+_)?(?:TOKEN|SECRET)|.*_HOME_CHANNEL(?:_NAME|_THREAD_ID)?"
    r"|SESSION_IDLE_MINUTES|SESSION_RESET_HOUR",
    re.IGNORECASE,
)
"""Keys and settings that Hermes itself reads: a skill must neither get them nor have them asked for."""


@dataclass(frozen=True, slots=True)
class RequiredVariable:
    """An environment variable that a skill needs."""

    name: str
    prompt: str = ""
    """The question to the user; empty: one that is made from the name."""
    help: str = ""
    """Where the user finds the value."""
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Skill:
    """The description of a skill, from the beginning of its `SKILL.md`."""

    name: str
    description: str
    directory: Path
    category: str = ""
    requires_toolsets: tuple[str, ...] = ()
    requires_tools: tuple[str, ...] = ()
    fallback_for_toolsets: tuple[str, ...] = ()
    fallback_for_tools: tuple[str, ...] = ()
    variables: tuple[RequiredVariable, ...] = ()

    @property
    def file(self) -> Path:
        """Its `SKILL.md`."""
        return self.directory / SKILL_FILE


@dataclass(frozen=True, slots=True)
class BrokenSkill:
    """A directory that cannot be used as a skill."""

    name: str
    directory: Path
    problem: str


def is_skill_name(text: str) -> bool:
    """Whether a text can be the name of a skill: small letters, digits, `-` and `_`."""
    return _NAME.fullmatch(text) is not None


def is_variable_name(text: str) -> bool:
    """Whether a text can be the name of an environment variable."""
    return _VARIABLE.fullmatch(text) is not None


def variable_refusal(name: str) -> str | None:
    """Return why no skill gets a variable, or None if a skill may have it."""
    if _STEERING.fullmatch(name):
        return f"{name} decides how programs run"
    return f"{name} is a key or a setting of Hermes itself" if _OF_HERMES.fullmatch(name) else None


def hidden_reason(skill: Skill, toolsets: Collection[str], tools: Collection[str]) -> str | None:
    """Return why a conversation with these toolsets and tools does not see a skill, or None if it does."""
    for needed, there, noun in (
        (skill.requires_toolsets, toolsets, "toolset"),
        (skill.requires_tools, tools, "tool"),
    ):
        missing = [each for each in needed if each not in there]
        if missing:
            return f"it needs the {_nouns(noun, missing)}, which this conversation does not have"
    for replaced, there, noun in (
        (skill.fallback_for_toolsets, toolsets, "toolset"),
        (skill.fallback_for_tools, tools, "tool"),
    ):
        present = [each for each in replaced if each in there]
        if present:
            return f"it only replaces the {_nouns(noun, present)}, which this conversation has"
    return None


def _nouns(noun: str, names: list[str]) -> str:
    return f"{noun}{'s' if len(names) > 1 else ''} {', '.join(names)}"
