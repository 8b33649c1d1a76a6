"""The frontmatter of a skill, also a hostile one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.models.choice import PROVIDERS
from hermes.agent.skills.frontmatter import MAX_FRONTMATTER, parse_skill, split_frontmatter
from hermes.agent.skills.skill import RequiredVariable, Skill, hidden_reason, is_skill_name, variable_refusal
from hermes.cli.gateway.setting_up.questions import PLATFORMS
from hermes.errors import InvalidValue
from hermes.web.backends.choice import BACKENDS
from tests.support.quickness import is_quick

DIRECTORY = Path("/skills/deploy")


def parse(fields: str, name: str = "deploy") -> Skill:
    return parse_skill(f"---\nname: {name}\ndescription: Deploys\n{fields}\n---\nText\n", DIRECTORY)


class TestFields:
    def test_all_fields_are_read(self) -> None:
        skill = parse(
            "requires_toolsets: [terminal, files]\nrequires_tools: [terminal]\nfallback_for_toolsets: [web]\n"
            "fallback_for_tools: [web_search]\nrequired_environment_variables: [A_TOKEN]"
        )
        assert skill == Skill(
            name="deploy",
            description="Deploys",
            directory=DIRECTORY,
            requires_toolsets=("terminal", "files"),
            requires_tools=("terminal",),
            fallback_for_toolsets=("web",),
            fallback_for_tools=("web_search",),
            variables=(RequiredVariable("A_TOKEN"),),
        )

    @pytest.mark.parametrize(
        "key", ["requires_toolsets", "requires_tools", "fallback_for_toolsets", "fallback_for_tools"]
    )
    def test_text_where_a_list_belongs_is_one_item(self, key: str) -> None:
        assert getattr(parse(f"{key}: terminal"), key) == ("terminal",)

    def test_fields_in_metadata_count_too(self) -> None:
        skill = parse("metadata:\n  hermes:\n    requires_tools: terminal\n    fallback_for_toolsets: [web]")
        assert (skill.requires_tools, skill.fallback_for_toolsets) == (("terminal",), ("web",))

    @pytest.mark.parametrize("metadata", ["metadata: 7", "metadata: {hermes: 7}", "metadata: {other: {}}"])
    def test_other_metadata_has_no_conditions(self, metadata: str) -> None:
        assert parse(metadata).requires_tools == ()

    def test_name_defaults_to_that_of_the_directory(self) -> None:
        assert parse_skill("---\ndescription: x\n---\n", DIRECTORY).name == "deploy"

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("A_KEY", (RequiredVariable("A_KEY"),)),
            ("[A_KEY, A_KEY, B_KEY]", (RequiredVariable("A_KEY"), RequiredVariable("B_KEY"))),
            ("{name: A_KEY, prompt: Key?, help: see x}", (RequiredVariable("A_KEY", "Key?", "see x"),)),
            ("[{env_var: A_KEY, url: 'https://x.example', optional: true}]", (
                RequiredVariable("A_KEY", help="https://x.example", is_optional=True),
            )),
        ],
    )  # fmt: skip
    def test_variables_may_be_names_or_objects(self, value: str, expected: tuple[RequiredVariable, ...]) -> None:
        assert parse(f"required_environment_variables: {value}").variables == expected

    def test_description_is_one_line_without_hidden_characters(self) -> None:
        skill = parse_skill('---\ndescription: "a\\e[2J\\n\\nb \\u202e"\n---\n', DIRECTORY)
        assert skill.description.isprintable()
        assert "\n" not in skill.description

    def test_windows_line_ends_and_a_mark_at_the_beginning_are_accepted(self) -> None:
        assert parse_skill("\ufeff---\r\nname: x\r\ndescription: y\r\n---\r\nText", DIRECTORY).name == "x"


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "does not begin with frontmatter"),
            ("# Title\n---\nname: x\n---\n", "does not begin with frontmatter"),
            ("---\nname: x\n", "does not begin with frontmatter"),
            ("---\n" + "a: b\n" * MAX_FRONTMATTER + "---\n", "does not begin with frontmatter"),
            ("---\n---\n", "has no fields"),
            ("---\n- a\n---\n", "has no fields"),
            ("---\nname: x\n---\n", "no description"),
            ("---\ndescription: [a]\n---\n", "no description"),
            ("---\ndescription: " + "x" * 2000 + "\n---\n", "description has 2000"),
            ("---\na: [\n---\n", "not valid YAML"),
            ("---\na: \x07\n---\n", "not valid YAML"),
            ("---\na: &x 1\nb: *x\n---\n", "anchor or an alias"),
            ("---\na: !!python/object/apply:os.system [id]\n---\n", "a tag"),
            ("---\na: !x 1\n---\n", "a tag"),
            ("---\na: " + "[" * 20 + "]" * 20 + "\n---\n", "nested too deeply"),
            ("---\na: [" + "1," * 3000 + "]\n---\n", "too many entries"),
            ("---\n? [a]\n: b\n---\n", "not valid YAML"),
            ("---\na: 1111-99-99\n---\n", "not valid YAML"),
        ],
    )
    def test_unusable_frontmatter_is_refused(self, text: str, problem: str) -> None:
        with pytest.raises(InvalidValue, match=problem):
            parse_skill(text, DIRECTORY)

    @pytest.mark.parametrize("name", ["../x", "a/b", "A", ".x", "", "x" * 65, "a b", "-a", "7:", "x\x1b", "ä"])
    def test_unusable_name_is_refused(self, name: str) -> None:
        assert not is_skill_name(name)
        with pytest.raises(InvalidValue):
            parse_skill(f"---\nname: {name!r}\ndescription: x\n---\n", DIRECTORY)

    @pytest.mark.parametrize("value", ["7", "{a: b}", "[1]", "[[a]]", "[" + "a," * 60 + "]"])
    def test_unusable_condition_is_refused(self, value: str) -> None:
        with pytest.raises(InvalidValue, match="requires_tools must be"):
            parse(f"requires_tools: {value}")

    @pytest.mark.parametrize("name", ["1A", "A-B", "A B", "A=B", "x" * 200, "A\\n"])
    def test_unusable_variable_name_is_refused(self, name: str) -> None:
        with pytest.raises(InvalidValue, match="required_environment_variables"):
            parse(f'required_environment_variables: ["{name}"]')

    @pytest.mark.parametrize(
        "name",
        ["PATH", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "BASH_ENV", "NODE_OPTIONS", "GIT_SSH_COMMAND",
         "HERMES_HOME", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TAVILY_API_KEY", "TELEGRAM_BOT_TOKEN", "https_proxy"],
    )  # fmt: skip
    def test_variable_of_the_agent_or_of_the_system_is_refused(self, name: str) -> None:
        assert variable_refusal(name) is not None
        with pytest.raises(InvalidValue, match="not allowed"):
            parse(f"required_environment_variables: {name}")

    @pytest.mark.parametrize("unit", ["---\n", "- ", "a: b\n", "[", "&a ", "\n", "--- ", "{"])
    def test_hostile_text_of_256_kb_is_parsed_quickly(self, unit: str) -> None:
        text = "---\n" + unit * (256_000 // len(unit))

        def work() -> None:
            with pytest.raises(InvalidValue):
                parse_skill(text, DIRECTORY)

        assert is_quick(work)


def test_frontmatter_ends_at_its_second_line() -> None:
    assert split_frontmatter("---\na: b\n---\nText\n---\nmore\n") == ("a: b\n", "Text\n---\nmore\n")


@pytest.mark.parametrize(
    ("fields", "toolsets", "tools", "reason"),
    [
        ("", (), (), None),
        ("requires_toolsets: web", ("web",), (), None),
        ("requires_toolsets: web", ("files",), (), "it needs the toolset web, which this conversation does not have"),
        ("requires_toolsets: [web, a, b]", ("web",), (), "it needs the toolsets a, b, which"),
        ("requires_tools: terminal", (), ("terminal",), None),
        ("requires_tools: terminal", ("terminal",), (), "it needs the tool terminal"),
        ("fallback_for_toolsets: web", ("files",), (), None),
        ("fallback_for_toolsets: [x, web]", ("web",), (), "it only replaces the toolset web, which this"),
        ("fallback_for_tools: web_search", (), ("web_search",), "it only replaces the tool web_search"),
        ("requires_tools: a\nfallback_for_tools: b", (), ("a",), None),
        ("requires_tools: a\nfallback_for_tools: b", (), ("a", "b"), "it only replaces the tool b"),
    ],
)
def test_skill_is_visible_if_all_conditions_hold(
    fields: str, toolsets: tuple[str, ...], tools: tuple[str, ...], reason: str | None
) -> None:
    found = hidden_reason(parse(fields), toolsets, tools)
    assert found is None if reason is None else (found or "").startswith(reason)


@pytest.mark.parametrize(
    "name",
    [
        *("SHELLOPTS", "PS4", "LESSOPEN", "MAKEFLAGS", "CC", "RUSTC_WRAPPER", "PIP_INDEX_URL", "UV_INDEX_URL"),
        *("LUA_INIT", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "OPENSSL_CONF", "GCONV_PATH", "ZDOTDIR", "XDG_CONFIG_HOME"),
        *("RSYNC_RSH", "DOTNET_STARTUP_HOOKS", "JDK_JAVA_OPTIONS", "CLASSPATH", "PYTEST_ADDOPTS", "TAR_OPTIONS", "ps4"),
        *("LESS", "LESSKEY", "FPATH", "HGRCPATH", "SVN_SSH", "KUBE_EDITOR", "SYSTEMD_EDITOR", "GH_PAGER", "CFLAGS"),
        *("RIPGREP_CONFIG_PATH", "FZF_DEFAULT_COMMAND", "FZF_DEFAULT_OPTS", "BORG_PASSCOMMAND", "RSYNC_CONNECT_PROG"),
        *(
            "CARGO_BUILD_RUSTC_WRAPPER",
            "GCC_EXEC_PREFIX",
            "COMPILER_PATH",
            "MAVEN_OPTS",
            "ANSIBLE_LIBRARY",
            "PS0",
            "TMP",
        ),
        *(
            "CHROME_PATH",
            "GNUPGHOME",
            "HELM_PLUGINS",
            "NETRC",
            "SSLKEYLOGFILE",
            "PYENV_ROOT",
            "COR_PROFILER",
            "BAZEL_SH",
        ),
        *("GTK_MODULES", "LIBMYSQL_PLUGINS", "GEM_PATH", "PRYRC", "EMACSLOADPATH", "NIX_PATH", "KRB5_CONFIG"),
    ],
)
def test_variable_that_makes_a_program_run_another_is_refused(name: str) -> None:
    assert variable_refusal(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        *("SHOP_TOKEN", "KUBECONFIG", "UV_PUBLISH_TOKEN", "CCC", "PS4_TOKEN", "AWS_PROFILE", "SHOP_CREDIT"),
        *("CARGO_REGISTRY_TOKEN", "GEM_HOST_API_KEY", "POETRY_PYPI_TOKEN_SHOP", "SLACK_WEBHOOK_URL"),
        *("VK_TOKEN", "MONO_TOKEN", "OBSIDIAN_VAULT_PATH", "PGPASSWORD", "CHROME_TOKEN"),
    ],
)
def test_ordinary_variable_is_allowed_for_a_skill(name: str) -> None:
    assert variable_refusal(name) is None


def own_variables() -> list[str]:
    """The variables that Hermes itself reads, or whose names `hermes setup` and `hermes gateway setup` propose."""
    return [
        *(each.key_variable for each in PROVIDERS.values() if each.key_variable),
        *(name for each in BACKENDS.values() for name in (each.key_variable, each.url_variable) if name),
        *(each.variable for kind in PLATFORMS.values() for each in kind.secrets),
        *("HERMES_MODEL_KEY", "PARALLEL_SEARCH_MODE", "SESSION_IDLE_MINUTES", "SESSION_RESET_HOUR"),
        *("TELEGRAM_HOME_CHANNEL", "SLACK_HOME_CHANNEL_NAME", "DISCORD_HOME_CHANNEL_THREAD_ID"),
    ]


@pytest.mark.parametrize("name", own_variables())
def test_variable_that_hermes_itself_reads_is_refused(name: str) -> None:
    assert variable_refusal(name) is not None
