"""A selection among many clients, a shuffler and a server that talk over TCP on this machine.

Every client sends its messages to the shuffler over a connection of its own. The shuffler forgets who sent what and
forwards everything in one random order. Some senders are strangers who send garbage.

    python examples/shuffle_loopback.py [clients]
"""

from __future__ import annotations

import random
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from userdp.protocols.shuffle import Mode, ModeServer, Shuffler

HOST = "127.0.0.1"
Address = tuple[str, int]
GARBAGE = [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 999, b"udp1" + bytes(20)]


def everything(connection: socket.socket) -> bytes:
    """What is sent until the sender is done."""
    with connection:
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def send(address: Address, data: bytes) -> None:
    """Send this on a connection of its own."""
    with socket.create_connection(address) as connection:
        connection.sendall(data)


def run_shuffler(
    listener: socket.socket, senders: int, shuffler: Shuffler, width: int, server: tuple[str, int]
) -> None:
    """Wait for all senders, then forward all messages in one random order."""
    for _ in range(senders):
        received = everything(listener.accept()[0])
        shuffler.collect(received[at : at + width] for at in range(0, len(received), width))
    send(server, shuffler.release().tobytes())


def run_server(listener: socket.socket, server: ModeServer, width: int) -> None:
    """Count what the shuffler forwards."""
    received = everything(listener.accept()[0])
    server.receive_many(np.frombuffer(received, dtype=np.uint8).reshape(-1, width))


def main(clients: int = 300) -> None:
    """Run one round and print what each party knows."""
    protocol = Mode(epsilon=1, delta=1e-6, n_items=5, n_users=clients, round_id="loopback", beta=0.01)
    shuffler, server = protocol.shuffler(), protocol.server()
    items = [3 if user % 10 < 6 else random.randrange(5) for user in range(clients)]

    to_shuffler, to_server = socket.create_server((HOST, 0), backlog=128), socket.create_server((HOST, 0))
    addresses = to_shuffler.getsockname(), to_server.getsockname()
    width = protocol.message_bytes
    parties = [
        threading.Thread(target=run_shuffler, args=(to_shuffler, clients + 8, shuffler, width, addresses[1])),
        threading.Thread(target=run_server, args=(to_server, server, width)),
    ]
    for party in parties:
        party.start()

    def client(description: str, item: int) -> None:
        # A client knows the public description, which says how much noise to add, and its own item.
        send(addresses[0], b"".join(Mode.from_json(description).client().report(item)))

    def stranger(number: int) -> None:
        send(addresses[0], GARBAGE[number % len(GARBAGE)])

    with ThreadPoolExecutor(16) as pool:
        done = [pool.submit(client, protocol.to_json(), item) for item in items]
        done += [pool.submit(stranger, number) for number in range(8)]
        for future in done:
            future.result()
    for party in parties:
        party.join()
    to_shuffler.close()
    to_server.close()

    print(f"{clients} clients and 8 strangers: {shuffler.tally.accepted} messages to shuffle")
    print(f"the shuffler dropped {shuffler.tally.rejected}")
    print(f"the server counted {server.accepted} and rejected {server.rejected}")
    print(f"selected: {server.select()}, in truth {np.bincount(items, minlength=5).tolist()} clients have each item")
    print(f"the selected item has at most {protocol.error_bound(0.01)} clients fewer than the most frequent, 99 %")
    print(f"certified: delta {float(protocol.certified_delta):.4g} at epsilon 1, for replacing a client")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
