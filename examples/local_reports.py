"""Reports that are private before they leave the user's machine: three machines, of which two hold one file each.

The organizer writes down the protocol as JSON. Every user makes one message from it, with nothing but their own answer
and their slot. The counting machine reads the JSON and the messages; nobody else sees an answer.
"""

from __future__ import annotations

from userdp.protocols import local

DRINKS = ("coffee", "mate", "tea", "water")


def organizer() -> str:
    """The public description that everybody gets."""
    protocol = local.for_items(epsilon=2, n_items=len(DRINKS), n_users=4000, round_id="drinks-week-1", default=3)
    return protocol.to_json()


def user(description: str, slot: int, drink: str) -> bytes:
    """One user's machine: an answer that is not on the list counts as the default, water."""
    item = DRINKS.index(drink) if drink in DRINKS else -1
    return local.LocalProtocol.from_json(description).client(slot).report(item)


def counter(description: str, messages: list[bytes]) -> local.LocalServer:
    """The counting machine. It drops what is no message of this round, and counts it."""
    server = local.LocalProtocol.from_json(description).server()
    for message in messages:
        server.receive(message)
    return server


def main() -> None:
    """Everybody in one process; 2,000 of 4,000 like mate."""
    description = organizer()
    answers = ["mate", "tea", "mate", "cola"] * 1000
    messages = [user(description, slot, drink) for slot, drink in enumerate(answers)]
    messages += [messages[0], b"hello"]
    server = counter(description, messages)
    print(f"{server.accepted} reports, rejected: {server.rejected}")
    for drink, estimate, deviation in zip(DRINKS, server.histogram(), server.standard_error, strict=True):
        print(f"{drink:<8}{estimate:>8.0f} ± {deviation:.0f}")
    print(f"most liked: {DRINKS[server.select()]}")


if __name__ == "__main__":
    main()
