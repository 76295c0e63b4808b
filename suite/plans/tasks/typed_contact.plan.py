from dataclasses import dataclass
from typing import Optional

@dataclass
class Person:
    name: str
    email: str
    phone: Optional[str] = None

people = [Person(name=c["name"], email=c["email"], phone=c.get("phone")) for c in search_contacts("Smith")]
people.sort(key=lambda p: p.name)
for person in people:
    phone = person.phone if person.phone else "no phone"
    print(f"{person.name}: {person.email} ({phone})")
