"""How the dashboard looks: the terminal's own sixteen colours, and no others.

What is chosen is drawn in reverse, which is seen on a light and on a dark terminal, and without colours.
"""

STYLES = """
Screen { layout: vertical; }
#fleets { height: 1; }
#fleets Underline { display: none; }
#status { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
#roster { height: auto; min-height: 4; max-height: 40%; border-top: solid $primary; }
#lists { height: 1fr; border-top: solid $primary; }
#lists Underline { display: none; }
#lists Tabs { height: 1; }
TabPane { padding: 0; }
DataTable { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
DataTable:focus { background-tint: initial; }
DataTable > .datatable--header { background: ansi_default; color: ansi_blue; text-style: bold; }
DataTable > .datatable--cursor { background: ansi_default; color: ansi_default; text-style: none; }
DataTable:focus > .datatable--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
#roster > .datatable--cursor { text-style: dim reverse; }
#roster:focus > .datatable--cursor { text-style: reverse; }
.window { border: round $primary; padding: 0 1; width: 90%; max-width: 100; background: ansi_default; }
.window Label { width: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
.window .error { color: ansi_red; text-wrap: wrap; max-height: 3; }
#composer { height: 12; max-height: 100%; }
#reader { height: 80%; }
Composer, Reader { align: center middle; background: transparent; }
TextArea { height: 1fr; border: none; }
"""
