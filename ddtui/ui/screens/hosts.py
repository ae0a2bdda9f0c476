"""All configured hosts. One is open; choosing another one closes this connection and opens that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ddtui.config.hosts import HostTarget, Reach, find_host
from ddtui.config.model import Config
from ddtui.core.width import clip
from ddtui.ui import format as fmt
from ddtui.ui.actions import Scope, bindings
from ddtui.ui.glyphs import UNICODE
from ddtui.ui.screens.built import built
from ddtui.ui.screens.live import ListScreen
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.header import Header, link_row
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.options import Options


@dataclass(frozen=True)
class SwitchHost:
    """What the app ends with when the operator chose another host: reconnect to it."""

    name: str


class HostsScreen(ListScreen):
    """Lists hosts with what is configured, and what is known now of the one that is open."""

    BINDINGS = bindings(Scope.HOSTS)
    DEFAULT_CSS = """
    HostsScreen { background: $background; }
    HostsScreen > #columns { height: 1; padding: 0 3; color: $label; margin-top: 1; }
    HostsScreen > OptionList {
        height: 1fr; background: $background; border: none; padding: 0 1;
        &:focus { border: none; background: $background; background-tint: $background 0%; }
    }
    """

    def __init__(self, hosts: Sequence[HostTarget], open_host: str) -> None:
        """Prepare the list.

        Args:
            hosts: All hosts that can be opened, in order.
            open_host: Name of the one that is watched now.
        """
        super().__init__(id="hosts")
        self._hosts = [*hosts]
        if open_host not in {each.name for each in hosts}:  # an alias that is not configured
            self._hosts.insert(0, find_host(Config(), open_host))
        self._names = [each.name for each in self._hosts]
        self._open = open_host
        self._shown: Shown | None = None
        self._prompts: list[str] = []

    def compose(self) -> ComposeResult:
        yield Header()
        yield Static(id="columns")
        yield Options(*(Option("", id=f"host-{at}") for at in range(len(self._hosts))))
        yield KeyBar()

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = self._names.index(self._open) if self._open in self._names else 0
        options.focus()

    def show(self, shown: Shown) -> None:
        self._shown = shown
        if built(self):
            self.query_one(Header).show(shown)
            self._fill()

    def on_resize(self) -> None:
        self._fill()

    def action_open(self) -> None:
        """Leave this host and open the highlighted one."""
        at = self.query_one(OptionList).highlighted
        if at is not None:
            self._go(self._hosts[at].name)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self._go(self._hosts[event.option_index].name)

    def _go(self, name: str) -> None:
        if name == self._open:
            self.notify(f"{name} is the host that is open", markup=False)
        else:
            self.app.exit(SwitchHost(name))

    def _fill(self) -> None:
        width = self.size.width - 6
        name_width = min(24, max([4, *(len(name) for name in self._names)]))
        unit_width = min(28, max([4, *(len(self._unit(each)) for each in self._hosts)]))
        glyphs = self._shown.glyphs if self._shown is not None else UNICODE
        columns = f"{'host':{name_width}}  {'unit':{unit_width}}  "
        prompts = []
        for host in self._hosts:
            name = fmt.clean(host.name)[:name_width]
            unit = fmt.clean(self._unit(host))[:unit_width] or fmt.NOTHING
            mark = glyphs.running if host.name == self._open else " "
            line = f"{mark} {name:{name_width}}  {unit:{unit_width}}  {self._state(host)}"
            prompts.append(clip(line, max(10, width)))
        if prompts != self._prompts:
            self._prompts = prompts
            options = self.query_one(OptionList)
            for at, line in enumerate(prompts):
                options.replace_option_prompt_at_index(at, Content(line))
            self.query_one("#columns", Static).update(Content(f"{columns}state"[:width]))

    def _unit(self, host: HostTarget) -> str:
        """The unit that is watched, for the open host, else the one that is configured."""
        if host.name == self._open and self._shown is not None:
            unit = self._shown.snapshot.unit
            return unit.name if unit is not None else host.unit
        return host.unit

    def _state(self, host: HostTarget) -> str:
        """What is known of the open host; how another one is reached."""
        if host.name == self._open and self._shown is not None:
            readiness = self._shown.snapshot.readiness
            words = fmt.clean(readiness.summary) or str(readiness.state)
            return f"{link_row(self._shown).text.strip()} · {words}"
        return f"not open · {_reach(host)}"


def _reach(host: HostTarget) -> str:
    match host.reach:
        case Reach.DEMO:
            return "simulated, inside ddtui"
        case Reach.LOCAL:
            return "this machine"
        case Reach.SSH:
            return f"ssh {fmt.clean(host.ssh)} · {host.options.engine}"
