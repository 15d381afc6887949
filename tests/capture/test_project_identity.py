"""Which project a directory belongs to: told from git's own files, as git itself made them; nothing else is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.capture import project_identity
from csmd.conversation import Project
from csmd.store import files


def git(where: Path, *arguments: str) -> None:
    """The real git, without the settings of whoever runs the tests."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(where), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip
    settings = ("-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, *arguments], cwd=where, env=environment, check=True, capture_output=True)


def repository(where: Path) -> Path:
    where.mkdir(parents=True)
    git(where, "init")
    git(where, "commit", "--allow-empty", "-m", "first")
    return where


def identify(place: Path | str, *, start: Path | str = "") -> Project:
    return project_identity.identify(str(place), disk=files, start=str(start))


@dataclass
class InMemory:
    """A disk of these files (path -> text); `folds` is how it tells names apart, as on macOS or not at all."""

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folds: Callable[[str], str] = str
    asked: list[str] = field(default_factory=list)

    def _held(self, path: str) -> str | None:
        return next((held for held in self._all() if self.folds(held) == self.folds(path)), None)

    def _all(self) -> set[str]:
        return {str(part) for path in self.files for part in (PurePosixPath(path), *PurePosixPath(path).parents)}

    def read_small(self, path: str, limit: int = 65_536) -> str | None:
        self.asked.append(path)
        held = self._held(path)
        return None if held is None else self.files.get(held, "")[:limit]

    def resolve(self, path: str) -> tuple[str, bool]:
        return self.links.get(path, path), self._held(self.links.get(path, path)) is not None

    def is_missing(self, path: str) -> bool:
        return self._held(self.links.get(path, path)) is None

    def is_same_file(self, one: str, other: str) -> bool:
        return self._held(one) is not None and self._held(one) == self._held(other)

    def list_names(self, folder: str) -> list[str]:
        held = self._held(folder)
        return [PurePosixPath(path).name for path in self._all() if str(PurePosixPath(path).parent) == held]

    def is_link(self, path: str) -> bool:
        return path in self.links

    def file_stamp(self, path: str) -> str:
        return ""


WINDOWS = {
    "a drive": (r"C:\Users\dev\my shop", "", r"C:\Users\dev\my shop", "my shop"),
    "a drive with slashes": ("D:/shops/shop/", "", r"D:\shops\shop", "shop"),
    "a server": (r"\\wsl.localhost\Debian\srv\till", "", r"\\wsl.localhost\Debian\srv\till", "till"),
    "a root": ("E:\\", "", "E:\\", "E:\\"),
    "below where its session began": (r"C:\shop\web\src", r"c:\Shop", r"c:\Shop", "Shop"),
    "beside where its session began": (r"C:\shop2", r"C:\shop", r"C:\shop2", "shop2"),
    "a worktree of an assistant": (r"C:\shop\.claude\worktrees\fix\src", "", r"C:\shop", "shop"),
    "of no line, but of its session": ("", r"C:\shop", r"C:\shop", "shop"),
}


@pytest.mark.parametrize(("cwd", "start", "root", "name"), WINDOWS.values(), ids=WINDOWS)
def test_a_directory_of_windows_is_named_as_it_was_and_no_disk_is_asked(
    cwd: str, start: str, root: str, name: str
) -> None:
    disk = InMemory({"/C:/shop/.git/HEAD": ""})
    found = project_identity.identify(cwd, disk=disk, start=start)
    assert (found.kind, found.root, found.name) == ("path", root, name)
    assert project_identity.add_fingerprint(found, disk=disk) == found and not disk.asked
    other_case = project_identity.identify(cwd.swapcase(), disk=disk, start=start.swapcase())
    assert other_case.key == found.key


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def main(root: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("no git on this machine")
    return repository(root / "main")


def test_a_repository_is_one_project_from_every_directory_in_it(main: Path) -> None:
    found = identify(main)
    assert (found.kind, found.root, found.name) == ("git", str(main), "main")
    (main / "a" / "b").mkdir(parents=True)
    for place in (main / "a" / "b", main / "not" / "there", main / ".git" / "hooks", f"{main}/", f"{main}/a/./b/..//"):
        assert identify(place) == found


def test_a_worktree_belongs_to_its_repository_wherever_it_stands(main: Path, root: Path) -> None:
    git(main, "worktree", "add", str(root / "elsewhere" / "tree"), "-b", "one")
    git(main, "worktree", "add", str(main / ".worktrees" / "two"), "-b", "two")
    (root / "elsewhere" / "tree" / "deep").mkdir()
    for place in (root / "elsewhere" / "tree", root / "elsewhere" / "tree" / "deep", main / ".worktrees" / "two"):
        assert identify(place) == identify(main)


def test_a_worktree_that_was_moved_with_its_link_in_relative_form_is_still_found(main: Path, root: Path) -> None:
    tree = root / "tree"
    git(main, "worktree", "add", str(tree), "-b", "one")
    (tree / ".git").write_text("gitdir: ../main/.git/worktrees/tree\n")
    assert identify(tree) == identify(main)


def test_a_worktree_of_a_bare_repository_belongs_to_it(main: Path, root: Path) -> None:
    git(root, "clone", "--bare", str(main), "store.git")
    git(root / "store.git", "worktree", "add", str(root / "one"), "main")
    git(root / "store.git", "worktree", "add", str(root / "two"), "-b", "two")
    assert identify(root / "one").key == identify(root / "two").key != identify(main).key


def test_a_submodule_is_a_project_of_its_own(main: Path, root: Path) -> None:
    other = repository(root / "library")
    git(main, "submodule", "add", str(other), "vendor/library")
    inside = identify(main / "vendor" / "library" / "src")
    assert (inside.kind, inside.root) == ("submodule", str(main / "vendor" / "library"))
    assert len({inside.key, identify(main).key, identify(other).key}) == 3


def test_a_repository_inside_another_is_its_own(main: Path) -> None:
    inner = repository(main / "inner")
    assert identify(inner).key != identify(main).key
    assert identify(main / "other").key == identify(main).key


def test_a_repository_with_its_data_elsewhere_is_told_by_its_data(root: Path, main: Path) -> None:
    place = root / "apart"
    place.mkdir()
    git(place, "init", "--separate-git-dir", str(root / "data"))
    found = identify(place / "sub")
    assert (found.kind, found.root) == ("git", str(place))


@pytest.mark.parametrize("marker", ["a directory without HEAD", "an empty file", "another file", "a broken link"])
def test_something_called_dot_git_that_is_none_is_passed_over(root: Path, main: Path, marker: str) -> None:
    for outer, kind in ((main, "git"), (root / "plain", "path")):
        place = outer / "x"
        place.mkdir(parents=True)
        match marker:
            case "a directory without HEAD":
                (place / ".git").mkdir()
            case "an empty file":
                (place / ".git").touch()
            case "another file":
                (place / ".git").write_bytes(b"\xff\x00 not git")
            case _:
                (place / ".git").symlink_to("nowhere")
        assert identify(place).kind == kind
        assert identify(place).root == str(main if kind == "git" else place)


def test_a_link_to_git_data_that_is_gone_is_a_project_still(root: Path) -> None:
    (root / "tree").mkdir()
    (root / "tree" / ".git").write_text("gitdir: /nowhere/main/.git/worktrees/tree\n")
    found = identify(root / "tree" / "sub")
    assert (found.kind, found.root) == ("git", str(root / "tree"))


def test_a_symbolic_link_leads_to_the_real_place(main: Path, root: Path) -> None:
    (root / "link").symlink_to(main)
    (main / "sub").mkdir()
    (root / "deep").symlink_to(main / "sub")
    (root / "plain").mkdir()
    (root / "other").symlink_to(root / "plain")
    for link in (root / "link", root / "deep", root / "link" / "sub", root / "link" / "gone"):
        assert identify(link) == identify(main)
    assert identify(root / "other") == identify(root / "plain")
    assert identify(root / "plain" / "x", start=root / "other") == identify(root / "plain")


def test_links_in_a_ring_are_survived(root: Path) -> None:
    (root / "one").symlink_to(root / "two")
    (root / "two").symlink_to(root / "one")
    assert identify(root / "one" / "sub").kind == "path"


def test_git_data_behind_a_symbolic_link_is_one_repository(main: Path, root: Path) -> None:
    (root / "second").mkdir()
    (root / "second" / ".git").symlink_to(main / ".git")
    assert identify(root / "second").key == identify(main).key


def test_a_bare_repository_is_a_project_from_inside(main: Path, root: Path) -> None:
    git(root, "clone", "--bare", str(main), "store.git")
    found = identify(root / "store.git" / "refs")
    assert (found.kind, found.root) == ("git", str(root / "store.git"))
    git(root / "store.git", "worktree", "add", str(root / "one"), "main")
    assert identify(root / "one") == found


def test_a_bare_repository_hidden_beside_its_worktrees_is_shown_by_its_directory(main: Path, root: Path) -> None:
    (root / "work").mkdir()
    git(root / "work", "clone", "--bare", str(main), ".bare")
    (root / "work" / ".git").write_text("gitdir: ./.bare\n")
    git(root / "work", "worktree", "add", "one", "main")
    found = {identify(root / "work" / name) for name in ("", "one", ".bare", "one/sub")}
    assert [(one.kind, one.root) for one in found] == [("git", str(root / "work"))]


def test_a_worktree_of_a_submodule_belongs_to_the_submodule(main: Path, root: Path) -> None:
    git(main, "submodule", "add", str(repository(root / "library")), "library")
    git(main / "library", "worktree", "add", str(root / "tree"), "-b", "one")
    assert identify(root / "tree").key == identify(main / "library").key


def test_a_name_that_is_no_utf8_is_a_project(root: Path) -> None:
    os.mkdir(os.fsencode(root) + b"/caf\xe9")
    os.symlink(os.fsencode(root) + b"/caf\xe9", root / "link")
    found = identify(root / "link")
    assert found.root.encode() and found.key


# --- what is not here


@pytest.mark.parametrize("home", ["/home/dev", "/Users/dev", "/root"])
def test_a_home_kept_in_git_owns_nothing_that_is_gone(home: str) -> None:
    held = InMemory({f"{home}/.git/HEAD": "ref", f"{home}/here/x": ""})
    assert project_identity.identify(f"{home}/old/client", disk=held).root == f"{home}/old/client"
    assert project_identity.identify(f"{home}/here", disk=held).root == home
    deeper = InMemory({f"{home}/shop/.git/HEAD": "ref"})
    assert project_identity.identify(f"{home}/shop/old", disk=deeper).root == f"{home}/shop"


@pytest.mark.parametrize("tree", [".claude/worktrees/fix-1", ".worktrees/2", ".claude/worktrees/a/b/sub"])
def test_a_worktree_that_is_gone_belongs_to_the_directory_that_held_it(tree: str) -> None:
    elsewhere = project_identity.identify(f"/Users/alex/cli/{tree}", disk=InMemory(), start=f"/Users/alex/cli/{tree}")
    assert elsewhere == project_identity.identify("/Users/alex/cli", disk=InMemory())
    held = InMemory({"/home/dev/.git/HEAD": "x"})  # and its main directory was no repository here
    assert project_identity.identify(f"/home/dev/cli/{tree}", disk=held).root == "/home/dev/cli"


@pytest.mark.parametrize(
    ("tree", "main"),
    [
        ("/w/shop-worktrees/shop-12", "/w/shop"),
        ("/w/shop-worktrees/shop-12/web", "/w/shop"),
        ("/w/shop.worktrees/shop_fix", "/w/shop"),
        ("/w/shop-worktrees/fix", ""),
        ("/w/shop-worktrees/shopping", ""),
        ("/w/shop-12", ""),
        ("/home/dev-worktrees/dev-1", ""),
    ],
)
def test_a_worktree_that_is_gone_is_taken_for_one_of_the_repository_its_folder_is_named_after(
    tree: str, main: str
) -> None:
    found = project_identity.identify(tree, disk=InMemory(), start=tree)
    assert (found.root, found.gone) == (tree, True)
    assert (found.worktree_of.root if found.worktree_of else "") == main


def test_what_the_disk_says_of_the_folder_beside_counts_more_than_names() -> None:
    tree = "/w/shop-worktrees/fix"
    repo = InMemory({"/w/shop/.git/HEAD": "ref"})
    assert project_identity.identify(tree, disk=repo).worktree_of == project_identity.identify("/w/shop", disk=repo)
    plain = project_identity.identify("/w/shop-worktrees/shop-2", disk=InMemory({"/w/shop/notes.txt": ""}))
    assert plain.gone and plain.worktree_of is None, "a directory without git has no worktrees"
    for held in ("notes.txt", ".git/HEAD"):
        here = InMemory({f"/w/shop-worktrees/shop-2/{held}": "", "/w/shop/.git/HEAD": "ref"})
        found = project_identity.identify("/w/shop-worktrees/shop-2", disk=here)
        assert (found.root, found.gone, found.worktree_of) == ("/w/shop-worktrees/shop-2", False, None)


def test_a_directory_of_another_machine_is_no_directory_of_this_one(main: Path) -> None:
    for cwd in ("/Users/x/main", f"/Users/x{main}", "/C:/Users/x/main"):
        found = identify(cwd, start=cwd)
        assert (found.kind, found.root) == ("path", cwd)
    assert identify("/Users/x/main/sub", start="/Users/x/main") == identify("/Users/x/main")


# --- names that are spelled in several ways

NFC, NFD = unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café")


def macos(path: str) -> str:
    return unicodedata.normalize("NFD", path).casefold()


@pytest.mark.parametrize(
    "asked", [f"/Users/Al/{NFC}", f"/users/al/{NFD}", f"/USERS/AL/{NFC.upper()}/", f"/Users/al/{NFD}/Sub"]
)
def test_where_the_disk_folds_case_and_accents_every_spelling_is_one_project(asked: str) -> None:
    held = InMemory({f"/Users/Al/{NFD}/.git/HEAD": "ref", f"/Users/Al/{NFD}/Sub/x": ""}, folds=macos)
    found = project_identity.identify(asked, disk=held)
    assert (found.root, found.kind) == (f"/Users/Al/{NFC}", "git")
    assert found == project_identity.identify(f"/Users/Al/{NFD}", disk=held)


def test_only_the_directories_that_fold_names_are_respelled() -> None:
    held = InMemory({"/mnt/c/Work/x": "", "/MNT/c/y": ""}, folds=lambda path: path[:7] + path[7:].casefold())
    assert project_identity.identify("/mnt/c/WORK", disk=held).root == "/mnt/c/Work"
    assert project_identity.identify("/MNT/c", disk=held).root == "/MNT/c"


def test_a_disk_that_tells_names_apart_has_two_directories(root: Path) -> None:
    for name in ("Case", "case", NFC, NFD):
        (root / name).mkdir()
    assert len({identify(root / name).key for name in ("Case", "case", NFC, NFD)}) == 4


def test_a_directory_that_is_not_here_has_one_key_in_both_forms_of_its_name() -> None:
    assert identify(f"/Users/x/{NFC}") == identify(f"/Users/x/{NFD}")


# --- what a project is recognised by


def marks(place: Path | str) -> Project:
    return project_identity.add_fingerprint(identify(place), disk=files)


def test_a_repository_has_the_same_fingerprint_wherever_it_stands_and_a_clone_another(main: Path, root: Path) -> None:
    before = marks(main)
    git(root, "clone", str(main), "clone")
    git(main, "worktree", "add", str(root / "tree"), "-b", "one")
    git(main, "commit", "--allow-empty", "-m", "second")
    assert before.fingerprint == marks(root / "tree").fingerprint != marks(root / "clone").fingerprint
    main.rename(root / "elsewhere")
    after = marks(root / "elsewhere")
    assert after.fingerprint == before.fingerprint
    assert after.key != before.key


def test_what_could_be_anothers_is_no_fingerprint(root: Path, main: Path) -> None:
    (root / "empty").mkdir()
    for place in (root / "empty", root / "gone", "/Users/x/p"):
        assert marks(place).fingerprint == ""


def test_a_repository_without_a_commit_has_a_fingerprint_of_its_own_until_the_first(root: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("no git on this machine")
    for name in ("one", "two"):
        (root / name).mkdir()
        git(root / name, "init")
    before = marks(root / "one").fingerprint
    assert before and before != marks(root / "two").fingerprint
    (root / "one").rename(root / "moved")
    (root / "moved" / "README.md").write_text("begun")
    assert marks(root / "moved").fingerprint == before
    git(root / "moved", "commit", "--allow-empty", "-m", "first")
    assert marks(root / "moved").fingerprint not in ("", before)


def test_directories_made_of_one_template_have_fingerprints_of_their_own(root: Path) -> None:
    for name in ("one", "two"):
        (root / name).mkdir()
        (root / name / "package.json").write_text('{"name": "template"}')
    first = marks(root / "one").fingerprint
    assert first and first != marks(root / "two").fingerprint
    (root / "one").rename(root / "moved")
    assert marks(root / "moved").fingerprint == first
    (root / "moved" / "package.json").write_text('{"name": "other"}')
    assert marks(root / "moved").fingerprint != first


REMOTES = [
    ("https://github.com/a/b.git", "github.com/a/b"),
    ("https://user:tok3n@GitHub.com/a/b.git/", "github.com/a/b"),
    ("https://tok3n@github.com:443/a/b?access_token=tok3n#x", "github.com/a/b"),
    ("https://user:p@ss:tok3n@github.com/a/b", "github.com/a/b"),
    ("git@github.com:a/b.git", "github.com/a/b"),
    ("github.com:a/b", "github.com/a/b"),
    ("ssh://git@github.com:22/a/b.git", "github.com/a/b"),
    ("ssh://git@github.com:2222/a/b.git", "github.com:2222/a/b"),
    ("git+ssh://git@github.com/a/b", "github.com/a/b"),
    ("git@[::1]:a/b", "[::1]/a/b"),
    ("file:///srv/b.git", "/srv/b"),
    ("/srv/b.git", "/srv/b.git"),
    ("../b", "../b"),
    ("", ""),
]


@pytest.mark.parametrize(("url", "normal"), REMOTES)
def test_a_remote_is_the_same_by_every_way_to_it_and_holds_no_credentials(url: str, normal: str) -> None:
    assert project_identity.normalise_remote(url) == normal
    assert "tok3n" not in normal


def test_a_remote_is_read_as_git_wrote_it(main: Path) -> None:
    git(main, "remote", "add", "upstream", "https://u:tok3n@host.example/up/stream.git")
    assert marks(main).remote == "host.example/up/stream"
    git(main, "remote", "add", "origin", "git@host.example:me/main.git")
    git(main, "config", "url.x.insteadOf", "y")
    assert marks(main).remote == "host.example/me/main"
    assert project_identity.parse_remote('[remote "a"]url=one\n[branch "url"]\n url = no\n[core]\nurl = no') == "one"


@given(st.text(max_size=80))
def test_of_any_address_what_stands_before_the_at_sign_is_not_kept(text: str) -> None:
    assert "s3cr3t" not in project_identity.normalise_remote(f"https://me:s3cr3t@{text}")
    assert "s3cr3t" not in project_identity.normalise_remote(f"https://host/x?{text}&token=s3cr3t")
    project_identity.parse_remote(text)


@pytest.mark.invariant(
    "One resolver tells a directory's project, without a child process; a moved folder is its project, and nothing weak is merged"
)
def test_no_child_process_is_started(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(main, "remote", "add", "origin", "git@host.example:me/main.git")
    started: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "os.system"):
            started.append(event)

    sys.addaudithook(watch)
    assert marks(main).remote
    watching = False
    assert started == []


def test_without_git_the_path_is_the_project(root: Path) -> None:
    found = identify(root / "notes")
    assert (found.kind, found.root, found.name) == ("path", str(root / "notes"), "notes")
    assert identify(root / "notes" / "sub").key != found.key
    assert identify(f"{root}/x/../notes/./") == found
    in_git = project_identity._make_project("git", "git", "/p", root="/p", place="/p", data="/p")
    assert in_git.key != project_identity.make_path_project("/p").key


@pytest.mark.parametrize(
    ("cwd", "start", "place"),
    [
        ("/w/p", "/w/p", "/w/p"),
        ("/w/p/sub/deep", "/w/p", "/w/p"),
        ("/w/p/sub", "/w/p/", "/w/p"),
        ("/w/pq", "/w/p", "/w/pq"),
        ("/w", "/w/p", "/w"),
        ("/w/other", "/w/p", "/w/other"),
        ("/w/p/../q", "/w/p", "/w/q"),
        ("/w/p/sub", "", "/w/p/sub"),
        ("", "/w/p", "/w/p"),
        ("", "", "/"),
        ("/w/p", "/", "/"),
        ("/../..", "", "/"),
        ("relative/path", "", "/relative/path"),
        ("/gone/for/good", "", "/gone/for/good"),
        ("/Users/alex/it's ours", "/Users/alex/it's ours", "/Users/alex/it's ours"),
        ("/a\0b", "", "/ab"),
    ],
)
def test_a_directory_below_the_sessions_start_belongs_to_the_start(cwd: str, start: str, place: str) -> None:
    found = project_identity.identify(cwd, disk=InMemory(), start=start)
    assert (found.kind, found.root, found.name) == ("path", place, place.rpartition("/")[2] or "/")


def test_a_repository_counts_more_than_the_sessions_start(main: Path, root: Path) -> None:
    assert identify(main / "a", start=root) == identify(main)
    assert identify(root / "b", start=root).root == str(root)


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_path_has_a_project(cwd: str, start: str) -> None:
    found = project_identity.identify(cwd, disk=files, start=start)
    assert len(found.key) == 16 and found.root.startswith("/") and found.name


@given(st.binary(max_size=80))
def test_any_content_of_git_files_is_survived(content: bytes) -> None:
    held = content.decode("utf-8", "replace")
    for content_of in (
        {"/a/b/.git": held},
        {"/a/b/.git": "gitdir: d", "/a/b/d/commondir": held},
        {"/a/b/.git": f"gitdir: {held}"},
        {"/a/b/.git/HEAD": held, "/a/b/.git/config": f'[remote "origin"]\nurl = {held}', "/a/b/.git/logs/HEAD": held},
    ):
        found = project_identity.identify("/a/b", disk=InMemory(content_of))
        assert len(project_identity.add_fingerprint(found, disk=InMemory(content_of)).key) == 16


@given(st.text(st.characters(codec=None), max_size=60), st.text(max_size=20))
def test_any_path_on_a_disk_that_folds_names_has_a_project(cwd: str, start: str) -> None:
    assert project_identity.identify(cwd, disk=InMemory({cwd: "x"}, folds=macos), start=start).key


def test_a_path_deeper_than_anyones_ends() -> None:
    held = InMemory()
    project_identity.identify("/x" * 1000, disk=held)
    assert len(held.asked) == project_identity.MAX_DEPTH
    project_identity.identify("/" + "x" * 100_000, disk=files)
