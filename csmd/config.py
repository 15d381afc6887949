"""Settings, directories and the environment; the only module that reads the environment.

`config.yaml` may set the keys of Settings and nothing else: an unknown key is an error with a suggestion.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from csmd.errors import ConfigError
from csmd.parameters import TYPE_NAMES
from csmd.paths import Paths

#: Globs of files that usually hold secrets: left out unless the user removes one with `!`.
SECRET_FILES = (
    "**/.env", "**/.env.*", "**/*.pem", "**/id_rsa*", "**/id_ed25519*", "**/.netrc", "**/.pgpass", "**/credentials",
    "**/secrets.yml", "**/secrets.yaml", "**/secrets.json", "**/secrets.toml", "**/secrets.env",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The keys of config.yaml, as in `brief.max_tokens`, with their defaults."""

    brief_max_tokens: int = 900
    """Most tokens that the brief at a session's start may take."""
    recall_max_tokens: int = 500
    """Most tokens that may be added to one prompt."""
    recall_max_items: int = 12
    """Most memories and passages that may be added to one prompt."""
    recall_floor: float = 0.5
    """Relevance (0-1) below which nothing is added to a prompt."""
    stages_distill: bool = True
    """Choose statements from turns; off: turns are still captured and searchable."""
    stages_candidates: bool = True
    """Observe sessions as packets and count what recurs in them; off: no candidates, and no habits are learnt."""
    stages_promote: bool = True
    """Make memories of candidates that are sure enough; off: they wait, and `csmd pipeline promote` makes them on demand."""
    stages_inject: bool = True
    """Print the brief and recalls into sessions; off: capture and search go on."""
    stages_advisory: bool = False
    """Add the living state to briefs: what was counted lately and is not settled, labelled as a preview."""
    stages_dream: bool = True
    """Consolidate in the background once a day; off: only on request."""
    stages_daily: bool = True
    """Write what was done, day by day, below `memory/` in the home; off: no daily files and none of live sessions."""
    dream_every_h: int = 24
    """Hours between two dreams at least."""
    dream_sessions: int = 5
    """New sessions that a dream waits for."""
    dream_quiet_min: int = 15
    """Minutes without a turn, in any session, before a dream begins."""
    dream_on_battery: bool = False
    """Dream also while the machine runs on its battery."""
    dream_tier_max: int = 2000
    """Memories of one tier in one project beyond which a dream does not wait for time and sessions; 0: no limit."""
    dream_keep_days: int = 90
    """Days for which a dream can be undone; its journal goes then. Between two dreams a week counts at most."""
    embed_model: str = "sentence-transformers/all-MiniLM-L6-v2"
    """Which embedding model to use: an installed one (`csmd model fetch`, `csmd model add`), `ollama/NAME` or `openai/NAME`."""
    embed_idle_s: int = 300
    """Seconds without work after which the embedding worker ends."""
    curator_daily_tokens: int = 40_000
    """Most tokens, in and out, that a language model may take in a day (UTC); nothing is asked beyond it."""
    curator_projects: tuple[str, ...] = ()
    """Directories of walled or excluded projects of which a language model may be asked all the same."""
    curator_price_in: float = 0.0
    """Price of a million tokens that are sent, in any currency, for `csmd ledger`; 0: no price is shown."""
    curator_price_out: float = 0.0
    """Price of a million tokens that are answered."""
    hooks_start_daemon: bool = True
    """Start a daemon that no service manager keeps again when a session starts, once a minute at most; not after `csmd stop`."""
    capture_tool_output_bytes: int = 8192
    """Bytes of one tool output that are kept; the rest stays in the transcript only."""
    capture_session_bytes: int = 50_000_000
    """Bytes of text that are kept of one session; beyond it a turn says that it was not kept, tools' output first."""
    privacy_exclude: tuple[str, ...] = ()
    """Globs of directories whose sessions are not captured, e.g. `~/clients/*`; what is below them is left out, too."""
    privacy_exclude_files: tuple[str, ...] = ()
    """Globs of more files of which nothing is kept, beside the usual places of keys; `!GLOB` takes one of those away."""
    privacy_redact: tuple[str, ...] = ()
    """Words of your own that are taken out like secrets, written as they stand; at least four characters each."""
    storage_tool_output_days: int = 90
    """Days after which the text of tool calls and results is dropped; 0 keeps it."""
    storage_conversation_days: int = 0
    """Days after a session's last turn after which what was said in it is dropped; 0 keeps it. What is remembered stays."""
    checkpoint_keep_days: int = 180
    """Days after which a checkpoint goes with the turns that it has copied; 0 keeps them."""
    storage_max_mb: int = 2000
    """Megabytes that the database may use before the oldest tool output is dropped; 0 for no limit."""
    backup_keep: int = 5
    """Number of backups that are kept; the oldest are deleted."""
    backup_every_h: int = 24
    """Hours between backups that the daemon makes by itself when idle; 0: none."""
    alarm_desktop: bool = True
    """Show a desktop notice, once a day, when nothing is being remembered; `csmd status` shows it in any case."""
    log_max_bytes: int = 2_000_000
    """Size at which the log file is rotated; three older ones are kept."""
    status_line: bool = False
    """Show below each session what it was told; `csmd install` registers it unless you have a status line of your own."""

    @property
    def files_left_out(self) -> tuple[str, ...]:
        """Globs of files whose content is never stored: the usual places of keys, and the user's own globs."""
        user_globs = self.privacy_exclude_files
        defaults = [glob for glob in SECRET_FILES if f"!{glob}" not in user_globs]
        return (*defaults, *(glob for glob in user_globs if not glob.startswith("!")))

    @staticmethod
    def key(name: str) -> str:
        """Returns the name of a field in config.yaml: `brief_max_tokens` is `brief.max_tokens`; status_line has no
        section."""
        return name if name == "status_line" else name.replace("_", ".", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration."""

    paths: Paths
    settings: Settings
    assistant_dirs: tuple[Path, ...]
    """The assistant's configuration directories (CLAUDE_CONFIG_DIR or ~/.claude), absolute, each once."""
    host_dirs: tuple[tuple[str, Path], ...] = ()
    """(host, configuration directory) of the other assistants that csmd was installed for."""


def default_paths(env: Mapping[str, str] = os.environ) -> Paths:
    """csmd's directories: all under CSMD_HOME if set, else in the platform's usual places."""
    home_variable = env.get("CSMD_HOME")
    if home_variable:
        home = _absolute(home_variable, "CSMD_HOME")
        return Paths(home=home, config_file=home / "config.yaml", log_dir=home / "log")
    import platformdirs

    dirs = platformdirs.PlatformDirs("csmd", appauthor=False)
    return Paths(
        home=Path(dirs.user_data_dir).absolute(), config_file=Path(dirs.user_config_dir) / "config.yaml",
        log_dir=Path(dirs.user_state_dir) / "log",
    )  # fmt: skip


def spool_places(home: Path) -> list[Path]:
    """Returns the directories in which hooks leave events that no daemon took, in order; hooks/csmd_spool.py has the
    same list.

    `spool-2` is used if `spool` is not a directory of the user's.
    """
    name = os.path.realpath(home).replace("%", "%25").replace("/", "%2F")
    return [home / "spool", home / "spool-2", Path(f"/tmp/csmd-{os.getuid()}/spool-{name}")]  # noqa: S108


def assistant_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Claude Code's configuration directory in force in this environment."""
    return folder_of("CLAUDE_CONFIG_DIR", ".claude", env)


def recorded_hosts(recorded: Any) -> tuple[tuple[str, Path], ...]:
    """Returns (host, configuration directory) pairs that `csmd install` recorded; () if the record is damaged."""
    if not isinstance(recorded, dict):
        return ()
    return tuple((host, Path(str(folder))) for host, folders in recorded.items() for folder in folders)


#: Variables that assistants set for the commands that they run.
ASSISTANT_VARIABLES = (
    "CLAUDECODE CODEX_SANDBOX CODEX_SANDBOX_NETWORK_DISABLED GEMINI_CLI QWEN_CODE OPENCODE CLINE_ACTIVE COPILOT_CLI "
    "CURSOR_AGENT GOOSE_TERMINAL"
).split()
ASSISTANT_PROGRAMS = frozenset(
    "claude codex gemini qwen opencode copilot cline droid cn kilo amp auggie crush goose cursor-agent vibe aider".split()
)


def assistant_variable(env: Mapping[str, str] = os.environ) -> str:
    """Returns the variable with which an assistant marks the commands it runs; "" for none."""
    return next((name for name in ASSISTANT_VARIABLES if env.get(name)), "")


def assistant_session(env: Mapping[str, str] = os.environ) -> tuple[str, str, str]:
    """Returns (named directory, start directory, id) of the session that started this process; "" if unknown.

    Some assistants name directory and id; others start a server in the session's directory, or anywhere.
    """
    named_directory = env.get("CLAUDE_PROJECT_DIR", "")
    try:
        start_directory = str(Path.cwd())
    except FileNotFoundError:
        start_directory = ""
    directory = named_directory if named_directory.startswith("/") else ""
    return directory, start_directory, env.get("CLAUDE_CODE_SESSION_ID", "")


#: The variable by which a shell's completion script asks `csmd`; click reads it.
COMPLETION_VARIABLE = "_CSMD_COMPLETE"


def completing_shell(env: Mapping[str, str] = os.environ) -> str:
    """Returns the shell that asks for completions; "" for none."""
    return env.get(COMPLETION_VARIABLE, "").partition("_")[0]


def is_chosen(folder: Path, env: Mapping[str, str] = os.environ) -> bool:
    """Whether CLAUDE_CONFIG_DIR names this directory: the assistant then keeps all of its files in it."""
    return bool(env.get("CLAUDE_CONFIG_DIR")) and assistant_dir(env) == folder


def folder_of(variable: str, usual: str, env: Mapping[str, str] = os.environ) -> Path:
    """Returns a program's directory: the one that its variable names ("" for none), else `usual` below the user's
    home."""
    named = env.get(variable, "") if variable else ""
    return _absolute(named, variable) if named else user_home() / usual


def user_home() -> Path:
    """Returns the user's home directory, `~` in the assistant's files."""
    return Path.home()


#: Variables that `csmd doctor` reads; it reports no others.
DOCTOR_VARIABLES = "CSMD_DISABLE CSMD_HOME CLAUDE_CONFIG_DIR CLAUDE_CODE_DISABLE_AUTO_MEMORY PATH container".split()


def environment() -> dict[str, str]:
    """Returns the environment variables that may stop or distort capture."""
    return {name: os.environ[name] for name in DOCTOR_VARIABLES if name in os.environ}


def _absolute(typed_path: str, variable: str) -> Path:
    try:
        return Path(typed_path).expanduser().absolute()
    except RuntimeError as error:
        hint = f"set {variable} to an absolute path"
        raise ConfigError(f"{variable}={typed_path}: no such user", hint=hint) from error


def load(
    *, paths: Paths | None = None, extra_dirs: tuple[Path, ...] = (), host_dirs: tuple[tuple[str, Path], ...] = ()
) -> Config:
    """Returns the configuration in force; ConfigError names the file, the key and a close match.

    `extra_dirs` and `host_dirs` are what `csmd install` recorded: directories of Claude Code, and of other assistants.
    """
    paths = paths or default_paths()
    seen: dict[str, Path] = {}
    for folder in (*extra_dirs, assistant_dir()):
        seen.setdefault(os.path.realpath(folder), folder)  # a directory with two names is read once
    settings = parse_settings(read_text(paths.config_file), where=str(paths.config_file))
    return Config(paths=paths, settings=settings, assistant_dirs=tuple(seen.values()), host_dirs=host_dirs)


def read_text(file: Path) -> str:
    """Returns the text of a configuration file, "" for none; ConfigError if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"{file}: {what}", hint=f"correct {file} or move it away") from error


def parse_settings(text: str, *, where: str) -> Settings:
    """Returns the settings in YAML `text`, nested (`brief: {max_tokens: 900}`) or dotted (`brief.max_tokens: 900`)."""
    import yaml

    try:
        data = yaml.safe_load(text)
        rows = _flatten(data) if isinstance(data, dict) else []
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # ValueError is raised for a date like 2026-99-99, RecursionError for an alias of itself.
        raise ConfigError(f"{where}: not YAML{_reason(error)}", hint=f"correct {where} or move it away") from error
    if data is not None and not isinstance(data, dict):
        hint = f"write keys and values into {where}, or move it away"
        raise ConfigError(f"{where}: expected keys and values", hint=hint)
    by_key = {Settings.key(f.name): f for f in fields(Settings)}
    values: dict[str, Any] = {}
    for key, value in rows:
        field = by_key.get(key)
        if field is None:
            import difflib  # only for a mistyped key

            similar = difflib.get_close_matches(key, by_key, n=1)
            hint = f"did you mean {similar[0]!r}?" if similar else f"choose one of {', '.join(by_key)}"
            raise ConfigError(f"{where}: unknown key {key!r}", hint=hint)
        expected, hint = type(field.default), f"write e.g. {key}: {field.default}"
        if expected is float and type(value) is int:
            value = float(value)
        if expected is tuple:
            value = _parse_words(key, value, where=where)
        if type(value) is not expected:
            raise ConfigError(f"{where}: {key} must be {TYPE_NAMES[expected]}, not {value!r}", hint=hint)
        if isinstance(value, int | float) and not 0 <= value < float("inf"):
            raise ConfigError(f"{where}: {key} must be 0 or more, not {value!r}", hint=hint)
        if field.name in values:
            raise ConfigError(f"{where}: {key} is set twice", hint="remove one of the two")
        values[field.name] = value
    return replace(Settings(), **values)


#: Key -> least and greatest value that can work. 0 is also allowed if it means off.
LIMITS: dict[str, tuple[float, float]] = {
    "brief.max_tokens": (50, 9_000), "recall.max_tokens": (50, 9_000), "recall.max_items": (1, 100),
    "recall.floor": (0, 1), "dream.every_h": (1, 8_760), "dream.sessions": (0, 10_000), "dream.quiet_min": (0, 1_440),
    "dream.tier_max": (10, 1_000_000), "curator.daily_tokens": (0, 1_000_000_000), "dream.keep_days": (1, 36_500),
    "embed.idle_s": (1, 86_400), "capture.tool_output_bytes": (0, 33_554_432),
    "capture.session_bytes": (10_000, 10_000_000_000), "storage.tool_output_days": (1, 36_500),
    "checkpoint.keep_days": (1, 36_500), "storage.max_mb": (20, 10_000_000), "backup.keep": (1, 10_000),
    "backup.every_h": (1, 8_760), "log.max_bytes": (10_000, 1_000_000_000),
}  # fmt: skip
#: Keys for which 0 means no limit, or off.
MAY_BE_0 = frozenset(
    "brief.max_tokens recall.max_tokens recall.max_items dream.tier_max storage.tool_output_days storage.max_mb "
    "checkpoint.keep_days backup.every_h".split()
)


def find_unworkable(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yields (key, problem, remedy) for each valid value that cannot work."""
    for key, (least, greatest) in LIMITS.items():
        value = getattr(settings, key.replace(".", "_"))
        if not (least <= value <= greatest or (value == 0 and key in MAY_BE_0)):
            off = ", or 0 for none" if key in MAY_BE_0 and least > 0 else ""
            problem = f"{key} is {value:,}: it must be {least:,} to {greatest:,}{off}"
            yield key, problem, "csmd config list explains it"
    name = settings.embed_model
    if not MODEL_NAME.fullmatch(name):
        yield "embed.model", f"embed.model is {name!r}: no model has such a name", "csmd model fetch --help"
    for glob in settings.privacy_exclude:
        if not glob.startswith(("/", "*")):
            yield "privacy.exclude", f"privacy.exclude: {glob!r} matches no directory", "begin it with /, ~/ or */"
    for glob in settings.privacy_exclude_files:
        if not glob.strip("!/ "):
            key = "privacy.exclude_files"
            yield key, f"{key}: {glob!r} names no file", "add the file's name"


#: Models in fastembed's list with normalised mean pooling, as the embedding worker does it.
FETCHABLE = (
    "sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    "thenlper/gte-base", "jinaai/jina-embeddings-v2-small-en", "jinaai/jina-embeddings-v2-base-code",
)  # fmt: skip
#: Names of models on the hub.
MODEL_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?|(?:ollama|openai)(?:/[\w.:-]+){1,3}")


def _reason(error: Exception) -> str:
    """Why a text is not YAML, on one line, with the line number."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    line = f" in line {mark.line + 1}" if mark is not None else ""
    return f"{line}: {' '.join(str(problem or error).split())[:200]}"


#: Fewest characters of a word of `privacy.redact`; a shorter one occurs inside other words.
MIN_REDACTED_CHARS = 4


def _parse_words(key: str, value: Any, *, where: str) -> tuple[str, ...]:
    """Returns the texts of a list, with a leading `~` expanded."""
    if not isinstance(value, list) or not all(isinstance(word, str) and word.strip() for word in value):
        hint = f"write e.g. {key}: ['one', 'two']"
        raise ConfigError(f"{where}: {key} must be a list of texts, not {value!r}", hint=hint)
    if key == "privacy.redact" and any(len(word) < MIN_REDACTED_CHARS for word in value):
        what = f"{where}: {key}: a word has fewer than {MIN_REDACTED_CHARS} characters and would redact too much"
        raise ConfigError(what, hint="write a longer one")
    home = str(Path.home())
    return tuple(home + word[1:] if word == "~" or word.startswith("~/") else word for word in value)


def _flatten(data: dict[Any, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            rows += _flatten(value, f"{name}.")
        else:
            rows.append((name, value))
    return rows


def boot_id() -> str:
    """Returns the id of the machine's current boot; "" if the platform has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def base_interpreter() -> str:
    """Returns the interpreter outside the virtual environment; hooks run on it, so that they outlive the
    environment."""
    base = getattr(sys, "_base_executable", "") or sys.executable
    return lasting_interpreter(base, venv=sys.prefix if sys.prefix != sys.base_prefix else "")


def own_interpreter() -> str:
    """Returns the interpreter of csmd's own environment, by its name there."""
    return str(Path(sys.executable).absolute())


def lasting_interpreter(base: str, *, venv: str) -> str:
    """Returns the path of `base` outside the environment `venv` ("" for none).

    Links outside of it are not resolved: a package manager moves them at an upgrade and removes their targets.
    """
    inside = bool(venv) and Path(base).is_relative_to(venv)
    if Path(base).is_absolute() and Path(base).exists() and not inside:
        return base
    return os.path.realpath(base)


#: Switches off onnxruntime's telemetry and the hub client's download counts.
SILENT = {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}


def has_desktop(env: Mapping[str, str] = os.environ) -> bool:
    """Whether a desktop can show a notice."""
    return sys.platform == "darwin" or any(map(env.get, ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")))


def full_environment() -> dict[str, str]:
    """Returns the whole environment of this process, for the user's own assistant and for a key in a variable."""
    return dict(os.environ)


def child_environment(*more: str) -> dict[str, str]:
    """Returns the environment for csmd's own processes plus `more`: without the user's keys and Python's variables."""
    names = (*PLACES, *CHILD_VARIABLES, *more)
    return {**{name: os.environ[name] for name in names if name in os.environ}, **SILENT}


#: Variables of the installing shell that the daemon needs: the paths of directories.
PLACES = (
    "CSMD_HOME CLAUDE_CONFIG_DIR XDG_DATA_HOME XDG_CONFIG_HOME XDG_STATE_HOME TIKTOKEN_CACHE_DIR LD_LIBRARY_PATH"
).split()
#: Further variables for csmd's own processes.
CHILD_VARIABLES = (
    "HOME PATH LANG LC_ALL TMPDIR USER LOGNAME XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS DISPLAY WAYLAND_DISPLAY"
).split()


def unit_environment(kind: str, env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the environment that the unit of a service manager (`systemd`, `launchd`) sets for the daemon."""
    return {**{name: env[name] for name in PLACES if env.get(name)}, "CSMD_SERVICE": kind}


def started_by(env: Mapping[str, str] = os.environ) -> str:
    """Returns what runs this daemon: `systemd`, `launchd`, or `detached`."""
    kind = env.get("CSMD_SERVICE", "")
    return kind if kind in ("systemd", "launchd") else "detached"


def take_notify_socket(env: MutableMapping[str, str] = os.environ, *, pid: int | None = None) -> tuple[str, float]:
    """Returns (the service manager's notification socket or "", its watchdog's seconds or 0); removed for child
    processes."""
    address, patience_us, owner = (env.pop(name, "") for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"))
    is_ours = not owner or owner == str(os.getpid() if pid is None else pid)
    return address, int(patience_us) / 1e6 if patience_us.isdigit() and is_ours and address else 0.0


def manager_environment(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the environment that finds the user's service manager, also under cron or `su`, which do not set it."""
    usual_dir = Path(f"/run/user/{os.getuid()}")
    runtime_dir = env.get("XDG_RUNTIME_DIR") or (str(usual_dir) if usual_dir.is_dir() else "")
    names = ("HOME", "PATH", "USER", "LOGNAME", "DBUS_SESSION_BUS_ADDRESS")
    inherited = {name: env[name] for name in names if name in env}
    return {**inherited, "LC_ALL": "C", **({"XDG_RUNTIME_DIR": runtime_dir} if runtime_dir else {})}


def unit_folders(kind: str, env: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Directories of the user's units of a service manager, the likeliest first."""
    if kind == "launchd":
        return (Path.home() / "Library" / "LaunchAgents",)
    config_home = env.get("XDG_CONFIG_HOME", "")
    folders = ([Path(config_home)] if config_home.startswith("/") else []) + [Path.home() / ".config"]
    return tuple(dict.fromkeys(folder / "systemd" / "user" for folder in folders))


def wants_colours(env: Mapping[str, str] = os.environ) -> bool | None:
    """Whether output is styled: as the user's variables say; None leaves it to the terminal."""
    if env.get("NO_COLOR") or env.get("TERM") in ("dumb", "unknown"):
        return False
    return True if env.get("FORCE_COLOR") else None


def can_open_browser(env: Mapping[str, str] = os.environ) -> bool:
    """Whether a browser can be opened at this terminal, which is not so over ssh."""
    has_screen = sys.platform == "darwin" or any(map(env.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return has_screen and not env.get("SSH_CONNECTION")


def chosen_columns(env: Mapping[str, str] = os.environ) -> int:
    """Returns the width that COLUMNS sets; 0 for none."""
    columns = env.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() else 0


def has_screen(env: Mapping[str, str] = os.environ) -> bool:
    """Whether the user has a desktop session."""
    return bool(env.get("WAYLAND_DISPLAY") or env.get("DISPLAY")) and not env.get("SSH_CONNECTION")
