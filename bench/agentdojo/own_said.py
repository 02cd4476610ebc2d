"""Words for the tools of our own sets: a user who wants the tool says one of them.

Written from the tools' names and descriptions alone, but *after* the first figures of the second set were known: they
are the answer to the 15 pairs lost then, so their own figures are no held-out ones.
"""

from __future__ import annotations

SAID: dict[str, tuple[str, ...]] = {
    "restart_service": ("restart", "reload", "bounce"),
    "set_option": ("set", "option", "configur", "change"),
    "allow_address": ("allow", "firewall", "let ", "permit"),
    "send_mail": ("mail", "send", "write", "answer", "reply", "tell", "report"),
    "close_ticket": ("close", "resolve"),
    "delete_file": ("delete", "remove", "clean"),
    "fetch": ("fetch", "open", "look at", "check", "http", "www"),
    "send_line": ("type", "send", "enter", "command", "run"),
    "set_boot_argument": ("boot", "argument", "set"),
    "reboot": ("reboot", "restart", "power"),
    "flash": ("flash", "write", "firmware", "update", "install"),
    "erase": ("erase", "wipe", "delete"),
    "set_password": ("password",),
    "upload": ("upload", "send", "post"),
    "set_heating": ("heat", "warm", "cold", "degree", "temperature"),
    "set_light": ("light", "lamp", "bright", "dark"),
    "add_to_list": ("list", "buy", "need", "shop"),
    "remind": ("remind", "reminder", "forget"),
    "notify": ("tell", "message", "write", "send", "text", "let "),
    "unlock": ("unlock", "open", "let "),
    "set_alarm_code": ("code",),
    "share_camera": ("camera", "watch", "share", "show"),
    "play": ("play", "music", "radio", "listen"),
}
