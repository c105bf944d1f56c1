"""Django's file mail backend for a project whose senders may be killed and start again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.core.mail import EmailMessage
from django.core.mail.backends.filebased import EmailBackend


class OnceFileBackend(EmailBackend):
    """Writes each message to a file, but a Message-ID that was written before not again.

    No database can take back a mail. A worker that is killed between sending and committing leaves
    a job that will send again, so the receiving side has to know a repeated message by its id. Mail
    services offer that as an idempotency key.
    """

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Write the messages that are new; how many."""
        fresh = [message for message in email_messages if not self._has(message)]
        return super().send_messages(fresh) or 0

    def _has(self, message: EmailMessage) -> bool:
        message_id = message.extra_headers.get("Message-ID")
        if not message_id:
            return False
        line = f"Message-ID: {message_id}"
        return any(
            line in path.read_text(errors="replace") for path in Path(self.file_path).glob("*.log")
        )
