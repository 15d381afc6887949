"""The verbs by which a person settles what is believed: `supersede`, `pin`, `unpin`."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli.ask import ask, here, json_option, out, person_is_there
from csmd.cli.show import console, print_text


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW", required=False, default="")
@click.option("--undo", is_flag=True, help="Restore OLD; csmd does not replace it with the same memory again.")
@json_option
def supersede(old: str, new: str, undo: bool, as_json: bool) -> None:
    """Replace memory OLD with NEW (--undo restores OLD)."""
    if not new and not undo:
        raise click.UsageError("name the memory that holds now, or give --undo")
    found = ask("csm_memory_supersede", old=old, new=new, undo=undo, asking=here(None), by_person=person_is_there())
    out(found, as_json, _settled)


def _settled(value: dict[str, Any]) -> None:
    screen = console()
    if value["undone"]:
        print_text(screen, f"{value['id']} holds again: {value['text']}")
        print_text(screen, f"{value['confidence'] * 100:.0f} % sure; {value['was_superseded_by']} stays", style="dim")
        return
    print_text(screen, f"Replaced {value['id']} with {value['superseded_by']}: {value['text']}")
    if value["rest"]:
        print_text(screen, f"Still active from it: {value['rest']['id']}: {value['rest']['text']}", most=4)
    print_text(screen, f"Undo: csmd supersede {value['id']} --undo", style="dim")


@click.command()
@click.argument("ident", metavar="ID")
@json_option
def pin(ident: str, as_json: bool) -> None:
    """Pin a memory: it never fades and stays as sure as it is."""
    _pin(ident, undo=False, as_json=as_json)


@click.command()
@click.argument("ident", metavar="ID")
@json_option
def unpin(ident: str, as_json: bool) -> None:
    """Unpin a memory: it fades from now on as others do."""
    _pin(ident, undo=True, as_json=as_json)


def _pin(ident: str, *, undo: bool, as_json: bool) -> None:
    found = ask("csm_memory_pin", id=ident, undo=undo, asking=here(None), by_person=person_is_there())
    out(found, as_json, _pinned)


def _pinned(value: dict[str, Any]) -> None:
    screen = console()
    done = {"pin": "Pinned", "unpin": "Unpinned"}[value["verb"]]
    if not value["changed"]:
        print_text(screen, f"Nothing to do: {value['id']} is {'' if value['verb'] == 'pin' else 'not '}pinned")
        return
    print_text(screen, f"{done} {value['id']}: {value['text']}")
    print_text(screen, f"Undo: csmd review --undo {value['answer']}", style="dim")


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (supersede, pin, unpin)
