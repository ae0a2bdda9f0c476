"""What an operator can do with the queue of a host."""

from __future__ import annotations

from ddtui.ui.action import Action, Group, Scope, steps

_ADD = (
    Action(
        "queue.add",
        "Add",
        "Add an experiment: a preset's name, values (budget=16 flag:NAME=1), plan=NAME",
        ("a",),
        Group.QUEUE,
        footer=True,
        queues=True,
    ),
    Action(
        "queue.grid",
        "Grid",
        "Add a grid: budget=4,8 topk=4,6 if topk <= budget; shows what it would be first",
        ("g",),
        Group.QUEUE,
        footer=True,
        queues=True,
    ),
    Action(
        "queue.like",
        "Same but",
        "Add one like the highlighted one with some values changed, its budget matched if wanted",
        ("m",),
        Group.QUEUE,
        footer=True,
        queues=True,
    ),
)

_ONE = (
    Action(
        "queue.earlier",
        "Earlier",
        "Put the highlighted one before the one above it",
        ("K",),
        Group.QUEUE,
        queues=True,
    ),
    Action(
        "queue.later",
        "Later",
        "Put the highlighted one after the one below it",
        ("J",),
        Group.QUEUE,
        queues=True,
    ),
    Action(
        "queue.next",
        "Next",
        "Put the highlighted one before all others that wait",
        ("F",),
        Group.QUEUE,
        queues=True,
    ),
    Action(
        "queue.hold",
        "Hold",
        "Have it passed over, or taken up again in its turn",
        ("h",),
        Group.QUEUE,
        queues=True,
    ),
    Action(
        "queue.end",
        "Cancel",
        "Cancel it; asks first for one that runs",
        ("c",),
        Group.QUEUE,
        queues=True,
    ),
    Action(
        "queue.retry",
        "Retry",
        "Do a failed or cancelled one once more",
        ("t",),
        Group.QUEUE,
        queues=True,
    ),
    Action(
        "queue.edit",
        "Edit",
        "Change one that waits: budget=16 sets, -topk takes away, plan=NAME",
        ("e",),
        Group.QUEUE,
        footer=True,
        queues=True,
    ),
    Action("queue.note", "Note", "Set its note", ("n",), Group.QUEUE, queues=True),
    Action(
        "queue.hypothesis",
        "Hypothesis",
        "Set what is expected of it",
        ("N",),
        Group.QUEUE,
        queues=True,
    ),
)

_WHOLE = (
    Action(
        "queue.clear",
        "Clear",
        "Take all that ended off the list; measurements are kept",
        ("x",),
        Group.QUEUE,
        queues=True,
    ),
    Action(
        "queue.pause",
        "Pause",
        "Have nothing more taken up, or go on; what runs is not touched",
        ("p",),
        Group.QUEUE,
        queues=True,
    ),
    Action(
        "queue.leave",
        "Leave in",
        "Choose in which configuration the unit is left at the end",
        ("L",),
        Group.QUEUE,
        queues=True,
    ),
)

_RUN = (
    Action(
        "queue.start",
        "Start",
        "Run the queue here, one experiment after the other; shows the plan, and asks first",
        ("s",),
        Group.CHANGE,
        footer=True,
        destructive=True,
    ),
    Action(
        "queue.stop",
        "Stop",
        "Have whoever runs the queue stop; what is measured is kept; asks first",
        ("S",),
        Group.CHANGE,
        footer=True,
        destructive=True,
    ),
)

_LOOK = (
    Action(
        "queue.open",
        "Details",
        "Show the highlighted one in full: what it asks for, why it failed, its log",
        ("o",),
        Group.SHOW,
        footer=True,
    ),
    Action("queue.reload", "Reload", "Read the queue and plan again", ("r",), Group.SHOW),
    Action("queue.copy", "Copy", "Copy what is told of the highlighted one", ("y",), Group.COPY),
    Action(
        "queue.close",
        "Close",
        "Close the line that is typed into, then hide a change that has ended",
        ("escape",),
        Group.SEARCH,
    ),
    *steps(Scope.QUEUE, "experiment"),
    Action("queue.page-down", "Further", "Scroll the details", ("pagedown", "]"), Group.MOVE),
    Action("queue.page-up", "Back", "Scroll the details back", ("pageup", "["), Group.MOVE),
)

QUEUE: tuple[Action, ...] = (*_ADD, *_RUN, *_ONE, *_WHOLE, *_LOOK)
"""In the order in which the footer and the help list them."""
