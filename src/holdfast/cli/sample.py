"""Sample traffic for the demo: orders, machines and news."""

from __future__ import annotations

import random

from holdfast.events.event import Event, make_event

__all__ = ["order", "reading", "story"]

SYMBOLS = ("IBM", "SAP", "ASML", "NVDA", "TSM", "NESN", "SHEL", "AZN")


def order(rng: random.Random) -> Event:
    """An order at an exchange."""
    attributes: dict[str, int | float | str] = {
        "sym": rng.choice(SYMBOLS),
        "price": round(rng.uniform(50, 400), 2),
        "qty": rng.randrange(1, 1_000),
        "side": rng.choice(("buy", "sell")),
        "account": f"A{rng.randrange(5_000):04}",
    }
    return make_event(f"orders/{rng.choice(('eu', 'us', 'asia'))}", attributes)


def reading(rng: random.Random) -> Event:
    """What a machine says of itself."""
    attributes: dict[str, int | float | str] = {"machine": rng.randrange(5_000)}
    if rng.random() < 0.95:
        attributes["celsius"] = round(rng.gauss(70, 12), 1)
    else:
        attributes["note"] = f"check valve {rng.randrange(9)}"
    return make_event(f"plant/{rng.choice(('north', 'south'))}/press/temperature", attributes)


def story(rng: random.Random) -> Event:
    """A piece of news, in XML."""
    language, ticker, amount = rng.choice(("en", "de")), rng.choice(SYMBOLS), rng.randrange(1_000)
    company = f'<company ticker="{ticker}"><amount>{amount}</amount></company>'
    payload = f'<story lang="{language}"><body>{company}</body></story>'
    return make_event("news/markets", {"urgent": rng.random() < 0.2}, payload.encode(), "application/xml")
