"""Sample traffic for the demo: orders, machines and news, and what people might want of them."""

from __future__ import annotations

import random

from holdfast.events.event import Event, make_event

__all__ = ["FILTERS", "crowd", "event"]

FILTERS = (
    "orders/#",
    "orders/eu WHERE sym = 'SAP' AND price BETWEEN 120 AND 140",
    "orders/+ WHERE qty * price > 150000 AND NOT side = 'buy'",
    "orders/# WHERE sym IN ('IBM', 'ASML') OR price > 380",
    "orders/# WHERE SHARD(account, 4) = 2",
    "plant/+/press/temperature WHERE celsius >= 90",
    "plant/north/# WHERE celsius IS NULL",
    "plant/# WHERE note LIKE '%valve_%'",
    'news/# WHERE XPATH \'/story[@lang="en"]//company[@ticker="IBM"]\'',
    "news/# WHERE urgent AND XPATH '//amount[. > 900]'",
)
SYMBOLS = ("IBM", "SAP", "ASML", "NVDA", "TSM", "NESN", "SHEL", "AZN")


def event(rng: random.Random) -> Event:
    """One event of the sample traffic."""
    kind = rng.random()
    if kind < 0.6:
        return _order(rng)
    return _reading(rng) if kind < 0.9 else _story(rng)


def crowd(rng: random.Random) -> str:
    """The filter of one of the many other subscribers."""
    account, symbol, price = rng.randrange(5_000), rng.choice(SYMBOLS), rng.randrange(50, 400)
    return rng.choice(
        (
            f"orders/# WHERE account = 'A{account:04}' AND price > {price}",
            f"orders/+ WHERE sym = '{symbol}' AND price BETWEEN {price} AND {price}.2",
            f"plant/south/press/temperature WHERE machine = {account} AND celsius > 80",
            f"news/# WHERE XPATH '//company[@ticker=\"{symbol}\"]/amount[. = {account}]'",
        )
    )


def _order(rng: random.Random) -> Event:
    attributes: dict[str, int | float | str] = {
        "sym": rng.choice(SYMBOLS),
        "price": round(rng.uniform(50, 400), 2),
        "qty": rng.randrange(1, 1_000),
        "side": rng.choice(("buy", "sell")),
        "account": f"A{rng.randrange(5_000):04}",
    }
    return make_event(f"orders/{rng.choice(('eu', 'us', 'asia'))}", attributes)


def _reading(rng: random.Random) -> Event:
    attributes: dict[str, int | float | str] = {"machine": rng.randrange(5_000)}
    if rng.random() < 0.95:
        attributes["celsius"] = round(rng.gauss(70, 12), 1)
    else:
        attributes["note"] = f"check valve {rng.randrange(9)}"
    return make_event(f"plant/{rng.choice(('north', 'south'))}/press/temperature", attributes)


def _story(rng: random.Random) -> Event:
    language, ticker, amount = rng.choice(("en", "de")), rng.choice(SYMBOLS), rng.randrange(1_000)
    company = f'<company ticker="{ticker}"><amount>{amount}</amount></company>'
    payload = f'<story lang="{language}"><body>{company}</body></story>'
    return make_event("news/markets", {"urgent": rng.random() < 0.2}, payload.encode(), "application/xml")
