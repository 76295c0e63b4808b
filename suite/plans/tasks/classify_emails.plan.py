from enum import Enum
from typing import Literal

class Kind(Enum):
    BILL = "bill"
    INVITATION = "invitation"
    OTHER = "other"

kinds = {kind: 0 for kind in Kind}
for email in get_unread_emails():
    kind = ask(f"What kind of email is this? {email.body}", Kind)
    kinds[kind or Kind.OTHER] += 1
for kind, count in kinds.items():
    print(f"{kind.value}: {count}")
