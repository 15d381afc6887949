"""Whether the assistant runs csmd's hooks, and as they were installed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from csmd.cli import assistant, edited, entries, mcp_config, settings
from csmd.cli.checks.scene import Check, Finding, Scene, fail, note, warn
from csmd.cli.disk import left_out
from csmd.cli.install import HOOK_FILES, SERVER_SCRIPT
from csmd.cli.install import trouble as trouble_of

#: csmd's own plugin carries the same hooks.
PLUGIN = "csmd"
#: Keys of managed settings that bear on capture.
MANAGED_KEYS = ("hooks", "disableAllHooks", "allowManagedHooksOnly", "cleanupPeriodDays", "autoMemoryEnabled", "env")


def _settings(scene: Scene) -> Iterator[Finding]:
    for source in scene.sources:
        if source.problem:
            said = f"{source.path}: {source.problem}; the assistant ignores the whole file"
            yield fail(said) if source.scope == "user" else warn(said)


def _registered(scene: Scene) -> Iterator[Finding]:
    if PLUGIN in assistant.plugins(scene.sources):
        return
    for source in scene.sources:
        if source.scope != "user" or source.problem:
            continue
        here = {one.event for one in scene.ours if one.path == source.path}
        missing = [event for event in settings.EVENTS if event not in here]
        if len(missing) == len(settings.EVENTS):
            yield fail(f"no hook of csmd's is registered in {source.path}")
        elif missing:
            yield fail(f"{source.path}: no hook is registered for {', '.join(missing)}")


def _altered(scene: Scene) -> Iterator[Finding]:
    noted = scene.paths.hook_dir / "interpreter"
    if not noted.is_file():
        return
    interpreter = noted.read_text(encoding="utf-8", errors="replace").strip()
    for one in scene.ours:
        if one.event in settings.TIMEOUTS:
            changed = one.command != settings.hook_command(interpreter, scene.paths.home, one.event)
            if changed or one.timeout != settings.TIMEOUTS[one.event]:
                yield warn(f"{one.path}: the hook for {one.event} is not as csmd wrote it")


def _twice(scene: Scene) -> Iterator[Finding]:
    for (event, path), count in Counter((one.event, one.path) for one in scene.ours).items():
        if count > 1:
            yield warn(f"{path}: {count} hooks of csmd's for {event}; each event is stored once, at twice the cost")
    if PLUGIN in assistant.plugins(scene.sources) and scene.ours:
        yield note(
            "csmd's plugin and its hooks in settings.json are both on: each event is reported twice, stored once"
        )


def _foreign_homes(scene: Scene) -> Iterator[Finding]:
    other = sorted({(one.home, one.path) for one in scene.hooks if one.home not in ("", str(scene.paths.home))})
    for home, path in other:
        gone = "" if Path(home).is_dir() else ", which is gone"
        yield warn(f"{path}: hooks of another csmd home, {home}{gone}",
                   f"`CSMD_HOME={home} csmd uninstall` takes them out")  # fmt: skip


def _python(scene: Scene) -> Iterator[Finding]:
    for trouble in trouble_of(scene.paths):  # `csmd status` says the same
        yield fail(trouble.partition(";")[0])


def _script(scene: Scene) -> Iterator[Finding]:
    if not scene.ours and not scene.paths.hook_dir.is_dir():
        return
    for name in HOOK_FILES:
        path = scene.paths.hook_dir / name
        if not path.is_file():
            yield fail(f"the hook's file is gone: {path}")
        elif path.read_bytes() != (scene.share / name).read_bytes():
            yield warn(f"{path} is not the one that this csmd ships: altered, or of another version")


def _disabled(scene: Scene) -> Iterator[Finding]:
    for source in scene.sources:
        if source.value.get("disableAllHooks") is True:
            where = "" if source.scope in ("user", "managed") else " (in this directory)"
            yield fail(f"{source.path}: disableAllHooks is true{where}: no hook runs")


def _managed_only(scene: Scene) -> Iterator[Finding]:
    for source in scene.sources:
        if source.value.get("allowManagedHooksOnly") is True and source.scope == "managed":
            yield fail(f"{source.path}: allowManagedHooksOnly is true: hooks of users do not run")


def _managed(scene: Scene) -> Iterator[Finding]:
    for source in scene.sources:
        named = [key for key in MANAGED_KEYS if key in source.value]
        if source.scope == "managed" and named:
            yield note(f"{source.path}: your organisation sets {', '.join(named)}")


def _switched_off(scene: Scene) -> Iterator[Finding]:
    if scene.env.get("CSMD_DISABLE") == "1":
        yield fail("CSMD_DISABLE=1 is set here: no session that starts from this shell is captured",
                   "unset CSMD_DISABLE, and look where your shell sets it")  # fmt: skip
    found = assistant.variable(scene.sources, "CSMD_DISABLE")
    if found is not None and found[1] == "1":
        yield fail(f"{found[0].path}: `env` sets CSMD_DISABLE=1: hooks end at once")


def _server(scene: Scene) -> Iterator[Finding]:
    if PLUGIN in assistant.plugins(scene.sources):
        return
    for path in dict.fromkeys(entries.state_file(folder) for folder in scene.recorded):
        if not mcp_config.is_registered(edited.read(path), scene.paths.home):
            yield warn(f"csmd's memory server is not registered in {path}: a session's model cannot search")
    script = scene.paths.hook_dir / SERVER_SCRIPT
    if scene.recorded and not os.access(script, os.X_OK):
        yield warn(f"the memory server's program is gone or cannot be run: {script}")


def _marked(scene: Scene) -> Iterator[Finding]:
    mark = left_out(str(scene.cwd))
    if mark:
        yield warn(f"csmd is switched off in this directory: {mark} lies there, and nothing that is said is captured")


CHECKS: tuple[Check, ...] = (
    Check(id="settings", question="Can the assistant's settings files be read?", look=_settings,
          remedy="correct the file, or move it away and run `csmd install`"),
    Check(id="hooks", question="Is a hook registered for every event?", look=_registered,
          remedy="`csmd install`"),
    Check(id="hooks-altered", question="Are the registered hooks as csmd wrote them?", look=_altered,
          remedy="`csmd install` writes them anew"),
    Check(id="hooks-twice", question="Is each registered once?", look=_twice,
          remedy="`csmd install` leaves one of each"),
    Check(id="hooks-other-home", question="Are there hooks of another csmd?", look=_foreign_homes,
          remedy="`csmd uninstall` with that home as CSMD_HOME"),
    Check(id="hook-python", question="Is the Python there that the hooks run on?", look=_python,
          remedy="`csmd install` finds another"),
    Check(id="hook-script", question="Is the hook the one that csmd ships?", look=_script,
          remedy="`csmd install` copies it again"),
    Check(id="server", question="Is the memory server registered?", look=_server,
          remedy="`csmd install`"),
    Check(id="hooks-disabled", question="Is `disableAllHooks` off in every settings file?", look=_disabled,
          remedy="take `disableAllHooks` out of that file"),
    Check(id="hooks-managed-only", question="Do managed settings let users' hooks run?", look=_managed_only,
          remedy="ask who manages this machine; what transcripts hold is captured all the same"),
    Check(id="managed-settings", question="Do managed settings bear on capture?", look=_managed,
          remedy="nothing has to be done; only who manages this machine can change it"),
    Check(id="switched-off", question="Is CSMD_DISABLE unset?", look=_switched_off,
          remedy="take CSMD_DISABLE out of `env` in that file"),
    Check(id="left-out", question="Is this directory not left out?", look=_marked,
          remedy="remove that file; what was said meanwhile stays left out"),
)  # fmt: skip
