"""All that comes in at the kernels' door of a broker, and all that goes out: kernels, commands, the hub's pages."""

from bulletin.wire.console import FromConsole, ToConsole
from bulletin.wire.messages import FromKernel, ToKernel
from bulletin.wire.page_requests import FromPage, ToPage

FromClient = FromKernel | FromConsole | FromPage
ToClient = ToKernel | ToConsole | ToPage
