"""How `display()` and the value of a cell's last expression become Jupyter messages."""

from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher


class CellPublisher(DisplayPublisher):
    """`display()` as Jupyter messages."""

    def publish(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        *_: object,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **__: object,
    ) -> None:
        """Show data, in all the forms that it has, or update what was shown."""
        content = {"data": data, "metadata": metadata or {}, "transient": transient or {}}
        self.shell.relay.publish("update_display_data" if update else "display_data", content)

    def clear_output(self, wait: bool = False) -> None:  # noqa: FBT001, FBT002
        """Clear what the cell has shown; wait for the next output if so asked."""
        self.shell.relay.publish("clear_output", {"wait": wait})


class CellDisplayHook(DisplayHook):
    """The value of a cell's last expression as a Jupyter message."""

    def write_output_prompt(self) -> None:
        """Write nothing: the count is in the message."""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        """Show the value."""
        content = {"execution_count": self.prompt_count, "data": format_dict, "metadata": md_dict or {}}
        shell: Any = self.shell
        shell.relay.publish("execute_result", content)

    def finish_displayhook(self) -> None:
        """Let the next value be shown."""
        self._is_active = False
