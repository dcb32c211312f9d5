"""From the text of a configuration file to a ``Configuration``, in any order of lines.

    setting  = KEYWORD value                                             see ``settings``
    site     = Site NAME Parent NAME|none
    process  = Process NAME is broker|publisher|subscriber|archive On SITE URL tcp://host:port/anything
    link     = Link A [->] B { Delay MS | Jitter MS | Loss SHARE | Duplicate SHARE | Reorder SHARE }

A bad file is refused with everything that is wrong with it: first all lines that cannot be read or ask for what does
not exist yet, and if there are none, all that do not fit together.
"""

from __future__ import annotations

from typing import Any, Final, cast

from holdfast.scenarios.address import BadUrl, address_of
from holdfast.scenarios.language import Line, ScenarioError, lines_of, read_each, together
from holdfast.scenarios.settings import SETTINGS, Setting
from holdfast.scenarios.topology import KINDS, Configuration, Kind, Link, LinkQuality, Process, Site
from holdfast.scenarios.unsupported import refused_process, refused_setting
from holdfast.scenarios.validation import objections

__all__ = ["parse_configuration", "read_link", "read_process"]

_SETTING: Final = {setting.keyword.casefold(): setting for setting in SETTINGS}
_DIRECTIVES: Final = f"Site, Process, Link, {', '.join(setting.keyword for setting in SETTINGS)}"
#: What a link can do: keyword, field of ``LinkQuality``, whether it is a time.
_QUALITIES: Final = (
    ("Delay", "delay_ns", True),
    ("Jitter", "jitter_ns", True),
    ("Loss", "loss", False),
    ("Duplicate", "duplicate", False),
    ("Reorder", "reorder", False),
)


def parse_configuration(text: str, file: str = "configuration") -> Configuration:
    """Read a configuration; ``file`` is what errors call it.

    :raises ScenarioError: naming everything that is wrong; nothing else is ever raised.
    """
    reader = _Reader()
    errors: list[ScenarioError] = []
    read_each(lines_of(text, file), reader.read, errors)
    if errors:
        raise together(errors)
    configuration = Configuration(
        tuple(reader.sites), tuple(reader.processes), tuple(reader.links), **reader.settings
    )
    found = objections(configuration, reader.setting_lines)
    if found:
        raise together([ScenarioError(file, line, problem, wanted) for line, problem, wanted in found])
    return configuration


class _Reader:
    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.processes: list[Process] = []
        self.links: list[Link] = []
        self.settings: dict[str, Any] = {}
        self.setting_lines: dict[str, int] = {}

    def read(self, line: Line) -> None:
        if line.take_keyword("Site"):
            self.sites.append(_read_site(line))
        elif line.take_keyword("Process"):
            process = read_process(line)
            refused = refused_process(process)
            if refused is not None:
                line.fail(*refused)
            self.processes.append(process)
        elif line.take_keyword("Link"):
            self.links.append(read_link(line))
        elif (setting := _SETTING.get(line.peek().casefold())) is not None:
            line.skip(len(line.peek()))
            self.read_setting(setting, line)
        else:
            line.unexpected(f"one of {_DIRECTIVES}")

    def read_setting(self, setting: Setting, line: Line) -> None:
        value = setting.read(line)
        line.end()
        first = self.setting_lines.setdefault(setting.field, line.number)
        if first != line.number:
            line.fail(f"{setting.keyword} was given on line {first}", "each setting once")
        refused = refused_setting(setting.field, value)
        if refused is not None:
            line.fail(f"{setting.keyword} {setting.write(value)} does not exist yet", refused)
        self.settings[setting.field] = value


def _read_site(line: Line) -> Site:
    name = line.name("the name of a site")
    if name.casefold() == "none":
        line.fail(f"a site cannot be called {name}", "another name: Parent none marks the root")
    line.keyword("Parent")
    parent = None if line.take_keyword("none") else line.name("the name of a site, or none")
    line.end()
    return Site(name, parent, line.number)


def read_process(line: Line) -> Process:
    """A process, from behind the keyword ``Process``."""
    name = line.name("the name of a process")
    line.keyword("is")
    kind = cast(Kind, line.keyword(*KINDS))
    line.keyword("On")
    site = line.name("the name of a site")
    line.keyword("URL")
    url = line.word("tcp://host:port/anything")
    line.end()
    try:
        address_of(url)
    except BadUrl as error:
        line.fail(error.problem, error.expected)
    return Process(name, kind, site, url, line.number)


def read_link(line: Line) -> Link:
    """A link, from behind the keyword ``Link``."""
    a = line.name("the name of a site or process")
    one_way = line.take_keyword("->")
    b = line.name("the name of a site or process")
    given: dict[str, Any] = {}
    while not line.is_at_end():
        keyword = line.keyword(*(keyword for keyword, _, _ in _QUALITIES))
        field, is_time = next((field, is_time) for word, field, is_time in _QUALITIES if word == keyword)
        if field in given:
            line.fail(f"{keyword} stands twice", "each quality once")
        given[field] = line.milliseconds(keyword) if is_time else line.share(keyword)
    return Link(a, b, LinkQuality(**given), one_way, line.number)
